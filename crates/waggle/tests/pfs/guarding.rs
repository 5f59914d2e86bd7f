//! The server becomes slower, or does not.

use std::time::Duration;

use waggle_testkit::Version;
use waggle_testkit::sysbench::{Length, Running, Sysbench};

use super::holding::{assert_as_before, without_threads};
use super::{Scene, load, stderr};

/// Longer than any test; it ends when it is dropped.
const LONG: Length = Length::Time(Duration::from_secs(600));

/// At a fixed rate: a processor that clients and server keep for themselves leaves none to who watches.
fn busy(scene: &Scene, script: &str, rate: u32) -> Running {
    let sysbench = load::read_write(&scene.server);
    let (script, arguments) = (script.to_owned(), vec![format!("--rate={rate}")]);
    let sysbench = Sysbench { script, arguments, length: LONG, threads: 4, ..sysbench };
    sysbench.start(&scene.server).unwrap()
}

/// Statements that take ten times as long stand for a server that has become slower: how much slower
/// it becomes by an instrument is a question for the bench.
#[test]
fn what_makes_the_server_slower_is_undone_at_once() {
    let scene = Scene::of(Version::Mysql9);
    let before = without_threads(&scene.read());
    let quick = busy(&scene, "oltp_point_select", 1000);
    let holding = scene.hold(&["apply", "io", "--for", "600s", "--guard", "10%"]);
    drop(quick);
    let _slow = busy(&scene, "oltp_update_index", 300);
    let ended = holding.wait();
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("undone at once"), "{said}");
    assert_as_before(&scene, &before, "after the alarm");
}

#[test]
fn what_costs_nothing_stays() {
    let scene = Scene::of(Version::Mysql9);
    let _load = busy(&scene, "oltp_point_select", 1000);
    let words = ["set", "consumer", "events_transactions_history_long", "on"];
    let words = [&words[..], &["--for", "10s", "--guard", "50%"]].concat();
    let guarded = scene.run(&words);
    assert_eq!(guarded.status.code(), Some(0), "{}", stderr(&guarded));
}

#[test]
fn a_server_at_rest_cannot_be_guarded() {
    let scene = Scene::of(Version::Mysql9);
    let guarded = scene.run(&["apply", "io", "--for", "1s", "--guard", "3%"]);
    assert_eq!(guarded.status.code(), Some(4), "{}", stderr(&guarded));
    assert!(stderr(&guarded).contains("too few"), "{}", stderr(&guarded));
    assert_eq!(scene.contents(), [], "nothing was changed");
    let wrong = scene.run(&["apply", "io", "--guard", "none"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}
