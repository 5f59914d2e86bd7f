//! What is seen at a glance of a server that is held up by something outside of it.

use waggle_model::{
    Age, Logins, ProcessState, ProcessorLimit, ProcessorUse, Reading, StorageWaits, TimeClass,
    Unread,
};

use super::super::header::of_server;
use super::super::look::{DIM, WARN};
use super::super::number::ms;
use super::*;

/// The first lines of the screen.
fn head(app: &App, width: u16) -> String {
    text(&drawn(app, ALL, width, 24)).lines().take(8).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_server_that_stands_still_says_so_before_its_numbers_and_in_its_tab() {
    let mut app = watching(&[2, 3], 2);
    for (state, words) in [
        (ProcessState::Stopped, " by a signal (SIGSTOP); to resume it: kill -CONT 3\n"),
        (
            ProcessState::Traced { by: 77 },
            ": a debugger (pid 77) holds the process; resume it there",
        ),
    ] {
        let mut last = second_of(3, 3, &KINDS);
        last.record.state = Reading::Value(state);
        app.take(last);
        let seen = head(&app, 80);
        assert!(seen.contains("2 mariadb 3 STOPPED"), "{seen}");
        assert!(!seen.contains("\nSTOPPED"), "the other one is in front: {seen}");
        app.on_key(Key::Tab);
        let seen = head(&app, 80);
        assert!(seen.contains(&format!("\nSTOPPED{words}")), "{seen}");
        app.on_key(Key::Tab);
    }
    app.take(second_of(3, 4, &KINDS));
    app.on_key(Key::Tab);
    let seen = head(&app, 80);
    assert!(!seen.contains("STOPPED"), "it goes on: {seen}");
}

#[test]
fn a_server_whose_group_is_frozen_names_the_file_as_far_as_there_is_room() {
    let mut app = watching(&[2], 1);
    let by = "/sys/fs/cgroup/system.slice/docker-0123456789abcdef.scope/cgroup.freeze";
    let mut last = second_of(2, 2, &KINDS);
    last.record.state = Reading::Value(ProcessState::Frozen { by: by.into() });
    app.take(last);
    let words =
        "\nFROZEN with its control group; to thaw it write 0 to /sys/fs/cgroup/system.slic…\n";
    assert!(head(&app, 80).contains(words), "{}", head(&app, 80));
    assert!(head(&app, 200).contains(&format!(" to {by}\n")), "{}", head(&app, 200));
}

#[test]
fn who_fills_the_processors_is_seen_in_one_line() {
    let used =
        |busy, server, stolen| ProcessorUse { processors: 2, busy, server, stolen, limit: None };
    let mut app = measuring(1);
    for (nth, used, line) in [
        (2, used(0.5, 0.4, Some(0.0)), "host 2 CPUs 25% busy  server 20%  others 5%  queued "),
        (
            3,
            used(1.98, 0.04, Some(0.0)),
            "host 2 CPUs FULL, 99% busy  server 2%  OTHERS 97%  queued ",
        ),
        (
            4,
            used(1.98, 1.9, None),
            "host 2 CPUs FULL, 99% busy  server 95%  others 4%  stolen -  queued ",
        ),
        (
            5,
            used(0.9, 0.8, Some(1.0)),
            "host 2 CPUs FULL, 45% busy  server 40%  others 5%  STOLEN 50%  queued ",
        ),
        // The ticks of the host are coarser than the clock of the server.
        (6, used(0.1, 0.2, None), "host 2 CPUs 5% busy  server 10%  others 0%  stolen -  queued "),
        (
            7,
            ProcessorUse { processors: 1, ..used(0.99, 0.0, Some(0.0)) },
            "host 1 of 2 CPUs FULL, 99% busy  server 0%  OTHERS 99%  queued ",
        ),
    ] {
        let mut last = measured_second_of(2, nth, &KINDS);
        last.record.processors = Reading::Value(used);
        app.take(last);
        let seen = head(&app, 80);
        let found = seen.lines().find(|seen| seen.starts_with(line));
        assert!(found.is_some_and(|line| line.ends_with(" ms")), "{line} is not in {seen}");
    }
    let mut last = measured_second_of(2, 8, &KINDS);
    last.record.processors = Reading::absent("/proc/stat");
    app.take(last);
    assert!(head(&app, 80).contains("\nhost CPUs not measured  queued "), "{}", head(&app, 80));
}

#[test]
fn a_limit_that_holds_the_server_back_is_told_aloud() {
    let mut app = measuring(1);
    for (nth, held_back, words) in [(2, 0.05, "held back 5%"), (3, 0.8, "HELD BACK 80%")] {
        let mut last = measured_second_of(2, nth, &KINDS);
        let limit = Some(ProcessorLimit { cores: 0.5, held_back });
        if let Reading::Value(used) = &mut last.record.processors {
            used.limit = limit;
        }
        app.take(last);
        let seen = head(&app, 120);
        assert!(seen.contains(&format!("  limit 0.50 CPUs  {words}  queued ")), "{seen}");
    }
}

#[test]
fn waits_for_storage_are_told_where_there_are_any() {
    let mut app = measuring(1);
    let told = [
        (2, 0.004, None),
        (3, 0.2, Some(" ms  disk waits 20%")),
        (4, 0.95, Some(" ms  DISK WAITS 95%")),
    ];
    for (nth, share, words) in told {
        let mut last = measured_second_of(2, nth, &KINDS);
        last.record.storage = Reading::Value(StorageWaits { share, of_group: false });
        app.take(last);
        let seen = head(&app, 120);
        let is_told = seen.to_lowercase().contains("disk waits");
        assert_eq!(is_told, words.is_some(), "{seen}");
        assert!(words.is_none_or(|words| seen.contains(words)), "{seen}");
    }
}

#[test]
fn who_waits_before_a_statement_is_told_where_somebody_does_or_nobody_knows() {
    let mut app = measuring(1);
    let oldest = Some(Age { ns: 4_800_000_000, is_at_least: true });
    let unread = Unread { requests: 20, oldest, to_accept: 0 };
    let not_known = Reading::absent("a pool of threads");
    for (nth, logins, unread, words) in [
        (2, Reading::Value(Logins::default()), Unread::default(), None),
        (
            3,
            not_known,
            unread,
            Some(
                "\nlogins under way not known  20 requests wait unread, the oldest for 4.8 s at least\n",
            ),
        ),
    ] {
        let mut last = measured_second_of(2, nth, &KINDS);
        (last.record.logins, last.record.unread) = (logins, Reading::Value(unread));
        app.take(last);
        let seen = head(&app, 120);
        assert_eq!(seen.contains("unread"), words.is_some(), "{seen}");
        assert!(words.is_none_or(|words| seen.contains(words)), "{seen}");
    }
    let lines = of_server(&app, 120);
    let styled = |words: &str| {
        let span = lines.iter().flatten().find(|span| span.content.starts_with(words));
        span.unwrap().style
    };
    assert_eq!((styled("logins under way"), styled("20 requests")), (DIM, WARN));
}

#[test]
fn a_statement_is_queued_before_its_start_too() {
    let app = measuring(1);
    let (seen, (_, frame)) = (head(&app, 80), app.shown().unwrap());
    let spent = frame.spent.as_ref().unwrap();
    let after_start_ns = spent.parts.as_ref().unwrap().get(TimeClass::RunQueue);
    let before_start_ns = spent.usage.unwrap().queue_before_start_ns as f64;
    assert!(before_start_ns > 0.0 && after_start_ns > 0.0);
    let queued = (before_start_ns + after_start_ns) / frame.overview.statements as f64;
    assert!(seen.contains(&format!("  queued {} ms\n", ms(Some(queued)))), "{seen}");
}
