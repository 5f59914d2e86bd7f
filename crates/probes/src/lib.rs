//! Everything that touches the kernel or another process: finding servers, reading their layout,
//! the programs loaded into the kernel. The only crate with C, libbpf and `unsafe`.

pub mod kernel;
pub mod nested;
pub mod sessions;
pub mod tap;
pub mod target;
pub mod urgent;
