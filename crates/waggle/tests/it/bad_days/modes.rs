//! Servers that are set up otherwise.

use std::{fs, thread};

use serde_json::{Value, json};
use waggle_testkit::{Account, Client, PerformanceSchema, Server, Transport, Version};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, size, watched};

#[test]
fn a_pool_of_threads_is_captured_exactly() {
    for version in [Version::Mariadb1011, Version::Mariadb114] {
        let pool = Server::builder(version).arg("--thread-handling=pool-of-threads");
        let server = pool.arg("--thread-pool-size=2").start().unwrap();
        let sysbench = load::read_write(&server);
        let mut sent = 0;
        let verified = Verified::around(&server, &[], |_| {
            sent = load::mixed(&server, &sysbench, size::choose(6_000, 100_000));
        });
        size::keep(&verified.row("pool_of_threads", &server, "tcp+unix+tls", "text+prepared"));
        verified.assert_exact(&format!("{version}, pool of threads"), sent);
    }
}

#[test]
fn of_a_pool_of_threads_it_is_said_that_its_queue_is_in_no_number() {
    let pool = Server::builder(Version::Mariadb1011).arg("--thread-handling=pool-of-threads");
    let pool = pool.start().unwrap();
    let plain = Server::start(Version::Mariadb1011).unwrap();
    for (server, left_out) in [(&pool, json!(["pool_queue"])), (&plain, json!([]))] {
        let waggle = Waggle::watch(server, &["--interval", "300ms"]);
        assert_eq!(waggle.lines()[0]["latency_leaves_out"], left_out);
        let (pid, is_pooled) = (server.pid().to_string(), left_out != json!([]));
        for (arguments, words) in [
            (&["watch", "--table", "--for", "1s", "--pid"][..], "without the queue of the pool"),
            (&["doctor", "--pid"], "in the queue of the pool of threads"),
        ] {
            let ended = Waggle::start(&[arguments, &[&pid]].concat()).end();
            assert_eq!(ended.out.contains(words), is_pooled, "{arguments:?}: {}", ended.out);
        }
    }
}

#[test]
fn what_the_query_cache_answers_is_captured() {
    for version in [Version::Mysql57, Version::Mariadb1011] {
        // Performance Schema of 5.7 counts no statement that the cache answers; Questions does.
        let server = Server::builder(version)
            .performance_schema(PerformanceSchema::Off)
            .arg("--query-cache-type=1")
            .arg("--query-cache-size=16M")
            .start()
            .unwrap();
        let mut client = Client::connect(&server, Transport::Tcp, Account::ROOT).unwrap();
        client.run("CREATE TABLE test.cached (id INT PRIMARY KEY)").unwrap();
        client.run("INSERT INTO test.cached VALUES (1), (2)").unwrap();
        let mut waggle = Waggle::watch(&server, &["--interval", "500ms"]);
        let verified = Verified::around(&server, &[], |_| {
            for _ in 0..500 {
                client.run("SELECT id FROM test.cached").unwrap();
            }
            client.quit().unwrap();
        });
        verified.assert_exact(&format!("{version}, query cache"), 500);
        let mut client = load::session(&server);
        let hits = client.run("SHOW GLOBAL STATUS LIKE 'Qcache_hits'").unwrap()[0].text(0, 1);
        assert!(hits.unwrap().parse::<u32>().unwrap() >= 499, "{version}: the cache is in use");
        waggle.wait_for_lines(2);
        let lines = waggle.interrupt().lines();
        assert_eq!(watched::calls(&lines, "`cached`"), 500, "{version}");
    }
}

/// What moves where strings end, and texts that hide their data only where that is known.
const SETTINGS: [(&str, &[u8], &str); 3] = [
    (
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        br"SELECT SLEEP(600), 'a\', 'private words'",
        "SELECT SLEEP(?), ?, ?",
    ),
    (
        "SET sql_mode = 'ANSI_QUOTES'",
        br#"SELECT SLEEP(600) AS "a\", 'say " private words'"#,
        r#"SELECT SLEEP(?) AS "a\", ?"#,
    ),
    (
        "SET NAMES gbk",
        b"SELECT SLEEP(600) AS gbk, '\x81\\', 'private words'",
        "SELECT SLEEP(?) AS gbk, ?, ?",
    ),
];

#[test]
fn literals_are_hidden_as_the_session_has_them() {
    for version in [Version::Mysql57, Version::Mysql9, Version::Mariadb114] {
        let server = Server::start(version).unwrap();
        let options = ["--interval", "500ms", "--slowlog", "slow.log"];
        let mut waggle = Waggle::watch(&server, &options);
        let percona = Waggle::watch(&server, &["--fingerprint", "percona"]);
        let running = SETTINGS.map(|(settings, text, _)| {
            let mut session = load::session(&server);
            session.run(settings).unwrap();
            // What it has set is read where it is met next.
            session.run("DO 0").unwrap();
            let id = session.connection_id();
            let runs = thread::spawn(move || {
                session.query(text).unwrap();
                session
            });
            (id, runs)
        });
        let list = |lines: &[Value], list: &str, at: &str| -> Vec<String> {
            let all = lines.iter().flat_map(|line| line[list].as_array().unwrap());
            all.filter_map(|one| Some(one.pointer(at)?.as_str()?.to_owned())).collect()
        };
        waggle.wait_for("all are seen running", |waggle| {
            let seen = list(&waggle.lines(), "sessions", "/text");
            SETTINGS.iter().all(|(.., shown)| seen.iter().any(|text| text == shown))
        });
        let mut root = load::session(&server);
        // They stay, since the settings of a session that has gone cannot be read.
        let sessions = running.map(|(id, runs)| {
            root.run(format!("KILL QUERY {id}")).unwrap();
            runs.join().unwrap()
        });
        waggle.wait_for_lines(2);
        let (ended, percona) = (waggle.interrupt(), percona.interrupt());
        drop(sessions);
        let lines = ended.lines();
        let log = fs::read_to_string(ended.dir.path().join("home/slow.log")).unwrap();
        for output in [&ended.out, &percona.out, &log] {
            assert!(!output.contains("private"), "{version}: {output}");
        }
        let samples = list(&lines, "digests", "/samples/slowest/text");
        for (_, _, shown) in SETTINGS {
            let is_it = |text: &String| text == shown;
            assert!(samples.iter().any(is_it), "{version}: no {shown} in {samples:#?}");
            assert!(log.contains(&format!("\n{shown};\n")), "{version}: no {shown} in {log}");
        }
    }
}
