//! Everything that touches the kernel or another process: finding servers, decoding their layout,
//! and the programs loaded into the kernel. This is the only crate with C, libbpf and `unsafe`.

pub mod capture;
pub mod carrier;
pub mod coin;
mod death;
pub mod kernel;
pub mod nested;
pub mod profile;
pub mod servers;
pub mod sessions;
pub mod tap;
pub mod urgent;
pub mod waits;
