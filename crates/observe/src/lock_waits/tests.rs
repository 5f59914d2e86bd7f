use waggle_model::{Identity, NowWait, SAMPLE_TEXT_MAX};

use super::*;

fn news(class: TimeClass, at_ns: u64, waited_ns: Option<u64>) -> LockWaitNews {
    LockWaitNews { pid: 1, thd: 7, noted_start_us: 5, class, at_ns, waited_ns }
}

fn take(book: &mut LockWaitBook) -> Vec<LockWait> {
    let identity = Identity::default();
    let statement = Statement::unread(0, &identity);
    book.take(&Statement { pid: 1, thd: 7, noted_start_us: Some(5), ..statement })
}

fn keep(book: &mut LockWaitBook, running: &[RunningStatement], looked_ns: u64) -> Vec<Unanswered> {
    book.keep(1, running, looked_ns, &mut |_| None)
}

/// What is kept of a statement that waits and ends without a reply; the digest is the length of its text.
fn kept_of(text: Vec<u8>) -> Seen {
    let running = [RunningStatement {
        thd: 7,
        noted_start_us: Some(5),
        text_length: text.len() as u64,
        text: Some(text),
        ..Default::default()
    }];
    let mut digest = |running: &RunningStatement| {
        let name = DigestName { text: "SELECT".into(), schema: None, cut: false };
        Some((DigestKey { text: running.text_length, schema: 0 }, name))
    };
    let mut book = LockWaitBook::default();
    book.hear(&news(TimeClass::MetadataLock, 100, None));
    assert!(book.keep(1, &running, 200, &mut digest).is_empty());
    book.hear(&news(TimeClass::MetadataLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
    *keep(&mut book, &[], 200).pop().unwrap().seen.unwrap()
}

#[test]
fn of_a_long_text_the_head_is_kept_without_its_password_and_the_digest_of_the_whole() {
    let mut long = b"SELECT '".to_vec();
    long.resize(1 << 20, b'x');
    let seen = kept_of(long);
    let kept = seen.statement.text.unwrap();
    assert_eq!(kept.len(), SAMPLE_TEXT_MAX);
    assert!(kept.capacity() < 2 * SAMPLE_TEXT_MAX, "{}", kept.capacity());
    assert_eq!(seen.digest.unwrap().0.text, 1 << 20);
    let secret = kept_of(b"ALTER USER a IDENTIFIED BY 'tell nobody'".to_vec());
    let kept = String::from_utf8(secret.statement.text.unwrap()).unwrap();
    assert!(kept.starts_with("ALTER USER a IDENTIFIED BY ") && !kept.contains("nobody"));
}

#[test]
fn each_long_wait_is_kept_and_the_short_ones_are_not() {
    let mut book = LockWaitBook::default();
    book.hear(&news(TimeClass::RowLock, 100, None));
    book.hear(&news(TimeClass::RowLock, 200, None));
    book.hear(&news(TimeClass::RowLock, 250 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
    book.hear(&news(TimeClass::MetadataLock, 900 + LONG_WAIT_NS, None));
    let waits = take(&mut book);
    assert_eq!(waits.len(), 1);
    assert_eq!((waits[0].begin_ns, waits[0].length_ns), (200, LONG_WAIT_NS));
    assert!(take(&mut book).is_empty());
}

#[test]
fn a_wait_from_before_waggle_came_begins_where_its_length_says_and_has_its_holder() {
    let mut book = LockWaitBook::default();
    let ended = news(TimeClass::RowLock, 5 * LONG_WAIT_NS, Some(2 * LONG_WAIT_NS));
    book.hear(&ended);
    let held = |by| Blocked { by: vec![by], ..Blocked::default() };
    book.explain_ended(&ended, (2 * LONG_WAIT_NS, 4 * LONG_WAIT_NS), &held(3));
    book.explain_ended(&ended, (3 * LONG_WAIT_NS, 4 * LONG_WAIT_NS), &held(4));
    let waits = take(&mut book);
    assert_eq!((waits[0].begin_ns, &waits[0].blocked), (3 * LONG_WAIT_NS, &Some(held(4))));
}

#[test]
fn a_wait_in_pieces_is_one_and_those_for_rows_are_each_their_own() {
    for (class, lengths) in [
        (TimeClass::MetadataLock, vec![3 * LONG_WAIT_NS]),
        (TimeClass::RowLock, vec![LONG_WAIT_NS, 2 * LONG_WAIT_NS]),
    ] {
        let mut book = LockWaitBook::default();
        book.hear(&news(class, 100, None));
        book.hear(&news(class, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        book.hear(&news(class, 900 + LONG_WAIT_NS, None));
        book.hear(&news(class, 900 + 3 * LONG_WAIT_NS, Some(2 * LONG_WAIT_NS)));
        book.hear(&news(class, 950 + 3 * LONG_WAIT_NS, None));
        let told: Vec<u64> = take(&mut book).iter().map(|wait| wait.length_ns).collect();
        assert_eq!(told, lengths, "{class:?}");
    }
}

#[test]
fn a_wait_that_goes_on_is_dated_from_its_first_piece_and_one_for_a_row_from_its_own_begin() {
    let dated = |book: &LockWaitBook, class, since_ns| {
        let waits = Some(NowWait { class, since_ns });
        let mut running =
            RunningStatement { thd: 7, noted_start_us: Some(5), waits, ..Default::default() };
        book.date(1, &mut running);
        running.waits.unwrap().since_ns
    };
    let later = 900 + LONG_WAIT_NS;
    for (class, since_ns) in [(TimeClass::MetadataLock, 100), (TimeClass::RowLock, later)] {
        let mut book = LockWaitBook::default();
        book.hear(&news(class, 100, None));
        book.hear(&news(class, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        assert_eq!(dated(&book, class, later), later, "{class:?}: the first piece is over");
        book.hear(&news(class, later, None));
        assert_eq!(dated(&book, class, later), since_ns, "{class:?}");
        assert_eq!(dated(&book, TimeClass::Cpu, later), later);
        // The look was before the end of the piece that it saw, which is heard of first.
        book.hear(&news(class, later + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
        assert_eq!(dated(&book, class, later), since_ns, "{class:?}");
    }
}

#[test]
fn who_waits_already_when_waggle_comes_is_met_by_the_first_look() {
    let mut book = LockWaitBook::default();
    let waits = Some(NowWait { class: TimeClass::RowLock, since_ns: 100 });
    let running = RunningStatement {
        thd: 7,
        connection_id: 12,
        noted_start_us: Some(5),
        waits,
        ..Default::default()
    };
    assert!(keep(&mut book, &[running], 300).is_empty());
    assert_eq!(book.unexplained(100), BTreeSet::from([1]));
    book.hear(&news(TimeClass::RowLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
    let killed = keep(&mut book, &[], 400).pop().unwrap();
    assert_eq!((killed.seen.unwrap().statement.connection_id, killed.waits[0].begin_ns), (12, 100));
}

#[test]
fn who_holds_a_lock_is_asked_once_the_wait_is_long_and_until_it_is_known() {
    let mut book = LockWaitBook::default();
    book.hear(&news(TimeClass::RowLock, 100, None));
    assert!(book.unexplained(99).is_empty());
    assert_eq!(book.unexplained(100), BTreeSet::from([1]));
    let holder = Blocked { by: vec![3], ..Blocked::default() };
    book.explain(1, (99, 99), &BTreeMap::from([(7, holder.clone())]));
    assert_eq!(book.unexplained(100), BTreeSet::from([1]), "the look was before");
    book.explain(1, (101, 105), &BTreeMap::from([(7, holder.clone())]));
    assert!(book.unexplained(100).is_empty());
    book.hear(&news(TimeClass::RowLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
    assert_eq!(take(&mut book)[0].blocked, Some(holder));
}

#[test]
fn a_look_that_was_answered_late_tells_of_the_waits_that_lasted_as_long() {
    let mut book = LockWaitBook::default();
    let end_ns = 100 + LONG_WAIT_NS;
    book.hear(&news(TimeClass::RowLock, 100, None));
    book.hear(&news(TimeClass::RowLock, end_ns, Some(LONG_WAIT_NS)));
    let held = |by| BTreeMap::from([(7, Blocked { by: vec![by], ..Blocked::default() })]);
    book.explain(1, (200, end_ns), &held(3));
    book.explain(1, (200, end_ns + 1), &held(4));
    assert_eq!(take(&mut book)[0].blocked.as_ref().unwrap().by, [3]);
}

#[test]
fn an_unknown_holder_is_asked_for_again_while_the_wait_lasts() {
    let mut book = LockWaitBook::default();
    book.hear(&news(TimeClass::RowLock, 100, None));
    let unknown = Blocked { unknown: Some("changing".to_owned()), ..Blocked::default() };
    book.explain(1, (101, 105), &BTreeMap::from([(7, unknown)]));
    assert_eq!(book.unexplained(100), BTreeSet::from([1]));
    let holder = Blocked { by: vec![3], ..Blocked::default() };
    book.explain(1, (106, 107), &BTreeMap::from([(7, holder)]));
    assert!(book.unexplained(100).is_empty());
}

#[test]
fn what_ended_without_a_reply_is_told_with_what_a_look_saw_of_it() {
    let mut book = LockWaitBook::default();
    book.hear(&news(TimeClass::RowLock, 100, None));
    let running = RunningStatement {
        thd: 7,
        connection_id: 12,
        noted_start_us: Some(5),
        ..Default::default()
    };
    assert!(keep(&mut book, &[running], 200).is_empty());
    book.hear(&news(TimeClass::RowLock, 100 + LONG_WAIT_NS, Some(LONG_WAIT_NS)));
    assert!(keep(&mut book, &[], 100).is_empty(), "the look was before");
    let killed = keep(&mut book, &[], 200).pop().unwrap();
    assert_eq!(killed.seen.unwrap().statement.connection_id, 12);
    assert_eq!(killed.waits[0].length_ns, LONG_WAIT_NS);
    assert!(book.statements.is_empty());
}

#[test]
fn of_what_was_never_long_nothing_is_told() {
    let mut book = LockWaitBook::default();
    book.hear(&news(TimeClass::RowLock, 100, None));
    assert!(keep(&mut book, &[], 200).is_empty() && book.statements.is_empty());
}

#[test]
fn what_finds_no_room_is_counted_once_when_it_ends() {
    let mut book = LockWaitBook::default();
    let of = |thd, waited_ns| LockWaitNews { thd, ..news(TimeClass::RowLock, 5, waited_ns) };
    (0..STATEMENTS_MAX as u64).for_each(|thd| book.hear(&of(thd, None)));
    let late = STATEMENTS_MAX as u64;
    book.hear(&of(late, None));
    assert_eq!(book.lost(1), 0);
    book.hear(&of(late, Some(LONG_WAIT_NS)));
    assert_eq!((book.lost(1), book.lost(2)), (1, 0));
    (0..WAITS_MAX + 2).for_each(|_| book.hear(&of(7, Some(LONG_WAIT_NS))));
    assert_eq!((book.lost(1), take(&mut book).len()), (3, WAITS_MAX));
    book.forget(1);
    assert_eq!(book.lost(1), 0);
}

#[test]
fn the_probe_tells_of_waits_from_the_same_length_on() {
    let probe = include_str!("../../../probes/src/carrier/parts.bpf.h");
    assert!(probe.contains("#define LONG_WAIT_NS (10 * 1000 * 1000)"));
    assert_eq!(LONG_WAIT_NS, 10 * 1000 * 1000);
}
