//! Compiles the program of this bench.

#[path = "../frame/program.rs"]
mod program;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    program::compile("injection")
}
