//! Compiles the program: `src/injection/mod.bpf.c` becomes `OUT_DIR/injection.bpf.o`.

use std::env;
use std::error::Error;
use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<(), Box<dyn Error>> {
    let source = "src/injection/mod.bpf.c";
    println!("cargo::rerun-if-changed={source}");
    // The headers of the kernel include <asm/…>, which Debian keeps below the triplet.
    let triplet = format!("-I/usr/include/{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH")?);
    SkeletonBuilder::new()
        .source(source)
        .clang_args([&triplet, "-Wall", "-Werror", "-mcpu=v3"])
        .obj(Path::new(&env::var("OUT_DIR")?).join("injection.bpf.o"))
        .build()
        .map_err(|error| {
            format!("{error:#}\nclang is needed to compile the programs: cargo xtask setup")
        })?;
    Ok(())
}
