//! Statements that fail.

use crate::matrix::scene::Scene;
use crate::matrix::talker::Talker;

pub(crate) fn parse_and_run(_: &mut Scene, talker: &mut Talker) {
    let failures = [
        ("SELEC 1", 1064),
        ("SELECT * FROM nowhere", 1146),
        ("SELECT nothing FROM numbers", 1054),
        ("SELECT * FROM nowhere.nothing", 0),
        ("INSERT INTO kept (id, v) VALUES (1, 1)", 1062),
        ("INSERT INTO kept (id, v) VALUES (4000000, 1), (1, 1)", 1062),
        ("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 5001", 5001),
        ("CALL no_such_routine()", 1305),
        ("USE nowhere", 1049),
        ("", 1065),
    ];
    for (sql, number) in failures {
        let (got, _) = talker.query(sql).error.unwrap();
        assert!(number == 0 || got == number, "{sql}: {got}");
        if sql.is_empty() {
            talker.last(|last| last.text = None);
        }
        talker.run("SELECT 'it goes on'");
    }
}

/// The 710th power of e is beyond a double; 709 rows were sent by then, in several parts.
pub(crate) fn in_a_result(_: &mut Scene, talker: &mut Talker) {
    let result = talker.query("SELECT pad, EXP(n) FROM numbers FORCE INDEX (PRIMARY) ORDER BY n");
    assert_eq!((result.rows.len(), result.error.unwrap().0), (709, 1690));
    let result = talker.query("SELECT EXP(n + 708) FROM numbers FORCE INDEX (PRIMARY) ORDER BY n");
    assert_eq!((result.rows.len(), result.error.unwrap().0), (1, 1690));
    talker.run("SELECT 'it goes on'");
}
