//! Transactions and the status flags of their statements, and statements that are neither read nor
//! change.

use crate::matrix::scene::Scene;
use crate::matrix::talker::Talker;

const IN_TRANSACTION: u16 = 1;
const AUTOCOMMIT: u16 = 2;
const NO_INDEX: u16 = 0x20;

/// The client was told the flags; the capture is compared with what it was told.
pub(crate) fn transactions(_: &mut Scene, talker: &mut Talker) {
    let steps = [
        ("UPDATE kept SET v = v + 1 WHERE id = 3", AUTOCOMMIT),
        ("BEGIN", IN_TRANSACTION | AUTOCOMMIT),
        ("UPDATE kept SET v = v + 1 WHERE id = 3", IN_TRANSACTION | AUTOCOMMIT),
        ("SELECT v FROM kept WHERE id = 3", IN_TRANSACTION | AUTOCOMMIT),
        ("COMMIT AND CHAIN", IN_TRANSACTION | AUTOCOMMIT),
        ("ROLLBACK", AUTOCOMMIT),
        ("START TRANSACTION READ ONLY", IN_TRANSACTION | AUTOCOMMIT),
        ("COMMIT", AUTOCOMMIT),
        ("SET autocommit = 0", 0),
        ("SELECT v FROM kept WHERE id = 3", IN_TRANSACTION),
        ("COMMIT", 0),
        ("SET autocommit = 1", AUTOCOMMIT),
        ("SELECT n FROM numbers WHERE pad = 'q'", AUTOCOMMIT | NO_INDEX),
        ("SELECT n FROM numbers WHERE n = 1", AUTOCOMMIT),
    ];
    for (sql, flags) in steps {
        let told = talker.run(sql).status & (IN_TRANSACTION | AUTOCOMMIT | NO_INDEX);
        assert_eq!(told, flags, "{sql}");
    }
}

/// The server's clock of the session stands still; the latency may not.
pub(crate) fn timestamp(_: &mut Scene, talker: &mut Talker) {
    talker.run("SET timestamp = 1");
    assert_eq!(talker.run("SELECT UNIX_TIMESTAMP()").text(0, 0).as_deref(), Some("1"));
    talker.run("SELECT SLEEP(0.01)");
    talker.packet(&["SELECT 1", "SELECT 2"]);
    talker.run("SET timestamp = DEFAULT");
}

pub(crate) fn others(_: &mut Scene, talker: &mut Talker) {
    for sql in ["SHOW TABLES", "SHOW VARIABLES LIKE 'port'", "SHOW WARNINGS"] {
        talker.run(sql);
        // The server counts no rows of a SHOW, or counts them in one version and not in another.
        talker.last(|last| last.rows_sent = None);
    }
    for sql in [
        "SET @a = 1",
        "SET NAMES utf8mb4",
        "CREATE TABLE short_lived (n INT) ENGINE = InnoDB",
        "ALTER TABLE short_lived ADD m INT",
        "INSERT INTO short_lived VALUES (1, 2), (3, 4)",
        "CREATE INDEX on_m ON short_lived (m)",
        "EXPLAIN SELECT 1",
        "DROP TABLE short_lived",
        "DROP TABLE IF EXISTS short_lived",
        "LOCK TABLES kept WRITE",
        "UNLOCK TABLES",
        "FLUSH TABLES",
    ] {
        talker.run(sql);
        if sql.starts_with("EXPLAIN") {
            talker.last(|last| last.rows_sent = None);
        }
    }
    for sql in ["ANALYZE TABLE digits", "CHECK TABLE digits"] {
        talker.run(sql);
        talker.last(|last| last.rows_sent = None);
    }
}
