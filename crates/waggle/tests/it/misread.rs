//! A server that is read wrongly: its silence is counted and told, by every command.

use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Server, Version};

use crate::watched::sum;
use crate::watching::Waggle;

/// Of each of two connections.
const STATEMENTS: u64 = 30;
/// Of each family one place that is wrong, so that nothing or next to nothing is captured: the session, the start of its
/// statement, the status of its reply.
const WRONG: [(Version, &str); 4] = [
    (Version::Mysql9, "current_thd=8"),
    (Version::Mysql80, "diagnostics_status=-8"),
    (Version::Mariadb114, "current_thd=8"),
    (Version::Mariadb114, "start_time=-8"),
];

/// Two connections that change tables.
fn talk(server: &Server) {
    for transport in [Transport::Tcp, Transport::Unix] {
        let mut client = Client::connect(server, transport, Account::ROOT).unwrap();
        for _ in 0..STATEMENTS {
            client.run("DROP TABLE IF EXISTS test.nothing").unwrap();
        }
        client.quit().unwrap();
    }
}

fn assert_told(err: &str, version: Version, shift: &str) {
    for words in ["became no statement", "wrongly", "run `waggle verify`", "report the build"] {
        assert!(err.contains(words), "{version} {shift}: {words} is not in: {err}");
    }
}

#[test]
fn a_server_that_is_read_wrongly_is_not_shown_as_idle() {
    for (version, shift) in WRONG {
        let server = Server::start(version).unwrap();
        let mut waggle = Waggle::watch(&server, &["--shift-field", shift]);
        talk(&server);
        waggle.wait_for("the loss", |waggle| sum(&waggle.lines(), "/lost/read_wrongly") > 0);
        let ended = waggle.interrupt();
        let lines = ended.lines();
        let [captured, wrong, without] =
            ["/statements", "/lost/read_wrongly", "/lost/no_statement"].map(|key| sum(&lines, key));
        assert!(captured < STATEMENTS && wrong > captured, "{version} {shift}: {lines:?}");
        assert!(wrong <= without, "{version} {shift}: {wrong} of {without}");
        assert_told(&ended.err, version, shift);
        assert_eq!(ended.err.matches("report the build").count(), 1, "told once: {}", ended.err);
        assert_eq!(ended.code, Some(4), "{}", ended.err);
    }
}

#[test]
fn the_list_of_data_definition_says_that_statements_are_missing() {
    for (version, shift) in WRONG {
        let server = Server::start(version).unwrap();
        let pid = server.pid().to_string();
        let mut waggle =
            Waggle::start(&["ddl", "tail", "--json", "--pid", &pid, "--shift-field", shift]);
        waggle.wait_for("the watch", |waggle| waggle.err().contains("is watched"));
        talk(&server);
        waggle.wait_for("the gap", |waggle| waggle.printed().contains(r#""read_wrongly":"#));
        let ended = waggle.interrupt();
        assert_told(&ended.err, version, shift);
        assert!(ended.err.contains("could not be listed"), "{version} {shift}: {}", ended.err);
        assert!(!ended.err.contains("none is missing"), "{version} {shift}: {}", ended.err);
        assert_eq!(ended.code, Some(4), "{version} {shift}: {}", ended.err);
    }
}

#[test]
fn the_table_shows_it_and_verify_refuses_to_compare() {
    let (version, shift) = WRONG[0];
    let server = Server::start(version).unwrap();
    let pid = server.pid().to_string();
    let options = server.defaults_file();
    let options = options.to_str().unwrap();
    let mut table = Waggle::start(&["watch", "--table", "--pid", &pid, "--shift-field", shift]);
    table.wait_for("the table", |table| table.printed().contains("lost 0"));
    let mut verify = Waggle::start(&["verify", "--defaults-file", options, "--shift-field", shift]);
    talk(&server);
    table.wait_for("the mark", |table| table.printed().contains("READ WRONGLY"));
    assert_eq!(verify.wait_for_end(), Some(3), "{}", verify.err());
    let err = verify.err();
    assert!(err.contains("reads this server wrongly; report the build"), "{err}");
}
