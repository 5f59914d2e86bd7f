use super::*;
use crate::{AfterReply, Parts, TimeClass, Usage};

fn of_users(names: std::ops::Range<usize>) -> DigestTotals {
    let mut totals = DigestTotals::default();
    names.for_each(|at| totals.count_user(at.to_string().as_bytes(), 1));
    totals
}

#[test]
fn merged_digests_keep_the_limit_of_users_and_every_call() {
    let mut totals = of_users(0..20);
    totals.merge(&of_users(10..60));
    assert_eq!(totals.users.len(), USERS_MAX + 1);
    assert_eq!(totals.users.values().sum::<u64>(), 70);
    assert!(totals.users[OTHER_USERS] >= 28);
}

const NOBODY: crate::Identity = crate::Identity { user: None, host: None, database: None };
const KEY: DigestKey = DigestKey { text: 1, schema: 0 };
const LIMIT: DigestsMax = DigestsMax(10);

fn parts(of: &[(TimeClass, u64)]) -> Parts {
    let mut parts = Parts::default();
    of.iter().for_each(|(class, ns)| parts.add(*class, *ns));
    parts
}

/// A statement that ran a third of its time on a processor and waited for a row lock in the rest.
fn waited(start_ns: u64, end_ns: u64) -> Statement<'static> {
    let latency = end_ns - start_ns;
    let of = [(TimeClass::Cpu, latency / 3), (TimeClass::RowLock, latency - latency / 3)];
    Statement {
        latency_ns: Some(latency),
        parts: Some(parts(&of)),
        usage: Some(Usage { read_bytes: 4096, ..Usage::default() }),
        ..Statement::unread(end_ns, &NOBODY)
    }
}

fn name() -> DigestName {
    DigestName { text: "SELECT ?".into(), schema: None, cut: false }
}

fn count(interval: &mut Interval, statement: &Statement<'_>) {
    interval.count(statement, KEY, LIMIT, name, |one| Sample::of(one, None));
}

#[test]
fn the_parts_of_an_interval_sum_to_its_latencies_and_its_load_to_the_time_inside() {
    let mut interval = Interval::begin(1_000);
    // One began before the interval, one is all inside.
    for statement in [waited(400, 1_300), waited(1_100, 1_200)] {
        count(&mut interval, &statement);
    }
    interval.book_time(Some(1_500), 2_000, KEY, LIMIT, name);
    let digest = &interval.digests[&KEY];
    for (spent, active_ns) in
        [(&interval.spent, interval.active_ns), (&digest.spent, digest.active_ns)]
    {
        let parts = spent.parts.get().unwrap();
        assert_eq!(parts.total(), interval.latency_ns.sum());
        assert_eq!(parts.get(TimeClass::Cpu), 300 + 33);
        let load = spent.load(false).unwrap();
        assert_eq!((active_ns, load.total()), (300 + 100 + 500, 300 + 100));
        assert_eq!(load.get(TimeClass::Cpu), 100 + 33, "a third of the time inside");
        assert_eq!(spent.not_told_ns(active_ns, false), Some(500), "one still runs");
        assert_eq!(spent.usage.get().unwrap().read_bytes, 8192);
    }
}

#[test]
fn what_a_statement_that_runs_does_at_the_end_is_told_since_when_it_does_it() {
    let mut interval = Interval::begin(1_000);
    let now = |since_ns| NowWait { class: TimeClass::RowLock, since_ns };
    // It has waited since before the interval; the other one for the last 300 of 500.
    for (start, since_ns) in [(200, 300), (1_500, 1_700)] {
        interval.book_time(Some(start), 2_000, KEY, LIMIT, name);
        interval.book_now(now(since_ns), Some(start), 2_000, KEY);
    }
    interval.book_now(now(0), None, 2_000, KEY);
    let digest = &interval.digests[&KEY];
    for (spent, active_ns) in
        [(&interval.spent, interval.active_ns), (&digest.spent, digest.active_ns)]
    {
        let load = spent.load(true).unwrap();
        assert_eq!((active_ns, load.get(TimeClass::RowLock)), (1_500, 1_300));
        assert_eq!(spent.not_told_ns(active_ns, true), Some(200));
    }
}

#[test]
fn a_sum_of_which_a_part_was_not_measured_is_not_known_and_nothing_is_not_zero() {
    let mut interval = Interval::begin(1_000);
    assert_eq!((interval.spent.parts.get(), interval.spent.load(false)), (None, None));
    count(&mut interval, &waited(1_100, 1_200));
    assert!(interval.spent.parts.get().is_some());
    count(&mut interval, &Statement { parts: None, usage: None, ..waited(1_100, 1_200) });
    let Spent { parts, usage, .. } = &interval.spent;
    assert_eq!((parts.get(), usage.get(), interval.spent.load(false)), (None, None, None));
    assert_eq!(interval.spent.not_told_ns(interval.active_ns, false), None);
}

#[test]
fn where_nothing_has_ended_all_is_not_told_yet_if_parts_are_measured_at_all() {
    let mut interval = Interval::begin(1_000);
    interval.book_time(Some(1_500), 2_000, KEY, LIMIT, name);
    let not_told = |is_measured| interval.spent.not_told_ns(interval.active_ns, is_measured);
    assert_eq!((not_told(true), not_told(false)), (Some(500), None));
}

#[test]
fn parts_that_do_not_sum_to_the_latency_are_not_those_of_the_statement() {
    let mut interval = Interval::begin(1_000);
    count(&mut interval, &Statement { latency_ns: Some(99), ..waited(1_100, 1_200) });
    assert_eq!(interval.spent.parts.get(), None);
    assert_eq!(interval.digests[&KEY].samples.slowest.as_ref().unwrap().parts, None);
}

#[test]
fn a_statement_without_a_start_is_missing_in_latencies_and_parts_alike() {
    let mut interval = Interval::begin(1_000);
    count(&mut interval, &Statement { latency_ns: None, ..waited(1_100, 1_200) });
    count(&mut interval, &waited(1_100, 1_200));
    assert_eq!(interval.spent.parts.get().unwrap().total(), interval.latency_ns.sum());
    assert_eq!(interval.spent.load(false).unwrap().total(), interval.active_ns);
}

#[test]
fn merging_keeps_where_the_time_went() {
    let mut intervals = [Interval::begin(1_000), Interval::begin(1_000)];
    for (interval, end_ns) in intervals.iter_mut().zip([1_300, 1_600]) {
        count(interval, &waited(700, end_ns));
        interval.book_after_reply(Some(KEY), 7);
        interval.book_after_reply(None, 5);
        let of_digest = interval.digests[&KEY].spent.after_reply;
        assert_eq!((interval.spent.after_reply.get(), of_digest.get()), (Some(12), Some(7)));
    }
    let [mut first, second] = intervals.map(|interval| interval.digests[&KEY].clone());
    first.merge(&second);
    let spent = &first.spent;
    assert_eq!(spent.parts.get().unwrap().total(), 600 + 900);
    assert_eq!(spent.load(false).unwrap().total(), first.active_ns);
    assert_eq!(spent.usage.get().unwrap().read_bytes, 8192);
    assert_eq!(spent.after_reply, AfterReply { ns: 14, statements: 2 });
    // The sum of the digests beyond a limit may have nothing yet.
    let mut other = DigestTotals::default();
    other.merge(&first);
    assert_eq!(other.spent, first.spent);
}

#[test]
fn merged_digests_keep_what_a_server_calls_them() {
    let digest = |of: Option<Reading<&str>>| DigestTotals {
        server_digest: of.map(|reading| reading.map(Arc::from)),
        ..DigestTotals::default()
    };
    let known = digest(Some(Reading::Value("7f")));
    for mut other in [digest(None), digest(Some(Reading::absent("not asked yet")))] {
        let mut first = known.clone();
        first.merge(&other);
        other.merge(&known);
        for merged in [first, other] {
            assert_eq!(merged.server_digest, known.server_digest);
        }
    }
}

#[test]
fn a_start_that_is_not_known_makes_the_load_not_known_and_is_counted() {
    let key = |text| DigestKey { text, schema: 0 };
    let mut interval = Interval::begin(1_000);
    for (text, latency_ns) in [(1, Some(100)), (2, None)] {
        let statement = Statement { latency_ns, ..Statement::unread(1_900, &NOBODY) };
        interval.count(&statement, key(text), LIMIT, name, |one| Sample::of(one, None));
    }
    interval.book_time(None, 2_000, key(3), LIMIT, name);
    interval.end_ns = 2_000;
    assert_eq!((interval.starts_unknown, interval.active_sessions()), (2, None));
    let loads = [1, 2, 3].map(|text| interval.digests[&key(text)].active_sessions(1_000));
    assert_eq!(loads, [Some(0.1), None, None]);
}
