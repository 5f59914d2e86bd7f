use super::*;
use Mode::{Changes, Exclusive, NoReadWrite, ReadOnly, Reads, Shared, Upgradable, Writes};

const TABLE: Object = Object::Table(0);
const ROW: Object = Object::Row(100);

/// Sessions that hold `held`, and sessions that request `asked`, in this order.
fn model(held: &[&[Lock]], asked: &[&[Lock]]) -> Model {
    let held = held.iter().map(|held| Party { held: held.to_vec(), ..Party::default() });
    let asked = asked.iter().enumerate().map(|(number, steps)| {
        let asked = Asked::new(steps.to_vec(), Vec::new(), true, number as u64);
        Party { asked: Some(asked), ..Party::default() }
    });
    Model { parties: held.chain(asked).collect() }
}

fn set<const N: usize>(all: [usize; N]) -> BTreeSet<usize> {
    BTreeSet::from(all)
}

/// An `ALTER TABLE`.
const ALTER: &[Lock] = &[(TABLE, Upgradable), (TABLE, Changes)];

#[test]
fn who_empties_a_table_gets_it_before_writers_that_came_first() {
    // As with seed 32 on MySQL 5.7: a reader has locked the table, two write, two empty it.
    let write: &[Lock] = &[(TABLE, Writes)];
    let empty: &[Lock] = &[(TABLE, Changes)];
    let mut model = model(&[&[(TABLE, ReadOnly)]], &[write, write, empty, empty]);
    assert_eq!((model.advance(), model.waiting()), (set([]), set([1, 2, 3, 4])));
    model.parties[0].held.clear();
    assert_eq!(model.advance(), set([3]));
    model.answered(3);
    assert_eq!(model.advance(), set([4]));
    model.answered(4);
    assert_eq!(model.advance(), set([1, 2]));
}

#[test]
fn while_one_empties_a_table_the_next_one_waits_for_it() {
    let empty: &[Lock] = &[(TABLE, Changes)];
    let mut model = model(&[], &[empty, empty]);
    assert!(model.step());
    assert_eq!((model.may_be_named(0), model.may_be_named(1)), (set([]), set([0])));
    // It gets its reply, and the next one its lock.
    assert!(model.step() && model.may_be_named(1).is_empty());
    while model.step() {}
    assert!(model.parties.iter().all(|party| party.asked.is_none()));
}

#[test]
fn an_alter_waits_for_its_first_lock_behind_another_and_for_its_second_one_for_readers() {
    let read: &[Lock] = &[(TABLE, Reads)];
    let mut model = model(&[&[(TABLE, Reads)]], &[ALTER, ALTER, read]);
    let later = model.parties[3].asked.take();
    assert_eq!(model.advance(), set([]));
    model.parties[3].asked = later;
    assert_eq!(model.advance(), set([]));
    assert_eq!((model.awaited(1), model.awaited(2)), (Some(ALTER[1]), Some(ALTER[0])));
    assert_eq!((model.may_be_named(1), model.may_be_named(2)), (set([0]), set([1])));
    assert_eq!(model.may_be_named(3), set([1]));
    model.parties[0].held.clear();
    assert_eq!(model.advance(), set([1]));
    model.answered(1);
    // The reader gets its lock while the other one wakes up.
    assert_eq!(model.advance(), set([3]));
    model.parties[3].asked.as_mut().unwrap().gives = read.to_vec();
    model.parties[3].asked.as_mut().unwrap().ends_all = false;
    model.answered(3);
    assert_eq!((model.advance(), model.awaited(2)), (set([]), Some(ALTER[1])));
    assert_eq!(model.may_be_named(2), set([3]));
}

#[test]
fn no_answer_is_due_from_who_stands_behind_one_that_waits() {
    let (shared, exclusive): (&[Lock], &[Lock]) = (&[(ROW, Shared)], &[(ROW, Exclusive)]);
    let mut model = model(&[&[(ROW, Shared)]], &[exclusive, shared]);
    assert_eq!((model.advance(), model.waiting()), (set([]), set([1, 2])));
    assert_eq!((model.may_be_named(1), model.may_be_named(2)), (set([0]), set([1])));
}

#[test]
fn who_goes_on_to_another_object_waits_there() {
    let write: &[Lock] = &[(Object::Server, Shared), (TABLE, Writes)];
    let mut model = model(&[&[(Object::Server, Exclusive)], &[(TABLE, NoReadWrite)]], &[write]);
    assert_eq!((model.advance(), model.may_be_named(2)), (set([]), set([0])));
    model.parties[0].held.clear();
    assert_eq!((model.advance(), model.may_be_named(2)), (set([]), set([1])));
    model.parties[1].held.clear();
    assert_eq!(model.advance(), set([2]));
}

#[test]
fn nobody_named_is_right_only_where_nobody_has_the_row_and_several_ask_for_it() {
    let (shared, exclusive): (&[Lock], &[Lock]) = (&[(ROW, Shared)], &[(ROW, Exclusive)]);
    let one_before = model(&[&[(ROW, Shared)]], &[exclusive, shared]);
    assert!(one_before.judge(1, &set([])).is_err() && one_before.judge(2, &set([])).is_err());
    assert!(one_before.judge(1, &set([0])).is_ok() && one_before.judge(2, &set([1])).is_ok());
    let two_before = model(&[&[(ROW, Shared)]], &[exclusive, exclusive, shared]);
    assert!(two_before.judge(3, &set([])).is_ok() && two_before.judge(1, &set([])).is_err());
    let table = model(&[&[(TABLE, Reads)]], &[ALTER, &[(TABLE, Writes)]]);
    assert!(table.judge(2, &set([])).is_err());
}

#[test]
fn who_does_not_hold_it_is_not_rightly_named_and_all_who_do_must_be() {
    let mut model = model(&[&[(TABLE, Reads)], &[(TABLE, Writes)], &[]], &[ALTER]);
    model.advance();
    assert!(model.judge(3, &set([0, 1])).is_ok());
    assert!(model.judge(3, &set([0])).is_err() && model.judge(3, &set([0, 1, 2])).is_err());
}

#[test]
fn two_who_wait_for_each_other_are_a_circle() {
    let other = (Object::Row(200), Exclusive);
    let mut model = model(&[], &[&[(ROW, Exclusive)], &[other]]);
    (model.parties[0].held, model.parties[1].held) = (vec![other], Vec::new());
    assert!(!model.has_deadlock());
    model.parties[1].held = vec![(ROW, Exclusive)];
    assert!(model.has_deadlock());
}
