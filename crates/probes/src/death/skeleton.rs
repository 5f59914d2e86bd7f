//! What libbpf-cargo generates from `mod.bpf.c`: the types that both halves see.
#![allow(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic, clippy::restriction)]

include!(concat!(env!("OUT_DIR"), "/death.skel.rs"));

/// The compiled programs.
pub(super) const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/death.bpf.o"));
