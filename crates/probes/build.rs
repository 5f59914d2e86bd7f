//! Compiles the kernel half of every probe: each `src/<probe>/mod.bpf.c` becomes
//! `OUT_DIR/<probe>.skel.rs`, and so does `src/carrier/maps.bpf.c`, what they share.

use std::env;
use std::error::Error;
use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    let mut probes = 0;
    for entry in Path::new("src").read_dir()? {
        let folder = entry?.path();
        let sources = ["mod.bpf.c", "maps.bpf.c"].map(|name| folder.join(name));
        let Some(source) = sources.into_iter().find(|source| source.is_file()) else { continue };
        for file in folder.read_dir()? {
            let file = file?.path();
            if file.extension().is_some_and(|kind| kind == "c" || kind == "h") {
                println!("cargo::rerun-if-changed={}", file.display());
            }
        }
        let name = folder.file_name().and_then(|name| name.to_str()).ok_or("probe folder name")?;
        // The headers of the kernel include <asm/…>, which Debian keeps below the triplet.
        let triplet = format!("-I/usr/include/{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH")?);
        SkeletonBuilder::new()
            .source(&source)
            .clang_args(["-Isrc/carrier", &triplet, "-Wall", "-Werror", "-mcpu=v3"])
            .obj(Path::new(&out).join(format!("{name}.bpf.o")))
            .build_and_generate(Path::new(&out).join(format!("{name}.skel.rs")))
            .map_err(|error| {
                format!(
                    "{name}: {error:#}\nclang is needed to compile the probes: cargo xtask setup"
                )
            })?;
        probes += 1;
    }
    if probes == 0 { Err("no probe found below src".into()) } else { Ok(()) }
}
