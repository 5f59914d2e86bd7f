//! The rungs of the ladder, each by itself.

use serde_json::json;
use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Server, Version};

use crate::verified::Verified;
use crate::watching::Waggle;
use crate::{load, size};

/// Statements inside others, each of which some hook could take for a statement of its own.
const PROCEDURE: &str = "CREATE PROCEDURE test.inside() BEGIN \
    SELECT COUNT(*) FROM sbtest1; UPDATE sbtest1 SET k = k WHERE id = 1; DO 1; END";

/// Calls it as text, prepared, and prepared in SQL. Returns the number of statements.
fn call_a_procedure(server: &Server) -> u64 {
    let mut client = load::session(server);
    for sql in ["CALL inside()", "PREPARE p FROM 'CALL inside()'", "EXECUTE p"] {
        client.run(sql).unwrap();
    }
    let prepared = client.prepare("CALL inside()").unwrap();
    client.execute(&prepared, &[], false).unwrap();
    client.quit().unwrap();
    4
}

#[test]
fn every_rung_captures_every_statement_of_every_server() {
    for version in Version::ALL {
        // Where Performance Schema is off, as on MariaDB by default, this is checked by Questions.
        let server = Server::start(version).unwrap();
        let sysbench = load::read_write(&server);
        load::session(&server).run(PROCEDURE).unwrap();
        for hook in ["send", "syscall", "uprobe"] {
            let mut sent = 0;
            let verified = Verified::around(&server, &["--hook", hook], |_| {
                sent = load::mixed(&server, &sysbench, size::choose(1_000, 100_000));
                sent += call_a_procedure(&server) + load::bulk(&server);
            });
            let mut row = verified.row("rungs", &server, "tcp+unix+tls", "text+prepared");
            row["hook"] = json!(hook);
            size::keep(&row);
            verified.assert_exact(&format!("{version} by {hook}"), sent);
        }
    }
}

#[test]
fn a_rung_that_the_kernel_refuses_is_named_with_the_reason() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    let arguments = ["watch", "--json", "--for", "200ms", "--pid", &pid, "--hook", "fentry"];
    let ended = Waggle::start(&arguments).end();
    if ended.code == Some(0) {
        // A kernel that allows it: then it works.
        return assert!(!ended.lines().is_empty());
    }
    ended.assert_refused(&["fentry", "all rights that this needs are held"]);
}

/// Also run under Debian's 6.1 kernel (`cargo xtask test --long 6.1`), where another rung is the first that
/// works.
#[test]
fn the_hook_that_doctor_chooses_captures_every_statement() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    let doctor = Waggle::start(&["doctor", "--json", "--pid", &pid]).end();
    let hook = doctor.lines()[0]["servers"][0]["hook"].clone();
    let hook = hook.as_str().unwrap();
    println!("the hook that doctor chose: {hook}");
    let mut sysbench = Sysbench::new("oltp_point_select");
    sysbench.tables = 1;
    sysbench.table_size = 100;
    sysbench.threads = 2;
    sysbench.length = Length::Events(10_000);
    sysbench.prepare(&server).unwrap();
    let verified = Verified::around(&server, &[], |_| {
        sysbench.run(&server).unwrap();
    });
    println!("{}", verified.row("rungs", &server, "unix", "text"));
    verified.assert_exact(&format!("the chosen hook {hook}"), 10_000);
}
