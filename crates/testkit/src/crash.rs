//! A function for servers whose caller's thread fails: `crash()`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};

/// Reads what no process has.
const SOURCE: &str = "int crash_init(void *a, void *b, char *c) { return 0; }\n\
                      long long crash(void *a, void *b, char *c, char *d) { return *(volatile int *)8; }\n";

/// The statement by which a server takes the function over ([`crate::ServerBuilder::with_crash`]).
pub const CREATE_CRASH: &str = "CREATE FUNCTION crash RETURNS INTEGER SONAME 'crash.so'";

/// Compiles the library into this folder, where it is missing.
pub(crate) fn make_crash(folder: &Path) -> Result<()> {
    let library = folder.join("crash.so");
    if library.is_file() {
        return Ok(());
    }
    // Tests run beside each other: each makes its own, and the last one stays.
    let own = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let [source, made] = ["c", "so"].map(|kind| folder.join(format!("{own}.{kind}")));
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    fs::write(&source, SOURCE).map_err(Error::io("write", &source))?;
    let mut clang = Command::new("clang");
    clang.args(["-shared", "-fPIC", "-O0", "-o"]).args([&made, &source]);
    let run = clang.status().map_err(Error::io("run", Path::new("clang")))?;
    assert!(run.success(), "clang cannot compile {}", source.display());
    fs::rename(&made, &library).map_err(Error::io("rename", &made))?;
    fs::remove_file(&source).map_err(Error::io("remove", &source))
}
