//! Compiles a program for the kernel: for `build.rs` of a bench that has one.

use std::env;
use std::error::Error;
use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

/// `src/NAME/mod.bpf.c` becomes `OUT_DIR/NAME.bpf.o`.
pub(crate) fn compile(name: &str) -> Result<(), Box<dyn Error>> {
    let source = format!("src/{name}/mod.bpf.c");
    println!("cargo::rerun-if-changed={source}");
    // The headers of the kernel include <asm/…>, which Debian keeps below the triplet.
    let triplet = format!("-I/usr/include/{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH")?);
    SkeletonBuilder::new()
        .source(source)
        .clang_args([&triplet, "-Wall", "-Werror", "-mcpu=v3"])
        .obj(Path::new(&env::var("OUT_DIR")?).join(format!("{name}.bpf.o")))
        .build()
        .map_err(|error| {
            format!("{error:#}\nclang is needed to compile the programs: cargo xtask setup")
        })?;
    Ok(())
}
