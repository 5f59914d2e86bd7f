//! The probes against real servers and the real kernel. Needs root.
#![cfg(test)]

mod capture;
mod derivations;
mod digest_length;
mod discover;
mod forged;
mod layout;
mod locks;
mod matrix;
mod narrow;
mod nested;
mod others;
mod profile;
mod sessions;
mod settings;
mod silence;
mod size;
mod waits;
mod x_protocol;

use std::path::Path;

use waggle_probes::servers::discover::servers;
use waggle_probes::servers::recognise::{Builds, Recognised};
use waggle_testkit::Server;

/// What the probes find out about a server.
fn recognised(server: &Server) -> Recognised {
    recognised_by(Builds::default(), server)
}

fn recognised_by(mut builds: Builds, server: &Server) -> Recognised {
    let found = servers(Path::new("/proc")).into_iter().find(|found| found.pid == server.pid());
    builds.recognise(&found.unwrap()).unwrap()
}
