//! Starts one private server, prints where it is as a line of JSON and keeps it until standard
//! input closes or SIGTERM or SIGINT comes:
//! `cargo run -p waggle-testkit -- mysql-9 [--arg=--general-log=1 …]`.
//! In the background: `tail -f /dev/null | cargo run …`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the line of JSON is what this program is for")]

use std::error::Error;
use std::sync::mpsc;
use std::{io, thread};

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use waggle_testkit::{Server, Version};

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: serve mysql-5.7|mysql-8.0|mysql-9|mariadb-10.11|mariadb-11.4 [--arg=…]";
    let mut arguments = std::env::args().skip(1);
    let version: Version = arguments.next().ok_or(usage)?.parse()?;
    let mut builder = Server::builder(version);
    for argument in arguments {
        builder = builder.arg(argument.strip_prefix("--arg=").ok_or(usage)?);
    }

    let (ended, end) = mpsc::channel();
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let by_signal = ended.clone();
    thread::spawn(move || signals.forever().next().map(|_| by_signal.send(())));

    let server = builder.start()?;
    let place = json!({
        "version": version.name(),
        "version_string": server.version_string(),
        "pid": server.pid(),
        "port": server.port(),
        "socket": server.socket(),
        "datadir": server.datadir(),
        "error_log": server.error_log(),
        "defaults_file": server.defaults_file(),
    });
    println!("{place}");
    thread::spawn(move || {
        // An unreadable standard input counts as closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        ended.send(())
    });
    end.recv()?;
    server.stop()?;
    Ok(())
}
