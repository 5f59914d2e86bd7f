//! A connection to the server of an option file. That it does not answer is told soon, and why where that can be seen.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use waggle_mysql::connection::{ConnectionError, Endpoint};
use waggle_mysql::{Connection, Options};

use super::Failure;
use crate::own_server;
use crate::streams::tell;

/// From then on it is told. A login takes milliseconds.
const SILENT: Duration = Duration::from_secs(3);

/// Connects by `open`.
pub(super) fn connect(
    options: &Options,
    open: fn(&Options) -> Result<Connection, ConnectionError>,
) -> Result<Connection, Failure> {
    let endpoint = Endpoint::choose(options).map_err(|error| Failure::Config(error.into()))?;
    let opened = thread::scope(|threads| {
        let (opened, is_open) = mpsc::channel::<()>();
        threads.spawn(|| tell_silence(&endpoint, is_open));
        let result = open(options);
        drop(opened);
        result
    });
    opened.map_err(|error| match error {
        // What is wrong is not in the option file.
        ConnectionError::TooSlow => {
            Failure::Cannot(anyhow!("{endpoint}: {error}{}", standstill(&endpoint)))
        }
        other => Failure::Config(other.into()),
    })
}

fn tell_silence(endpoint: &Endpoint, is_open: mpsc::Receiver<()>) {
    if is_open.recv_timeout(SILENT) == Err(RecvTimeoutError::Timeout) {
        let why = standstill(endpoint);
        tell!("waggle: the server at {endpoint} does not answer{why}; waggle goes on waiting");
    }
}

/// Why it does not, where it is a server of this host that stands still.
fn standstill(endpoint: &Endpoint) -> String {
    own_server::standstill_at(endpoint).map_or(String::new(), |why| format!(": {why}"))
}
