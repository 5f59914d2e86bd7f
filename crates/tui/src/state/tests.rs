//! What the state does with servers.

mod servers;

use waggle_model::{DigestKey, DigestName, Ending, Loss, Reading, TimeClass};

use super::{App, Filter, Missed, Options, Sort};
pub(crate) use servers::{
    KINDS, held_up, measured_second_of, measuring, run_the_busiest, running, second_of, watching,
};
use servers::{Kind, LIMIT, SECOND, key};

fn texts(app: &App) -> Vec<String> {
    let server = app.server().unwrap();
    let frame = server.shown().unwrap();
    let text = |at| server.row(frame, at).unwrap().name.text.to_string();
    (0..server.listed.len()).map(text).collect()
}

fn filtered(typed: &str) -> Vec<String> {
    let mut app = watching(&[2], 1);
    app.filter = Filter::parse(typed).unwrap();
    app.list();
    texts(&app)
}

#[test]
fn digests_are_ranked_by_what_was_asked_for() {
    let mut app = watching(&[2], 1);
    let mut first = |sort| {
        app.sort = sort;
        app.list();
        texts(&app)[0].split(' ').take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(first(Sort::Load), "SELECT `o`");
    assert_eq!(first(Sort::Calls), "SELECT `c`");
    assert_eq!(first(Sort::P95), "SELECT `o`");
    assert_eq!(first(Sort::P99), "SELECT `o`");
    assert_eq!(first(Sort::Examined), "SELECT `o`");
    assert_eq!(first(Sort::Errors), "UPDATE `käufer`");
}

#[test]
fn digests_are_ranked_by_every_class_of_time_that_there_is_and_by_no_other() {
    let orders = |app: &App| app.shown().unwrap().1.orders();
    assert_eq!(orders(&watching(&[2], 1)), Sort::ALWAYS);
    let mut app = measuring(2);
    let classes = [
        TimeClass::Cpu,
        TimeClass::RunQueue,
        TimeClass::DiskRead,
        TimeClass::Sync,
        TimeClass::Commit,
        TimeClass::NetworkWrite,
        TimeClass::RowLock,
        TimeClass::Sleep,
        TimeClass::Other,
    ];
    assert_eq!(orders(&app)[Sort::ALWAYS.len()..], classes.map(Sort::Time));
    let mut first = |class| {
        app.sort = Sort::Time(class);
        app.list();
        texts(&app)[0].split(' ').take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(first(TimeClass::RowLock), "UPDATE `käufer`");
    assert_eq!(first(TimeClass::Sync), "COMMIT");
    assert_eq!(first(TimeClass::DiskRead), "SELECT `o`");
    // What still runs is ranked by what it does now.
    assert_eq!(first(TimeClass::Sleep), "SELECT `SLEEP`");
    let one = app.server_mut().unwrap();
    one.step(-1);
    assert_eq!(one.shown().unwrap().orders().len(), Sort::ALWAYS.len() + classes.len());
}

#[test]
fn the_load_of_every_digest_by_class_sums_to_its_load_and_to_that_of_all() {
    let app = measuring(1);
    let (_, frame) = app.shown().unwrap();
    let by = frame.load_by().unwrap();
    let of_rows = |class| -> f64 {
        frame.rows.iter().filter_map(|row| Some(row.load_by()?.get(class))).sum()
    };
    for (class, load) in by.iter() {
        assert!((of_rows(class) - load).abs() < 1e-4 * load, "{class:?}: {load}");
    }
    let not_told = frame.overview.active.unwrap() - by.sum();
    assert!((not_told - 0.3).abs() < 1e-3, "{not_told}: one still runs, and has slept since");
    for row in frame.rows.iter().filter(|row| row.calls > 0) {
        let sum = row.load_by().unwrap().sum();
        assert!((sum - row.load.get().unwrap()).abs() < 1e-4, "{}: {sum}", row.name.text);
    }
}

#[test]
fn every_term_of_a_filter_must_hold() {
    assert_eq!(filtered("").len(), 5);
    assert_eq!(filtered("SBTEST1"), [KINDS[0].text]);
    assert_eq!(filtered("user:report kind:select"), [KINDS[1].text]);
    assert_eq!(filtered("user:report kind:update"), [""; 0]);
    assert_eq!(filtered("db:müller"), [KINDS[3].text]);
    assert_eq!(filtered("kind:write"), [KINDS[3].text]);
    assert_eq!(filtered("re:^(commit|set)").len(), 2);
    assert_eq!(filtered("db:re:^s.op$").len(), 3);
    assert_eq!(filtered("\"GROUP BY\""), [KINDS[1].text]);
    assert_eq!(filtered("("), [KINDS[1].text], "a part of a text is no pattern");
}

#[test]
fn a_bad_pattern_is_answered_by_a_sentence() {
    for (typed, word) in [
        ("re:(", "re:("),
        ("re:a{1000000}", "re:a"),
        ("kind:selekt", "no such kind"),
        ("db:", "nothing to look for"),
        ("user:re:[", "re:["),
    ] {
        let why = Filter::parse(typed).unwrap_err();
        assert!(why.contains(word), "{typed}: {why}");
    }
}

#[test]
fn blocked_sessions_come_first_then_the_oldest() {
    let app = watching(&[2], 1);
    let frame = app.server().unwrap().shown().unwrap();
    let ids: Vec<u64> = frame.sessions.iter().map(|session| session.connection_id).collect();
    assert_eq!(ids, [29, 30, 22, 21]);
    assert!(frame.sessions.iter().all(|session| !session.text.contains("17")), "literals");
}

#[test]
fn the_history_keeps_to_its_budget_and_reaches_half_an_hour_at_most() {
    const BUDGET: usize = 100_000;
    let mut app = App::new(Options { cpus: 2, literals: false }).with_budget(BUDGET);
    for nth in 0..300 {
        app.take(second_of(2, nth, &KINDS[2..]));
        let one = app.server().unwrap();
        assert!(one.history.bytes() <= BUDGET, "{} bytes", one.history.bytes());
    }
    let reach = app.server().unwrap().history.reach_ns() / SECOND;
    assert!((10..299).contains(&reach), "{reach} s");

    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..2_000 {
        app.take(second_of(2, nth, &KINDS[4..]));
    }
    assert_eq!(app.server().unwrap().history.reach_ns() / SECOND, 1_801);
}

#[test]
fn what_is_forgotten_leaves_nothing_behind() {
    // So little that every interval but the newest is forgotten again.
    let mut app = App::new(Options { cpus: 2, literals: false }).with_budget(1);
    for nth in 0..5 {
        app.take(measured_second_of(2, nth, &KINDS));
        assert_eq!(app.server().unwrap().history.bytes(), 0);
    }
}

#[test]
fn an_interval_of_the_history_says_what_it_does_not_know() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    let mut crowd = second_of(2, 0, &KINDS);
    for at in 0..1_000_u64 {
        let name = DigestName { text: format!("SELECT {at}").into(), schema: None, cut: false };
        let key = DigestKey { text: at, schema: 0 };
        crowd.record.interval.book_time(Some(0), 1_000 * SECOND + at, key, LIMIT, || name);
    }
    app.take(crowd);
    app.take(second_of(2, 1, &KINDS));
    let one = app.server_mut().unwrap();
    one.step(-1);
    let frame = one.shown().unwrap().clone();
    assert!(frame.rows.len() < 80 && frame.rows_left_out > 900, "{}", frame.rows.len());
    assert_eq!(frame.load_of(&DigestKey { text: 1, schema: 0 }), None);
    one.follow();
    let newest = one.shown().unwrap();
    assert_eq!(newest.load_of(&DigestKey { text: 1, schema: 0 }), Some(0.0));
}

#[test]
fn samples_and_users_outlive_their_interval() {
    let mut app = watching(&[2], 1);
    app.take(second_of(2, 1, &[]));
    app.take(second_of(2, 2, &[]));
    let one = app.server().unwrap();
    let frame = one.shown().unwrap();
    let [newest, kept] = one.details(frame, &key(&KINDS[1]));
    assert!(newest.is_none());
    let kept = kept.unwrap();
    assert!(kept.samples.slowest.is_some() && kept.users.contains_key(b"reports".as_slice()));
}

#[test]
fn a_restarted_server_with_the_same_pid_is_another_one() {
    let mut app = watching(&[2], 2);
    let mut again = second_of(2, 3, &KINDS);
    again.record.server.start_ticks += 1;
    app.take(again);
    assert_eq!(app.servers.len(), 2);
}

#[test]
fn few_of_the_servers_that_ended_are_kept_and_the_one_in_front_stays() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for pid in 1..20 {
        let mut last = second_of(pid, 0, &[]);
        last.record.ended = Some(Ending::default());
        app.take(last);
        app.take(second_of(100, u64::from(pid), &[]));
    }
    assert_eq!(app.servers.len(), super::ENDED_MAX + 1);
    assert_eq!(app.server().unwrap().server.pid, 1);
}

#[test]
fn losses_are_summed_over_the_whole_watch() {
    let mut app = watching(&[2], 1);
    for nth in 1..3 {
        let mut snapshot = second_of(2, nth, &[]);
        snapshot.record.interval.losses.add(Loss::RingFull, 5);
        app.take(snapshot);
    }
    assert_eq!(app.server().unwrap().lost.statements(), 10);
}

#[test]
fn what_the_view_did_not_get_is_counted_and_its_losses_are() {
    let mut app = watching(&[2], 1);
    let mut snapshot = second_of(2, 1, &[]);
    snapshot.record.interval.losses.add(Loss::RingFull, 5);
    let mut missed = Missed::of(&snapshot.record);
    missed.add(&snapshot.record);
    app.miss(&missed);
    app.take(second_of(2, 3, &[]));
    let server = app.server().unwrap();
    assert_eq!((server.missed, server.lost.statements(), server.ended), (2, 10, false));
    snapshot.record.ended = Some(Ending::default());
    app.miss(&Missed::of(&snapshot.record));
    assert!(app.server().unwrap().ended);
}

#[test]
fn many_servers_share_what_the_history_may_take() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    for nth in 0..4 {
        for pid in 0..100 {
            app.take(second_of(pid, nth, &KINDS[2..3]));
        }
    }
    let all: usize = app.servers.iter().map(|one| one.history.bytes()).sum();
    assert!(all > 0 && all <= super::BUDGET_OF_ALL, "{all}");
}

#[test]
fn the_view_opens_on_the_server_with_the_highest_load_and_stays_there() {
    let idle = |pid, nth| {
        let mut snapshot = second_of(pid, nth, &[]);
        snapshot.record.running = Reading::Value(Vec::new());
        snapshot
    };
    let second = |app: &mut App, nth, kinds: [&[Kind]; 3]| {
        for (pid, kinds) in (1..).zip(kinds) {
            let all = if kinds.is_empty() { idle(pid, nth) } else { second_of(pid, nth, kinds) };
            app.take(all);
        }
        app.end_of_interval();
    };
    let pid = |app: &App| app.server().unwrap().server.pid;
    let mut app = App::new(Options { cpus: 4, literals: false });
    second(&mut app, 0, [&[], &[], &[]]);
    assert_eq!(pid(&app), 1, "nothing has a load yet");
    second(&mut app, 1, [&[], &KINDS[..1], &KINDS]);
    assert_eq!(pid(&app), 3);
    second(&mut app, 2, [&KINDS, &[], &[]]);
    assert_eq!(pid(&app), 3, "nobody is led away from what he reads");

    let mut app = App::new(Options { cpus: 4, literals: false });
    second(&mut app, 0, [&[], &[], &[]]);
    app.on_key(crate::Key::Char('2'));
    second(&mut app, 1, [&KINDS, &[], &[]]);
    assert_eq!(pid(&app), 2, "the user chose");
}
