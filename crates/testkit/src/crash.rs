//! Functions for servers whose caller's thread fails.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};

/// `crash()` reads what no process has, `abandon()` gives up, and `survive()` takes the signal that it sends itself.
const SOURCE: &str = r#"
#include <signal.h>
#include <stdlib.h>
static void take(int signal) { (void)signal; }
int crash_init(void *a, void *b, char *c) { return 0; }
int abandon_init(void *a, void *b, char *c) { return 0; }
int survive_init(void *a, void *b, char *c) { return 0; }
long long crash(void *a, void *b, char *c, char *d) { return *(volatile int *)8; }
long long abandon(void *a, void *b, char *c, char *d) { abort(); }
long long survive(void *a, void *b, char *c, char *d) { signal(SIGFPE, take); return raise(SIGFPE); }
"#;

/// The statement by which a server takes one of them over ([`crate::ServerBuilder::with_crashes`]).
pub fn create_crash(function: &str) -> String {
    format!("CREATE FUNCTION {function} RETURNS INTEGER SONAME 'crash.so'")
}

/// Compiles the library into this folder, where it is missing.
pub(crate) fn make_crashes(folder: &Path) -> Result<()> {
    let [source, library] = ["crash.c", "crash.so"].map(|name| folder.join(name));
    if library.is_file() && fs::read_to_string(&source).is_ok_and(|made| made == SOURCE) {
        return Ok(());
    }
    // Tests run beside each other: each makes its own, and the last one stays.
    let own = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let [own_source, own_library] = ["c", "so"].map(|kind| folder.join(format!("{own}.{kind}")));
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    fs::write(&own_source, SOURCE).map_err(Error::io("write", &own_source))?;
    let mut clang = Command::new("clang");
    clang.args(["-shared", "-fPIC", "-O0", "-o"]).args([&own_library, &own_source]);
    let run = clang.status().map_err(Error::io("run", Path::new("clang")))?;
    assert!(run.success(), "clang cannot compile {}", own_source.display());
    for (made, place) in [(&own_library, &library), (&own_source, &source)] {
        fs::rename(made, place).map_err(Error::io("rename", made))?;
    }
    Ok(())
}
