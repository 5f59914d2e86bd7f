//! A run of `waggle verify` around a load.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use waggle_testkit::Server;

use crate::load;
use crate::watching::Waggle;

/// What a run of `verify` said.
pub(crate) struct Verified {
    /// The exit code.
    pub(crate) code: Option<i32>,
    /// Its JSON.
    pub(crate) report: Value,
    /// What it said beside it.
    pub(crate) err: String,
}

impl Verified {
    /// Runs `load` between the two readings of the counters, and reads the report of `verify`.
    pub(crate) fn around(server: &Server, arguments: &[&str], load: impl FnOnce(&Waggle)) -> Self {
        let waggle = begin(server, arguments);
        load(&waggle);
        let ours = load::wait_until_alone(server);
        let verified = Verified::end(server, waggle);
        drop(ours);
        verified
    }

    /// The same under a load that goes on.
    pub(crate) fn during(server: &Server, arguments: &[&str], length: Duration) -> Self {
        let waggle = begin(server, arguments);
        thread::sleep(length);
        Verified::end(server, waggle)
    }

    fn end(server: &Server, waggle: Waggle) -> Self {
        let ended = waggle.interrupt();
        let report = ended.lines().pop();
        let report =
            report.unwrap_or_else(|| panic!("{}: no report: {}", server.version(), ended.err));
        Verified { code: ended.code, report, err: ended.err }
    }

    /// A number of the report.
    pub(crate) fn number(&self, pointer: &str) -> u64 {
        self.report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| {
            panic!("{pointer} is no number in {}", self.report);
        })
    }

    /// Statements that the capture says it lost.
    pub(crate) fn lost(&self) -> u64 {
        let kinds = ["ring_full", "unreadable_session", "injected", "ended_unseen"];
        kinds.iter().map(|kind| self.number(&format!("/lost/{kind}"))).sum()
    }

    /// That every statement was captured once, at least `least` of them, and none was lost.
    pub(crate) fn assert_exact(&self, what: &str, least: u64) {
        let report = &self.report;
        assert_eq!(self.code, Some(0), "{what}: {report:#} {}", self.err);
        assert_eq!(report["passed"], true, "{what}: {report:#}");
        for count in ["/missing", "/extra"] {
            assert_eq!(self.number(count), 0, "{what}: {count} in {report:#}");
        }
        assert_eq!(self.lost(), 0, "{what}: {report:#}");
        // What runs at a reading may be on one side of it for the server, and on the other for waggle.
        let (captured, counted) = (self.number("/captured"), self.number("/server_counted"));
        let in_flight = self.number("/in_flight");
        assert!(captured.abs_diff(counted) <= in_flight, "{what}: {report:#}");
        assert!(captured >= least, "{what}: captured {captured} of at least {least}");
    }

    /// One row of the table of runs.
    pub(crate) fn row(&self, test: &str, server: &Server, transport: &str, mode: &str) -> Value {
        let field = |name: &str| self.report.get(name).cloned();
        json!({
            "test": test,
            "server": server.version_string(),
            "flavour": if server.version().is_mariadb() { "mariadb" } else { "mysql" },
            "transport": transport,
            "mode": mode,
            "passed": field("passed"),
            "captured": field("captured"),
            "server_counted": field("server_counted"),
            "source": field("source"),
            "missing": field("missing"),
            "extra": field("extra"),
            "in_flight": field("in_flight"),
            "lost": self.lost(),
            "digests_compared": field("digests_compared"),
            "digests_differing": field("digests_differing"),
            "in_doubt": field("in_doubt"),
        })
    }
}

/// Starts `verify`, and waits for its first reading.
fn begin(server: &Server, arguments: &[&str]) -> Waggle {
    let options = server.defaults_file();
    let pid = server.pid().to_string();
    let own = ["verify", "--json", "--pid", &pid, "--defaults-file", options.to_str().unwrap()];
    let mut waggle = Waggle::start(&[&own, arguments].concat());
    waggle.wait_for("the first reading", |waggle| waggle.err().contains("counters are read"));
    waggle
}
