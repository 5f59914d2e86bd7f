//! A thread that serves no client is recorded alone.

use waggle_mysql::Connection;
use waggle_mysql::connection::text;
use waggle_testkit::Version;

use super::{Scene, stderr};

fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let rows = connection.rows(sql).unwrap();
    rows.iter().map(|row| (0..row.len()).map(|at| text(row, at)).collect()).collect()
}

const KINDS: &str =
    "SELECT NAME, ENABLED, HISTORY FROM performance_schema.setup_threads ORDER BY NAME";

#[test]
fn a_background_thread_is_set_now_and_for_its_next_start() {
    // The others have no setup_threads.
    for version in [Version::Mysql80, Version::Mysql9] {
        let scene = Scene::of(version);
        let mut connection = scene.connect();
        let chosen = rows(
            &mut connection,
            "SELECT MIN(NAME) FROM performance_schema.setup_threads JOIN \
             performance_schema.threads USING (NAME) WHERE NAME LIKE 'thread/innodb/%'",
        );
        let chosen = chosen[0][0].clone();
        assert!(!chosen.is_empty(), "{version}: no thread of InnoDB");
        // Not as they are at the start, so that what is undone is what was there.
        for sql in [
            format!(
                "UPDATE performance_schema.setup_threads SET HISTORY = 'NO' WHERE NAME = '{chosen}'"
            ),
            format!(
                "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO', HISTORY = 'NO' \
                 WHERE NAME = '{chosen}'"
            ),
        ] {
            connection.rows(&sql).unwrap();
        }
        // Those of InnoDB stay as long as the server does.
        let threads = "SELECT THREAD_ID, NAME, INSTRUMENTED, HISTORY FROM \
                       performance_schema.threads WHERE NAME LIKE 'thread/innodb/%' \
                       ORDER BY THREAD_ID";
        let before = (rows(&mut connection, KINDS), rows(&mut connection, threads));

        let holding = scene.hold(&["apply", "io", "--thread", &chosen]);
        let of = |name: &str| if name == chosen { "YES" } else { "NO" };
        for row in rows(&mut connection, KINDS) {
            assert_eq!(row[1..], [of(&row[0]); 2], "{version}: {row:?}");
        }
        for row in rows(&mut connection, threads) {
            assert_eq!(row[2..], [of(&row[1]); 2], "{version}: {row:?}");
        }

        let ended = holding.end();
        assert_eq!(ended.status.code(), Some(0), "{version}: {}", stderr(&ended));
        let after = (rows(&mut connection, KINDS), rows(&mut connection, threads));
        assert_eq!(after, before, "{version}");
    }
}
