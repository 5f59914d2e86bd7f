//! The rungs of the ladder, each by itself.

use serde_json::json;
use waggle_testkit::Server;
use waggle_testkit::Version;

use crate::load;
use crate::size;
use crate::verified::Verified;
use crate::watching::Waggle;

#[test]
fn every_rung_captures_every_statement_of_every_server() {
    for version in Version::ALL {
        // Where Performance Schema is off, as on MariaDB by default, this is checked by Questions.
        let server = Server::start(version).unwrap();
        let sysbench = load::read_write(&server);
        for hook in ["send", "syscall", "uprobe"] {
            let mut sent = 0;
            let verified = Verified::around(&server, &["--hook", hook], |_| {
                sent = load::mixed(&server, &sysbench, size::choose(3_000, 100_000));
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
    ended.assert_refused(&["fentry", "this kernel"]);
}
