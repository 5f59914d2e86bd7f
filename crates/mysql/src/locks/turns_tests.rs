use std::time::Instant;

use waggle_model::Reading;

use super::super::sessions::Transaction;
use super::super::wait::{Lock, LockKind, Source};
use super::*;

/// The looks are so far apart.
const APART: f64 = 1.0;

/// A holder: its connection id, the id of its transaction where SQL tells it, and the age where the tap does.
type Holder = (u64, Option<&'static str>, Option<f64>);

/// A look at session 9, which waits for these, so long after the first one.
fn look(waited_s: f64, after: f64, holders: &[Holder]) -> Locks {
    let wait = Wait {
        waiter: Key::Session(9),
        lock: Lock { object: Some("shop.t".to_owned()), ..Lock::of(LockKind::Metadata) },
        waited_s: Some(waited_s),
        blockers: holders.iter().map(|(id, ..)| Key::Session(*id)).collect(),
        by_elimination: false,
        not_all: None,
        overtaken: false,
        unknown: None,
        source: Source::Sql,
    };
    let session = |(id, trx, age_s): &Holder| {
        let transaction = trx.map(|id| Transaction {
            id: id.to_owned(),
            age_s: *age_s,
            rows_locked: 0,
            rows_modified: 0,
            rolling_back: false,
        });
        let transaction_s = age_s.filter(|_| trx.is_none());
        (Key::Session(*id), Session { transaction, transaction_s, ..Session::default() })
    };
    Locks {
        row_waits: Reading::absent("not read"),
        row_waiters: None,
        other_waits: Reading::Value(1),
        waits_without_lock: 0,
        kept_out: None,
        tree: Tree::build(vec![wait]),
        sessions: holders.iter().map(session).collect(),
        not_known: Vec::new(),
        memory_after: None,
        over: start() + Duration::from_secs_f64(after),
        statements: 0,
    }
}

fn start() -> Instant {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    *START
}

fn overtaken(before: &[Holder], now: &[Holder]) -> bool {
    overtaken_after(5.0, before, now)
}

fn overtaken_after(waited_s: f64, before: &[Holder], now: &[Holder]) -> bool {
    let mut now = look(waited_s, APART, now);
    now.compare(&look(4.0, 0.0, before));
    now.tree.waits()[0].overtaken
}

#[test]
fn who_holds_it_on_takes_no_turn() {
    let idle = [(1, Some("71"), Some(60.0))];
    assert!(!overtaken(&idle, &idle));
    let joined = [(1, Some("71"), Some(60.0)), (2, Some("80"), Some(0.0))];
    assert!(!overtaken(&idle, &joined), "the first one is in the way as before");
}

#[test]
fn all_others_or_all_in_other_transactions_take_turns() {
    let before = [(1, Some("71"), Some(0.0)), (2, Some("72"), Some(0.0))];
    assert!(overtaken(&before, &[(3, Some("75"), Some(0.0))]));
    assert!(overtaken(&before, &[(1, Some("76"), Some(0.0)), (2, Some("77"), Some(0.0))]));
    assert!(!overtaken(&before, &[(1, Some("76"), Some(0.0)), (2, Some("72"), Some(1.0))]));
}

#[test]
fn without_ids_only_a_begin_that_was_seen_tells_transactions_apart() {
    assert!(overtaken(&[(1, None, Some(0.3))], &[(1, None, Some(0.2))]));
    assert!(!overtaken(&[(1, None, Some(0.3))], &[(1, None, Some(1.3))]), "it is the same one");
    assert!(!overtaken(&[(1, None, None)], &[(1, None, None)]));
    // Transactions of MariaDB that have written nothing all have this id.
    assert!(!overtaken(&[(1, Some("0"), None)], &[(1, Some("0"), None)]));
    assert!(!overtaken(&[(1, Some("71"), None)], &[(1, Some("0"), None)]));
}

#[test]
fn who_waits_anew_was_not_overtaken() {
    let (before, now) = ([(1, Some("71"), None)], [(2, Some("72"), None)]);
    assert!(overtaken_after(5.0, &before, &now));
    assert!(!overtaken_after(0.0, &before, &now), "it waits for less time than before");
}

#[test]
fn a_second_look_is_worth_it_where_somebody_may_have_come_later() {
    let may = |holders: &[Holder]| look(5.0, 0.0, holders).may_take_turns();
    assert!(!may(&[(1, Some("71"), Some(60.0))]), "it has been there before the wait");
    assert!(may(&[(1, Some("71"), Some(2.0))]));
    assert!(may(&[(1, None, None)]), "nobody knows");
    assert!(may(&[(1, Some("71"), Some(60.0)), (2, Some("72"), Some(60.0))]), "there are several");
}
