use proptest::prelude::*;

use super::*;

/// As MySQL 9 writes it.
const STATUS: &str = "\
=====================================
2026-11-22 09:40:01 140 INNODB MONITOR OUTPUT
------------------------
LATEST DETECTED DEADLOCK
------------------------
2026-11-22 09:39:58 139914 
*** (1) TRANSACTION:
TRANSACTION 2101, ACTIVE 3 sec starting index read
mysql tables in use 1, locked 1
LOCK WAIT 3 lock struct(s), heap size 1128, 2 row lock(s), undo log entries 1
MySQL thread id 15, OS thread handle 139, query id 77 localhost root updating
update shop.t set n = n + 1
where id = 2
*** (1) HOLDS THE LOCK(S):
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `shop`.`t` trx id 2101 lock_mode X locks rec but not gap
Record lock, heap no 2 PHYSICAL RECORD: n_fields 4; compact format; info bits 0
 0: len 4; hex 80000001; asc     ;;

*** (1) WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `shop`.`t` trx id 2101 lock_mode X locks rec but not gap waiting
*** (2) TRANSACTION:
TRANSACTION 2102, ACTIVE 2 sec starting index read
MySQL thread id 16, OS thread handle 139, query id 78 localhost root updating
update shop.t set n = n + 1 where id = 1
*** WE ROLL BACK TRANSACTION (2)
------------
TRANSACTIONS
------------
*** (3) TRANSACTION:
";

#[test]
fn parties_statements_locks_and_the_victim_are_read() {
    let deadlock = parse(STATUS).unwrap();
    assert_eq!(deadlock.at.as_deref(), Some("2026-11-22 09:39:58"));
    assert_eq!(deadlock.transactions.len(), 2);
    let (first, second) = (&deadlock.transactions[0], &deadlock.transactions[1]);
    assert_eq!((first.connection_id, first.active_s), (Some(15), Some(3)));
    assert_eq!(first.id.as_deref(), Some("2101"));
    assert_eq!(first.statement.as_deref(), Some("update shop.t set n = n + 1\nwhere id = 2"));
    assert_eq!(
        first.holds,
        [HeldLock {
            object: Some("shop.t".to_owned()),
            index: Some("PRIMARY".to_owned()),
            mode: Some("X locks rec but not gap".to_owned()),
            page: Some("2:4".to_owned()),
        }]
    );
    assert_eq!(first.holds, first.waits_for);
    assert_eq!((first.rolled_back, second.rolled_back), (false, true));
}

#[test]
fn no_section_is_no_deadlock() {
    assert_eq!(parse("TRANSACTIONS\n"), None);
    assert_eq!(parse(""), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_parsed(text in "(?s).{0,400}") {
        parse(&text);
        let within = parse(&format!("LATEST DETECTED DEADLOCK\n---\n{text}"));
        prop_assert!(within.is_some());
    }

    #[test]
    fn lines_in_any_order_are_parsed(order in prop::collection::vec(0..STATUS.lines().count(), 0..60)) {
        let lines: Vec<&str> = STATUS.lines().collect();
        let picked: Vec<&str> = order.iter().map(|at| lines[*at]).collect();
        let text = format!("LATEST DETECTED DEADLOCK\n---\n{}", picked.join("\n"));
        let deadlock = parse(&text).unwrap();
        prop_assert!(deadlock.transactions.len() <= order.len());
    }

    #[test]
    fn a_text_that_is_cut_anywhere_is_parsed(cut in 0..STATUS.len()) {
        let deadlock = parse(&STATUS[..cut]);
        prop_assert!(deadlock.is_none_or(|deadlock| deadlock.transactions.len() <= 2));
    }
}
