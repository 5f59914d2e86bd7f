//! What a kind works with: one server, one transport, the capture, and the sessions it opens.

use std::rc::Rc;

use waggle_model::RunningStatement;
use waggle_testkit::client::{StatementHandle, Transport};
use waggle_testkit::{Account, Server, Version, wait_showing, wait_until};

use super::absent::Absent;
use super::expected::compare;
use super::talker::{Log, Login, Talker};
use crate::capture::{Capture, Seen};

/// What every server of the matrix holds. One statement per line; routines end at their own line.
pub(super) const TABLES: &[&str] = &[
    "CREATE DATABASE abcd",
    "CREATE DATABASE efgh",
    "CREATE DATABASE much_longer_name",
    "CREATE TABLE digits (d INT PRIMARY KEY)",
    "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    "CREATE TABLE numbers (n INT PRIMARY KEY, k INT NOT NULL, pad CHAR(100) NOT NULL, KEY (k))",
    "INSERT INTO numbers SELECT a.d * 100 + b.d * 10 + c.d + 1, c.d, REPEAT('p', 100) \
     FROM digits a, digits b, digits c",
    "CREATE TABLE kept (id INT PRIMARY KEY AUTO_INCREMENT, v BIGINT NOT NULL, note LONGTEXT)",
    "INSERT INTO kept (v) VALUES (1), (2), (3)",
    "CREATE TABLE bag (id INT PRIMARY KEY AUTO_INCREMENT, v BIGINT)",
    "CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT, v BIGINT)",
    "CREATE TABLE watched (id INT PRIMARY KEY AUTO_INCREMENT, v BIGINT)",
    "CREATE TRIGGER on_watched AFTER INSERT ON watched FOR EACH ROW \
     INSERT INTO audit (v) VALUES (NEW.v)",
    "CREATE TABLE ticks (id INT PRIMARY KEY AUTO_INCREMENT)",
    "CREATE PROCEDURE two_results() BEGIN \
     SELECT n FROM numbers WHERE n = 1; \
     UPDATE kept SET v = v + 1 WHERE id <= 3; \
     SELECT n FROM numbers WHERE n <= 2; END",
    "CREATE PROCEDURE silent() BEGIN \
     UPDATE kept SET v = v + 1 WHERE id <= 2; UPDATE kept SET v = v + 1 WHERE id <= 3; END",
    "CREATE PROCEDURE signals() BEGIN \
     SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 5001, MESSAGE_TEXT = 'on purpose'; END",
    "CREATE PROCEDURE fails_late() BEGIN SELECT 1; SELECT n FROM nowhere; END",
    "CREATE PROCEDURE handles() BEGIN \
     DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SELECT 'handled'; \
     INSERT INTO kept (id, v) VALUES (1, 1); SELECT 'after'; END",
    "CREATE DEFINER = root@localhost PROCEDURE as_definer() SQL SECURITY DEFINER BEGIN \
     SELECT CURRENT_USER(); SELECT n FROM numbers WHERE n = 3; END",
    "CREATE DEFINER = root@localhost FUNCTION half(x INT) RETURNS INT DETERMINISTIC \
     SQL SECURITY DEFINER RETURN x / 2",
    "CREATE PROCEDURE abcd.elsewhere() BEGIN SELECT DATABASE(); SELECT 2; END",
];

/// The statement that is prepared before the tap is attached.
pub(crate) const EARLY: &str = "SELECT n FROM numbers WHERE n = ?";

/// Sessions that were there before the tap.
pub(crate) struct Early {
    /// With a prepared statement.
    pub(crate) prepared: (Talker, StatementHandle),
    /// Whose first statement is a CALL.
    pub(crate) calls: Talker,
}

/// One server with its capture.
pub(crate) struct Scene {
    pub(crate) server: Server,
    pub(crate) version: Version,
    pub(crate) transport: Transport,
    /// Whether the query cache is on, for statements that ask for it.
    pub(crate) query_cache: bool,
    /// A session of the administrator for everything around the statements that are tested.
    pub(crate) control: Talker,
    early: Vec<(Transport, Early)>,
    capture: Capture,
    log: Log,
    hosts: Vec<(Transport, String)>,
}

impl Scene {
    /// Fills the server, opens the sessions that were there before the tap, and attaches.
    pub(crate) fn set(server: Server, query_cache: bool, transports: &[Transport]) -> Self {
        let log = Log::default();
        let mut login = Login {
            transport: Transport::Unix,
            account: Account::ROOT,
            database: Some("test"),
            host: "localhost".to_owned(),
            deprecate_eof: false,
        };
        let mut control = Talker::open(&server, &login, &log).unwrap();
        for sql in TABLES {
            control.run(sql);
        }
        let mut capture = Capture::of(&server);
        let mut hosts = Vec::new();
        let mut early = Vec::new();
        login.account = Account::APP;
        for &transport in transports {
            login.transport = transport;
            let mut talker = Talker::open(&server, &login, &log).unwrap();
            let mut calls = Talker::open(&server, &login, &log).unwrap();
            let user = talker.run("SELECT USER()").text(0, 0).unwrap();
            let host = user.split_once('@').unwrap().1.to_owned();
            talker.who.host.clone_from(&host);
            calls.who.host.clone_from(&host);
            let statement = talker.prepare(EARLY);
            hosts.push((transport, host));
            early.push((transport, Early { prepared: (talker, statement), calls }));
        }
        // All that came so far ended before the tap is there.
        capture.at_rest();
        capture.attach();
        log.borrow_mut().clear();
        let version = server.version();
        let transport = Transport::Unix;
        Self { server, version, transport, query_cache, control, early, capture, log, hosts }
    }

    /// The settings of a session in the transport of the moment.
    pub(crate) fn login(&self) -> Login {
        let host = self.hosts.iter().find(|(transport, _)| *transport == self.transport);
        Login {
            transport: self.transport,
            account: Account::APP,
            database: Some("test"),
            host: host.map(|(_, host)| host.clone()).unwrap(),
            deprecate_eof: false,
        }
    }

    pub(crate) fn open_as(&self, login: &Login) -> Talker {
        Talker::open(&self.server, login, &self.log).unwrap()
    }

    /// A session of the ordinary kind.
    pub(crate) fn open(&self) -> Talker {
        self.open_as(&self.login())
    }

    /// The sessions of this transport that were there before the tap.
    pub(crate) fn early(&mut self) -> &mut Early {
        let transport = self.transport;
        self.early.iter_mut().find(|(of, _)| *of == transport).map(|(_, early)| early).unwrap()
    }

    pub(crate) fn log(&self) -> Log {
        Rc::clone(&self.log)
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.version.is_mariadb()
    }

    /// Keeps the ring from filling up.
    pub(crate) fn drain(&mut self) {
        self.capture.drain();
    }

    /// Waits until a session runs what `is_it` looks for.
    pub(crate) fn wait_until_runs(&mut self, id: u64, is_it: impl Fn(&RunningStatement) -> bool) {
        wait_showing(format_args!("the statement of connection {id}"), || {
            let running = self.capture.running();
            let runs = running.iter().any(|now| now.connection_id == id && is_it(now));
            if runs { Ok(()) } else { Err(format!("{running:?}")) }
        });
    }

    /// Looks at every session, as the binary does once a second.
    pub(crate) fn look(&mut self) {
        self.capture.look();
    }

    /// Takes the tap away and brings it back.
    pub(crate) fn attach_again(&mut self, meanwhile: impl FnOnce()) {
        self.capture.detached(meanwhile);
    }

    /// What is absent here, if it is.
    pub(crate) fn lacks(&self, absent: Absent) -> bool {
        absent.reason(self.version, self.transport).is_some()
    }

    /// Whether the server still has a session of that number.
    pub(crate) fn has(&mut self, id: u64) -> bool {
        let sql = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
        self.control.run(&sql).text(0, 0).as_deref() != Some("0")
    }

    /// Waits until the server has no session of that number.
    pub(crate) fn wait_until_gone(&mut self, id: u64) {
        wait_until(format_args!("the end of connection {id}"), || {
            self.drain();
            !self.has(id)
        });
    }

    /// Compares everything that was captured with everything that was noted, and forgets both.
    pub(crate) fn reckon(&mut self) -> Vec<String> {
        let seen = self.capture.at_rest();
        let mut log = std::mem::take(&mut *self.log.borrow_mut());
        if self.transport == Transport::Compressed {
            log.values_mut().flatten().for_each(|expected| expected.bytes = 1);
        }
        let mut found = Vec::new();
        for (id, expected) in &log {
            let of_this: Vec<&Seen> = seen.iter().filter(|seen| seen.connection == *id).collect();
            found.extend(compare(expected, &of_this));
        }
        let strangers = seen.iter().filter(|seen| !log.contains_key(&seen.connection));
        found.extend(strangers.map(|seen| format!("extra, of no known client: {}", seen.brief())));
        found
    }

    /// What the tap says that it lost.
    pub(crate) fn losses(&self) -> waggle_model::Losses {
        self.capture.losses()
    }
}
