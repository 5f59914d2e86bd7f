//! Prices that were never measured, to see what is made of them. Measuring real ones takes minutes.

use std::path::Path;

use jiff::Timestamp;
use waggle_instrumentation::class::kind_of;
use waggle_instrumentation::cost::calibration::{Host, Measured, SESSIONS, Storage};
use waggle_instrumentation::cost::{Calibration, Span};
use waggle_mysql::{Connection, Options, Sources};
use waggle_probes::servers::elf::Elf;
use waggle_testkit::Server;

/// What a class, and its kind, is said to cost.
pub(crate) struct Price {
    pub(crate) class: &'static str,
    pub(crate) events_per_statement: f64,
    /// Nanoseconds per event beside the timer.
    pub(crate) rest_ns: f64,
}

/// Keeps prices for this server on this host, where waggle looks for them. They hold whatever the server does.
pub(crate) fn keep(server: &Server, state: &Path, prices: &[Price]) {
    keep_under(1e12, server, state, prices);
}

/// The same, of statements that took so long, ns.
pub(crate) fn keep_under(statement_ns: f64, server: &Server, state: &Path, prices: &[Price]) {
    let options = Sources { defaults_file: Some(server.defaults_file()), ..Sources::default() };
    let connection = Connection::open(&Options::read(&options).unwrap()).unwrap();
    let program = format!("/proc/{}/exe", server.pid());
    let calibration = Calibration {
        at: Timestamp::now(),
        host: Host::look(),
        version: connection.server_identity().version.clone(),
        build: Some(Elf::open(Path::new(&program)).unwrap().build().to_string()),
        rounds: 40,
        measured: prices.iter().flat_map(|price| measured(price, statement_ns)).collect(),
    };
    calibration.store(&state.join("calibration")).unwrap();
}

/// Where events are kept costs nothing more.
fn measured(price: &Price, without_ns: f64) -> Vec<Measured> {
    let kind = kind_of(price.class);
    let mut arms = Storage::ALL.map(|kept| (kind, kept)).to_vec();
    if kind != price.class {
        arms.push((price.class, Storage::Sums));
    }
    let mut measured = Vec::new();
    for sessions in SESSIONS {
        measured.extend(arms.iter().map(|(class, kept)| Measured {
            sessions,
            class: (*class).to_owned(),
            kept: *kept,
            events_per_statement: price.events_per_statement,
            timed_per_statement: price.events_per_statement,
            without_ns,
            added_ns: around(price.rest_ns * price.events_per_statement),
            timer_ns: Some(0.0),
            rest_ns: Some(around(price.rest_ns)),
        }));
    }
    measured
}

/// Known to a tenth.
fn around(value: f64) -> Span {
    Span { low: value * 0.9, value, high: value * 1.1 }
}
