//! What libbpf-cargo generates from `maps.bpf.c`: the types that both halves see.
#![allow(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic, clippy::restriction)]

include!(concat!(env!("OUT_DIR"), "/carrier.skel.rs"));

/// The maps that every probe shares.
pub(super) const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/carrier.bpf.o"));
