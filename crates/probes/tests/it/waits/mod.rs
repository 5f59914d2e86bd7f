//! Where the time of statements went, on real servers.

mod bad_days;
mod counted;
mod crowds;
mod disk;
mod kernels;
mod moved;
mod sums;
mod truth;

use serde_json::{Map, Value};
use waggle_model::{Parts, TimeClass};
use waggle_probes::capture::{Tap, TapOptions};
use waggle_probes::servers::recognise::Builds;
use waggle_testkit::{Account, Client, Server, Transport};

use crate::capture::{Capture, Seen};
use crate::recognised_by;

/// The capture of a server with its waits; nothing is attached yet.
fn watching(server: &Server) -> Capture {
    let mut capture = Capture::of(server);
    capture.recognised = recognised_by(Builds::default().with_waits(), server);
    capture.tap = Tap::new(TapOptions { waits: true, ..TapOptions::default() }).unwrap();
    capture
}

/// A session of the administrator in the database `test`.
fn client(server: &Server) -> Client {
    Client::builder().database("test").connect(server, Transport::Unix, Account::ROOT).unwrap()
}

fn run(client: &mut Client, sql: &str) {
    client.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The text of a statement, for messages.
fn text(seen: &Seen) -> String {
    String::from_utf8_lossy(seen.text.as_deref().unwrap_or_default()).into_owned()
}

/// Its parts, for messages.
fn shown(parts: &Parts) -> String {
    let told = TimeClass::ALL.into_iter().filter(|class| parts.get(*class) > 0);
    let told = told.map(|class| format!("{} {}", class.key(), parts.get(class) / 1000));
    told.collect::<Vec<_>>().join(", ")
}

/// Its parts, for results: microseconds of the classes that have any.
fn told(parts: &Parts) -> Value {
    let told = TimeClass::ALL.into_iter().filter(|class| parts.get(*class) > 0);
    let told = told.map(|class| (class.key().to_owned(), (parts.get(class) / 1000).into()));
    Value::Object(told.collect::<Map<_, _>>())
}
