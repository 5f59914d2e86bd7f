use super::*;
use crate::locks::wait::{Lock, LockKind};

fn wait(waiter: u64, record: &str, seconds: f64, blockers: &[u64]) -> Wait {
    Wait {
        waiter: Key::Session(waiter),
        lock: Lock { record: Some(record.to_owned()), ..Lock::of(LockKind::Row) },
        waited_s: Some(seconds),
        blockers: blockers.iter().map(|id| Key::Session(*id)).collect(),
        by_elimination: false,
        not_all: None,
        overtaken: false,
        unknown: None,
        source: Source::Sql,
    }
}

fn unknown(mut wait: Wait) -> Wait {
    wait.unknown = Some(Unknown { why: "cut".to_owned(), candidates: Vec::new() });
    wait
}

/// `1(2(3) 4)`: who blocks, and in parentheses who waits.
fn drawn(nodes: &[Node]) -> String {
    let one = |node: &Node| match node.waiters.is_empty() {
        true => node.key.to_string(),
        false => format!("{}({})", node.key, drawn(&node.waiters)),
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn roots(waits: Vec<Wait>) -> String {
    drawn(&Tree::build(waits).roots)
}

#[test]
fn a_chain_is_drawn_from_the_root() {
    assert_eq!(roots(vec![wait(3, "b", 1.0, &[2]), wait(2, "a", 2.0, &[1])]), "1(2(3))");
}

#[test]
fn a_queue_for_one_row_is_a_list_below_its_holder() {
    let waits =
        vec![wait(4, "a", 1.0, &[1, 2, 3]), wait(3, "a", 2.0, &[1, 2]), wait(2, "a", 3.0, &[1])];
    assert_eq!(roots(waits), "1(2 3 4)");
}

#[test]
fn a_waiter_of_a_queue_can_block_others() {
    let waits = vec![wait(5, "b", 1.0, &[3]), wait(3, "a", 2.0, &[1, 2]), wait(2, "a", 3.0, &[1])];
    assert_eq!(roots(waits), "1(2 3(5))");
}

#[test]
fn who_waits_only_for_others_of_the_queue_stands_below_the_first() {
    // A shared lock is held, an exclusive one waits for it, and a shared one behind that.
    assert_eq!(roots(vec![wait(2, "a", 2.0, &[1]), wait(3, "a", 1.0, &[2])]), "1(2(3))");
}

#[test]
fn rows_that_the_limit_cut_off_are_completed_from_the_queue() {
    let waits = vec![wait(2, "a", 3.0, &[1]), unknown(wait(3, "a", 2.0, &[]))];
    let tree = Tree::build(waits);
    assert_eq!(drawn(&tree.roots), "1(2 3)");
    assert!(tree.undetermined.is_empty());
}

#[test]
fn the_order_in_which_a_queue_was_read_does_not_matter() {
    // Waits are counted in whole seconds, so that the one who was asked can be the second.
    let waits = vec![wait(3, "a", 2.0, &[1, 2]), unknown(wait(2, "a", 2.0, &[]))];
    assert_eq!(roots(waits), "1(2 3)");
}

#[test]
fn a_second_holder_is_named_and_the_root_is_the_one_that_does_not_wait() {
    let tree = Tree::build(vec![wait(2, "a", 3.0, &[1]), wait(9, "x", 2.0, &[2, 1])]);
    assert_eq!(drawn(&tree.roots), "1(2 9)");
    assert_eq!(tree.roots[0].waiters[1].also_blocked_by, [Key::Session(2)]);
}

#[test]
fn a_circle_has_a_root_and_ends() {
    let tree = Tree::build(vec![wait(1, "a", 1.0, &[2]), wait(2, "b", 5.0, &[1])]);
    assert_eq!(drawn(&tree.roots), "2(1)");
    assert!(tree.roots[0].in_circle);
    assert_eq!(drawn(&Tree::build(vec![wait(7, "a", 1.0, &[7])]).roots), "7");
}

#[test]
fn a_waiter_with_an_unknown_blocker_keeps_those_who_wait_for_it() {
    let tree = Tree::build(vec![unknown(wait(2, "a", 5.0, &[])), wait(3, "b", 1.0, &[2])]);
    assert!(tree.roots.is_empty());
    assert_eq!(drawn(&[tree.undetermined[0].1.clone()]), "2(3)");
}

#[test]
fn roots_with_more_waiters_come_first() {
    let waits = vec![wait(2, "a", 9.0, &[1]), wait(4, "b", 1.0, &[3]), wait(5, "c", 1.0, &[4])];
    assert_eq!(roots(waits), "3(4(5)) 1(2)");
}
