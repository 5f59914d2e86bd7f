//! Where the time goes.

use waggle_model::{Interval, TimeClass};

use super::{golden, press};
use crate::input::Key;
use crate::state::tests::{KINDS, measured_second_of, measuring, second_of, watching};
use crate::state::{App, Options, Sort};
use crate::view::picture;

#[test]
fn where_the_time_goes_in_the_lists_and_in_a_digest() {
    let mut app = measuring(30);
    golden("times", &mut app);
    app.sort = Sort::Time(TimeClass::RowLock);
    app.list();
    golden("times_ranked", &mut app);
    press(&mut app, &[Key::Home, Key::Enter]);
    app.server_mut().unwrap().scrolled = 8;
    golden("times_digest", &mut app);
}

/// The numbers in the lines of an opened digest between two of its lines.
fn numbers_between(app: &App, first: &str, last: &str) -> Vec<Vec<f64>> {
    let picture = picture(app, 120);
    let lines = picture.lines().skip_while(|line| !line.starts_with(first)).skip(2);
    let lines = lines.take_while(|line| !line.starts_with(last));
    let numbers = |line: &str| line.split(' ').filter_map(|word| word.parse().ok()).collect();
    lines.map(numbers).collect()
}

#[test]
fn the_classes_of_a_digest_sum_to_its_latency() {
    let mut app = measuring(20);
    for place in 0..KINDS.len() {
        press(&mut app, &[Key::Home]);
        (0..place).for_each(|_| drop(app.on_key(Key::Down)));
        app.on_key(Key::Enter);
        let picture = picture(&app, 120);
        if picture.contains("not measured: no call has ended") {
            app.on_key(Key::Esc);
            continue;
        }
        let classes = numbers_between(&app, "Where the time goes", "  sum");
        assert!(!classes.is_empty() && classes.iter().all(|of| of.len() == 2), "{picture}");
        let latency = picture.lines().find(|line| line.starts_with("avg ms")).unwrap();
        let latency: Vec<f64> =
            latency.split(' ').filter_map(|word| word.parse().ok()).take(2).collect();
        for (at, avg) in latency.into_iter().enumerate() {
            let sum: f64 = classes.iter().map(|of| of[at]).sum();
            // Each is rounded to three figures or two places.
            assert!((sum - avg).abs() <= 0.01 * avg + 0.02, "{sum} is not {avg}: {picture}");
        }
        app.on_key(Key::Esc);
    }
}

#[test]
fn where_the_time_goes_is_said_to_be_unknown_with_the_reason() {
    let mut app = watching(&[2], 1);
    let why = "the kernel has no tracepoint sched_switch";
    assert!(picture(&app, 120).contains(&format!("where the time goes is not measured: {why}")));
    app.on_key(Key::Enter);
    let opened = picture(&app, 120);
    assert!(opened.contains(&format!("Where time goes     not measured: {why}")), "{opened}");
    assert!(!opened.contains("Beside it"), "{opened}");
    // One statement that lacks it makes the sums unknown, never smaller.
    let mut some = measured_second_of(2, 1, &KINDS);
    let mut one = second_of(2, 1, &KINDS[..1]);
    let (key, totals) = one.record.interval.digests.drain().next().unwrap();
    some.record.interval.digests.get_mut(&key).unwrap().merge(&totals);
    some.record.interval.spent = totals.spent;
    app.take(some);
    app.on_key(Key::Esc);
    assert!(picture(&app, 120).contains("is not measured: of some statements it is not known"));
}

#[test]
fn while_nothing_ends_the_load_is_what_sessions_do_now_or_not_told_yet() {
    let mut app = App::new(Options { cpus: 2, literals: false });
    app.take(measured_second_of(2, 0, &[]));
    let shown = picture(&app, 120);
    assert!(shown.contains("\ntime  Z sleep 25%  . not told yet 75%\n"), "{shown}");
    assert!(shown.contains("CPUs [Z....  "), "{shown}");
    let orders = [&Sort::ALWAYS[..], &[Sort::Time(TimeClass::Sleep)]].concat();
    assert_eq!(app.shown().unwrap().1.orders(), orders);
    let mut idle = measured_second_of(2, 1, &[]);
    let Interval { start_ns, end_ns, .. } = idle.record.interval;
    idle.record.interval = Interval { start_ns, end_ns, ..Interval::default() };
    app.take(idle);
    assert!(picture(&app, 120).contains("\ntime  nothing ran\n"), "{}", picture(&app, 120));
}

#[test]
fn an_older_interval_that_lacks_it_makes_only_the_sums_of_the_past_unknown() {
    let mut app = watching(&[2], 1);
    app.take(measured_second_of(2, 1, &KINDS));
    app.on_key(Key::Enter);
    let opened = picture(&app, 120);
    let line =
        |begin: &str| opened.lines().find(|line| line.starts_with(begin)).unwrap().to_owned();
    for (begin, share) in [("R disk read", "58%"), ("  sum", "100%")] {
        let words: Vec<String> = line(begin).split_whitespace().map(str::to_owned).collect();
        let at = words.iter().position(|word| word == share).unwrap();
        assert_eq!(words[at - 1], "-", "{opened}");
        assert!(words[at - 2].parse::<f64>().unwrap() > 100.0, "{opened}");
    }
    assert_eq!(line("switches to wait").split_whitespace().last(), Some("-"), "{opened}");
}
