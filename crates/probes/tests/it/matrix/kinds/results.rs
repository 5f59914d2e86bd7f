//! Results of every size.

use waggle_model::Command;
use waggle_testkit::client::{Command as Send, Transport};

use crate::matrix::absent::Absent;
use crate::matrix::scene::Scene;
use crate::matrix::talker::{Login, Talker};

pub(crate) fn one_row(_: &mut Scene, talker: &mut Talker) {
    talker.run("SELECT n, pad FROM numbers WHERE n = 7");
    talker.last(|last| last.rows_examined = Some(1));
    talker.run("SELECT 1");
    talker.run("SELECT 1");
}

pub(crate) fn none(_: &mut Scene, talker: &mut Talker) {
    talker.run("SELECT n FROM numbers WHERE n = -1");
    talker.run("SELECT n FROM numbers WHERE pad = 'q'");
    talker.last(|last| last.rows_examined = Some(1000));
    talker.run("DO 1");
}

/// A result of `rows` rows of `width` bytes that is not kept.
fn stream(scene: &Scene, talker: &mut Talker, sql: &str, [rows, width]: [u64; 2]) {
    let mut note = talker.note(Command::QUERY, Some(sql.as_bytes()));
    let got = talker.client.query_discard(sql).unwrap();
    assert_eq!(got, rows);
    note.rows_sent = Some(rows);
    note.rows_affected = Some(0);
    note.bytes = if scene.transport == Transport::Compressed { 1000 } else { rows * width };
    talker.expect(note);
}

pub(crate) fn megabytes(scene: &mut Scene, talker: &mut Talker) {
    stream(scene, talker, "SELECT REPEAT('x', 5000) FROM numbers", [1000, 5000]);
}

pub(crate) fn hundred_megabytes(scene: &mut Scene, talker: &mut Talker) {
    stream(scene, talker, "SELECT REPEAT('x', 100000) FROM numbers", [1000, 100_000]);
}

pub(crate) fn many_rows(scene: &mut Scene, talker: &mut Talker) {
    let sql = "SELECT a.n, b.n FROM numbers a, numbers b LIMIT 50000";
    stream(scene, talker, sql, [50_000, 4]);
    stream(scene, talker, "SELECT a.n FROM numbers a, digits b", [10_000, 2]);
}

/// The client reads nothing until the server cannot send any more.
pub(crate) fn slow_reader(scene: &mut Scene, talker: &mut Talker) {
    let sql = "SELECT SQL_NO_CACHE REPEAT('s', 100000) FROM numbers LIMIT 120";
    let mut note = talker.note(Command::QUERY, Some(sql.as_bytes()));
    talker.client.send(Send::Query, sql.as_bytes()).unwrap();
    scene.wait_until_runs(talker.id(), |now| now.text.as_deref() == Some(sql.as_bytes()));
    let results = talker.client.read_reply().unwrap();
    note = note.answered(&results[0]);
    if scene.transport == Transport::Compressed {
        note.bytes = 1000;
    }
    talker.expect(note);
}

pub(crate) fn examined(_: &mut Scene, talker: &mut Talker) {
    let examined = |talker: &mut Talker, sql: &str, rows: u64| {
        talker.run(sql);
        talker.last(|last| last.rows_examined = Some(rows));
    };
    examined(talker, "SELECT SUM(n) FROM numbers", 1000);
    examined(talker, "SELECT n FROM numbers WHERE n BETWEEN 11 AND 30", 20);
    talker.run("INSERT INTO bag (v) VALUES (1), (2), (3)");
    examined(talker, "UPDATE bag SET v = v + 1 WHERE v = 3", 3);
    examined(talker, "DELETE FROM bag", 3);
    examined(talker, "INSERT INTO bag (v) SELECT n FROM numbers WHERE n <= 5", 5);
    talker.run("TRUNCATE TABLE bag");
    talker.run("REPLACE INTO kept (id, v) VALUES (1, 1)");
    talker.run("INSERT INTO kept (id, v) VALUES (1, 1) ON DUPLICATE KEY UPDATE v = v + 1");
}

pub(crate) fn deprecated_eof(scene: &mut Scene) {
    let login = Login { deprecate_eof: true, ..scene.login() };
    let mut talker = scene.open_as(&login);
    talker.run("SELECT n FROM numbers WHERE n <= 3");
    talker.run("SELECT n FROM numbers WHERE n = -1");
    talker.run("SELECT n, pad FROM numbers");
    talker.query("SELECT nothing");
    talker.run("DO 1");
    talker.packet(&["SELECT 1", "DO 2", "SELECT 3"]);
    talker.quit();
}

/// The second is answered from the cache, where the server counts no rows.
pub(crate) fn query_cache(scene: &mut Scene, talker: &mut Talker) {
    let sql =
        format!("SELECT SQL_CACHE n FROM numbers WHERE n <= 20 AND '{}' <> ''", scene.transport);
    let large = format!("SELECT SQL_CACHE n, pad, '{}' FROM numbers", scene.transport);
    let hits = |scene: &mut Scene| {
        let result = scene.control.run("SHOW GLOBAL STATUS LIKE 'Qcache_hits'");
        result.text(0, 1).unwrap().parse::<u64>().unwrap()
    };
    let before = hits(scene);
    for sql in [&sql, &large] {
        talker.run(sql);
        for _hit in 0..2 {
            talker.query(sql);
            assert!(scene.lacks(Absent::NumbersFromCache));
            talker.last(|last| {
                last.from_cache = true;
                last.rows_sent = None;
                last.status = None;
            });
        }
    }
    talker.run("SELECT 'after'");
    assert_eq!(hits(scene), before + 4, "the cache was not asked");
}
