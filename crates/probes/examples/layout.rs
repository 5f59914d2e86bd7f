//! Prints the layout of a server's ELF file: `cargo run -p waggle-probes --example layout FILE…`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;
use std::process::ExitCode;

use waggle_model::Reading;
use waggle_probes::servers::elf::Elf;
use waggle_probes::servers::layout::{Field, Layout};
use waggle_probes::servers::pthread::PthreadLayout;

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for path in std::env::args().skip(1) {
        if let Err(error) = print(Path::new(&path)) {
            eprintln!("{error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn print(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let elf = Elf::open(path)?;
    if let Ok(pthread) = PthreadLayout::read(&elf) {
        println!("{}\n  {pthread:x?}", path.display());
        return Ok(());
    }
    let layout = Layout::derive(&elf)?;
    println!("{}", path.display());
    println!("  {} {} ({})", layout.flavour, layout.version, layout.build);
    println!("  confirmation {:?}", layout.confirmation());
    println!("  current_thd {:x?}", layout.current_thd);
    println!("  clock {:?}, lock time {:?}", layout.clock, layout.lock_time);
    for field in Field::ALL {
        match layout.fields.get(&field) {
            Some(Reading::Value(place)) => {
                println!("  {:<18} {:>#7x}  {}", field.name(), place.offset, place.how);
            }
            Some(Reading::Absent(why)) => println!("  {:<18}  absent  {why}", field.name()),
            None => {}
        }
    }
    Ok(())
}
