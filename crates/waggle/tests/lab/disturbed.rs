//! Somebody else changes what is set while it is measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use waggle_mysql::{Connection, Options};

use super::{Place, done, is_empty, is_of_host, windows};

const SCENARIO: &str = "pfson_conon_inson";
const ONLY: [&str; 10] =
    ["--only", "read-only", "--only", "4", "--only", "closed", "--only", SCENARIO, "--blocks", "2"];
const OFF: &str =
    "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO' WHERE ENABLED = 'YES'";
/// A turn of a window takes several times as long.
const EVERY: Duration = Duration::from_millis(5);

fn connect(socket: PathBuf) -> Option<Connection> {
    let (user, socket) = (Some("root".to_owned()), Some(socket));
    Connection::open_for_changes(&Options { user, socket, ..Options::default() }).ok()
}

/// Has every server of a run switch its instruments off, again and again, once it has been begun: on one that scenarios are
/// tried on before, they would be refused.
fn disturb(place: &Place, stop: &AtomicBool) {
    let mut connections: BTreeMap<PathBuf, Connection> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) && !place.run().join("run.json").exists() {
        sleep(EVERY);
    }
    while !stop.load(Ordering::Relaxed) {
        for entry in fs::read_dir(place.servers()).unwrap().flatten() {
            let socket = entry.path().join("own/socket");
            if !connections.contains_key(&socket) {
                connections.extend(connect(socket.clone()).map(|one| (socket, one)));
            }
        }
        // They end, one after another.
        connections.retain(|_, connection| connection.rows(OFF).is_ok());
        sleep(EVERY);
    }
}

#[test]
fn a_window_is_void_where_somebody_else_changes_what_its_arm_has_set() {
    let (place, stop) = (Place::new(), AtomicBool::new(false));
    scope(|threads| {
        threads.spawn(|| disturb(&place, &stop));
        let output = place.small("rds", "mysql-8.0", &ONLY).output();
        stop.store(true, Ordering::Relaxed);
        done(output);
    });
    let windows = windows(&place.run());
    assert_eq!(windows.len(), 2 * 3);
    for window in &windows {
        match window["arm"].as_str().unwrap() {
            SCENARIO => {
                let void = window["void"].as_str().unwrap();
                assert!(void.contains("do not read as they were set"), "{window}");
            }
            _ => assert!(window["void"].is_null() || is_of_host(window), "{window}"),
        }
    }
    let shown = done(place.lab(&["show", place.run().to_str().unwrap()]).output());
    assert!(shown.contains("do not read as they were set"), "{shown}");
    assert!(is_empty(&place.servers()));
}
