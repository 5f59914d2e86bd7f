//! Statements without a reply of their own, on real servers.

use std::fs;

use waggle_model::{Loss, Losses, Origin, Statement};
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_testkit::client::{Client, Command, Transport};
use waggle_testkit::{Account, PerformanceSchema, Server, Version, wait_showing, wait_until};

use crate::recognised;

/// What is compared of a statement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    text: String,
    rows_sent: Option<u64>,
    rows_affected: Option<u64>,
    error: Option<u32>,
    database: Option<String>,
}

/// A server that is watched, and what was captured of it.
struct Watched {
    tap: Tap,
    pid: u32,
    nested: Vec<Seen>,
    users: Vec<Option<String>>,
    examined: u64,
    /// Of clients, with the connection id.
    client: Vec<(u64, Seen)>,
}

fn string(bytes: Option<&Vec<u8>>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

fn seen(statement: &Statement<'_>) -> Seen {
    let text = statement.text.map_or(&b""[..], |text| text.bytes);
    Seen {
        text: String::from_utf8_lossy(text).into_owned(),
        rows_sent: statement.rows_sent,
        rows_affected: statement.rows_affected,
        error: statement.error,
        database: string(statement.identity.database.as_ref()),
    }
}

impl Watched {
    fn of(server: &Server, nested: bool) -> Self {
        let pid = server.pid();
        let server = recognised(server);
        let mut tap = Tap::new(TapOptions { nested, ..TapOptions::default() }).unwrap();
        tap.attach(&server.instance, &server.layout).unwrap();
        let (nested, users, client) = (Vec::new(), Vec::new(), Vec::new());
        Self { tap, pid, nested, users, examined: 0, client }
    }

    fn drain(&mut self) {
        let Self { tap, pid, nested, users, examined, client } = self;
        tap.drain(Amount::UpToNow, |statement| {
            assert_eq!(statement.pid, *pid);
            if statement.origin == Origin::Client {
                client.push((statement.connection_id.unwrap(), seen(statement)));
                return;
            }
            assert!(statement.latency_ns.unwrap() <= statement.end_ns, "{statement:?}");
            assert_eq!((statement.bytes_sent, statement.first_byte_ns), (None, None));
            nested.push(seen(statement));
            users.push(string(statement.identity.user.as_ref()));
            *examined += statement.rows_examined.unwrap();
        });
    }

    fn drain_until(&mut self, what: &str, mut is_there: impl FnMut(&Self) -> bool) {
        wait_showing(what, || {
            self.drain();
            if is_there(self) { Ok(()) } else { Err(format!("{:?}", self.nested)) }
        });
    }

    /// Runs a statement of a client, waits for its record, and returns what ran inside of it.
    fn run(&mut self, client: &mut Client, sql: &str) -> Vec<Seen> {
        self.nested.clear();
        self.client.clear();
        client.query(sql).unwrap();
        let id = u64::from(client.connection_id());
        let is_outer = |(of, seen): &&(u64, Seen)| *of == id && seen.text == sql;
        self.drain_until(sql, |watched| watched.client.iter().any(|outer| is_outer(&outer)));
        let of_client = self.client.iter().filter(|(of, _)| *of == id).count();
        assert_eq!(of_client, 1, "the statement itself counts once: {:?}", self.client);
        std::mem::take(&mut self.nested)
    }
}

fn expected(text: &str, sent: u64, affected: u64, error: u32) -> Seen {
    Seen {
        text: text.to_owned(),
        rows_sent: Some(sent),
        rows_affected: Some(affected),
        error: Some(error),
        database: Some("test".to_owned()),
    }
}

fn connect(server: &Server) -> Client {
    Client::builder().database("test").connect(server, Transport::Tcp, Account::APP).unwrap()
}

const PROGRAMS: [&str; 9] = [
    "create database other",
    "create table t (id int primary key, v int)",
    "create table log (id int auto_increment primary key, v int)",
    "create procedure inner_p(n int) update t set v = v + 1 where id = n",
    "create procedure p(n int) begin \
       declare continue handler for 1062 select 'twice'; \
       insert into t values (n, 1), (n + 1, 2); \
       insert into t values (n, 1); \
       call inner_p(n); \
       select * from t; \
       if (select count(*) from t) > 0 then delete from t where id = n + 1; end if; end",
    "create procedure other.q() select 'in other'",
    "create procedure dynamic() begin \
       set @s = 'select 5 union select 6'; prepare s from @s; execute s; end",
    "create function f(n int) returns int reads sql data begin declare r int; \
       select count(*) into r from t where id <= n; return r; end",
    "create trigger tr before insert on log for each row \
       update t set v = v + new.v where id = 1",
];

/// What the server itself has of nested statements: text, error and rows changed, in order. Its
/// rows sent and examined are sums over the whole session, and MariaDB has no rows changed.
fn of_server(client: &mut Client) -> Vec<(String, String, String)> {
    let sql = "select sql_text, mysql_errno, rows_affected \
        from performance_schema.events_statements_history_long \
        where event_name = 'statement/sp/stmt' order by timer_end";
    let rows = client.run(sql).unwrap().remove(0);
    let text = |row, column| rows.text(row, column).unwrap_or_default();
    (0..rows.rows.len()).map(|row| (text(row, 0), text(row, 1), text(row, 2))).collect()
}

#[test]
fn statements_of_stored_programs_are_captured_with_their_own_text_rows_and_errors() {
    for version in Version::ALL {
        let server = Server::builder(version)
            .performance_schema(PerformanceSchema::Statements)
            .start()
            .unwrap();
        let mut watched = Watched::of(&server, true);
        let coverage = watched.tap.nested(server.pid()).unwrap();
        assert_eq!(coverage.routines.why(), None, "{version}");
        assert_eq!(coverage.applied.why(), None, "{version}");
        let mut client = connect(&server);
        let mut root = server.root().unwrap();
        for sql in PROGRAMS {
            client.run(sql).unwrap();
        }
        watched.drain();
        root.run("truncate performance_schema.events_statements_history_long").unwrap();

        let mut all = watched.run(&mut client, "call p(1)");
        let inside = [
            expected("insert into t values (n, 1), (n + 1, 2)", 0, 2, 0),
            expected("insert into t values (n, 1)", 0, 0, 1062),
            expected("select 'twice'", 1, 0, 0),
            expected("update t set v = v + 1 where id = n", 0, 1, 0),
            expected("call inner_p(n)", 0, 1, 0),
            expected("select * from t", 2, 0, 0),
            expected("delete from t where id = n + 1", 0, 1, 0),
        ];
        assert_eq!(all, inside, "{version}");

        let calls = watched.run(&mut client, "select f(id) from (select 1 id union select 2) x");
        let call = expected("select count(*) into r from t where id <= n", 0, 1, 0);
        assert_eq!(calls, [call.clone(), call], "{version}");
        all.extend(calls);

        watched.examined = 0;
        let fired = watched.run(&mut client, "insert into log(v) values (1),(2),(3),(4),(5)");
        let one = expected("update t set v = v + new.v where id = 1", 0, 1, 0);
        assert_eq!(fired, vec![one; 5], "{version}");
        assert_eq!(watched.examined, 5, "{version}: each looked at one row of its own");
        all.extend(fired);

        let other = watched.run(&mut client, "call other.q()");
        let mut in_other = expected("select 'in other'", 1, 0, 0);
        in_other.database = Some("other".to_owned());
        assert_eq!(other, [in_other], "{version}");
        all.extend(other);

        let ours: Vec<(String, String)> =
            all.iter().map(|seen| (seen.text.clone(), seen.error.unwrap().to_string())).collect();
        let servers = of_server(&mut root);
        let theirs: Vec<(String, String)> =
            servers.iter().map(|(text, error, _)| (text.clone(), error.clone())).collect();
        assert_eq!(ours, theirs, "{version}");
        if !version.is_mariadb() {
            let ours = all.iter().map(|seen| seen.rows_affected.unwrap().to_string());
            assert!(ours.eq(servers.into_iter().map(|(_, _, rows)| rows)), "{version}");
        }

        let dynamic = watched.run(&mut client, "call dynamic()");
        assert_eq!(dynamic[2], expected("select 5 union select 6", 2, 0, 0), "{version}");
        assert!(watched.users.iter().all(|user| user.as_deref() == Some("app")), "{version}");
        assert_eq!(watched.tap.losses(watched.pid).statements(), 0, "{version}");
    }
}

#[test]
fn a_statement_that_is_prepared_anew_counts_once() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut watched = Watched::of(&server, true);
        let mut client = connect(&server);
        for sql in [
            "create table t (id int primary key)",
            "create procedure p() begin select * from t; select id from t where id > 1; end",
            "call p()",
        ] {
            client.run(sql).unwrap();
        }
        watched.drain();
        for column in ["a", "b", "c"] {
            watched.run(&mut client, &format!("alter table t add column {column} int"));
            assert_eq!(watched.run(&mut client, "call p()").len(), 2, "{version}");
        }
    }
}

#[test]
fn without_the_option_no_nested_statement_is_captured_and_the_outer_ones_are_the_same() {
    for version in [Version::Mysql80, Version::Mariadb1011] {
        let server = Server::start(version).unwrap();
        let mut watched = Watched::of(&server, false);
        assert!(watched.tap.nested(server.pid()).is_none());
        let mut client = connect(&server);
        for sql in PROGRAMS {
            client.run(sql).unwrap();
        }
        watched.drain();
        for sql in ["call p(1)", "insert into log(v) values (1)", "select f(1)"] {
            assert!(watched.run(&mut client, sql).is_empty(), "{version}: {sql}");
        }
    }
}

#[test]
fn the_statements_of_an_event_belong_to_its_definer() {
    for version in Version::ALL {
        let server = Server::builder(version).arg("--event-scheduler=ON").start().unwrap();
        let mut watched = Watched::of(&server, true);
        let mut client = connect(&server);
        client.run("create table log (id int auto_increment primary key, v int)").unwrap();
        client
            .run(
                "create event e on schedule at current_timestamp do begin \
                 insert into log(v) values (7); update log set v = 8; end",
            )
            .unwrap();
        watched.drain_until("two statements", |watched| watched.nested.len() == 2);
        let inside = [
            expected("insert into log(v) values (7)", 0, 1, 0),
            expected("update log set v = 8", 0, 1, 0),
        ];
        assert_eq!(watched.nested, inside, "{version}");
        assert_eq!(watched.users, vec![Some("app".to_owned()); 2], "{version}");
    }
}

/// Makes `replica` follow `primary` from where its binary log now ends.
fn follow(primary: &mut Client, port: u16, replica: &mut Client, version: Version) {
    let is_new = version == Version::Mysql9;
    let status = if is_new { "show binary log status" } else { "show master status" };
    let status = primary.run(status).unwrap().remove(0);
    let (file, position) = (status.text(0, 0).unwrap(), status.text(0, 1).unwrap());
    let (change, prefix, start) = if is_new {
        ("change replication source to source_ssl=0, get_source_public_key=1", "source", "replica")
    } else {
        ("change master to master_ssl=0", "master", "slave")
    };
    // MariaDB 11.4 checks the certificate of a server by default.
    let check = if version.is_mariadb() { ", master_ssl_verify_server_cert=0" } else { "" };
    replica
        .run(format!(
            "{change}{check}, {prefix}_host='127.0.0.1', {prefix}_port={port}, \
             {prefix}_user='app', {prefix}_password='', \
             {prefix}_log_file='{file}', {prefix}_log_pos={position}"
        ))
        .unwrap();
    replica.run(format!("start {start}")).unwrap();
}

#[test]
fn a_replica_shows_the_statements_that_it_applies_and_those_of_its_triggers() {
    for version in Version::ALL {
        let primary =
            Server::builder(version).binlog(true).arg("--binlog-format=STATEMENT").start().unwrap();
        let mut replica = Server::builder(version).arg("--server-id=2").start().unwrap();
        // A copied MySQL has the UUID of the other; without this file it makes its own.
        if !version.is_mariadb() {
            fs::remove_file(replica.datadir().join("auto.cnf")).unwrap();
        }
        replica.restart().unwrap();
        let mut watched = Watched::of(&replica, true);
        let (mut client, mut other) = (connect(&primary), connect(&replica));
        follow(&mut client, primary.port(), &mut other, version);
        for sql in [
            "create table r (id int primary key, v int)",
            "create table l (id int auto_increment primary key, v int)",
            "insert into r values (1,1),(2,2),(3,3)",
            "update r set v = v + 1 where id > 1",
        ] {
            client.run(sql).unwrap();
        }
        let last = |text: &'static str| {
            move |watched: &Watched| watched.nested.iter().any(|seen| seen.text == text)
        };
        watched.drain_until("the update", last("update r set v = v + 1 where id > 1"));
        other
            .run("create trigger tr after insert on l for each row delete from r where id = 1")
            .unwrap();
        other.run("insert into r values (9, 9)").unwrap();
        client.run("insert into l(v) values (5)").unwrap();
        client.run("insert into r values (9, 0)").unwrap();
        watched.drain_until("the failing insert", last("insert into r values (9, 0)"));

        // MariaDB's applier carries out BEGIN without applying it as a statement.
        let applied: Vec<Seen> =
            watched.nested.iter().filter(|seen| seen.text != "BEGIN").cloned().collect();
        let texts: Vec<&str> = applied.iter().map(|seen| seen.text.as_str()).collect();
        let in_order = [
            "create table r (id int primary key, v int)",
            "create table l (id int auto_increment primary key, v int)",
            "insert into r values (1,1),(2,2),(3,3)",
            "update r set v = v + 1 where id > 1",
            "delete from r where id = 1",
            "insert into l(v) values (5)",
            "insert into r values (9, 0)",
        ];
        assert_eq!(texts[..7], in_order, "{version}");
        assert_eq!(applied[4], expected("delete from r where id = 1", 0, 1, 0), "{version}");
        // What MariaDB's applier has cleared is absent, not zero.
        let changed = if version.is_mariadb() { None } else { Some(2) };
        assert_eq!((applied[3].rows_affected, applied[3].error), (changed, Some(0)), "{version}");
        assert_eq!(applied[6].error, Some(1062), "{version}");
        assert_eq!(watched.tap.losses(watched.pid).statements(), 0, "{version}");
        assert_eq!(watched.tap.losses(watched.pid).get(Loss::MapFull), 0, "{version}");
        assert_eq!(watched.tap.losses(watched.pid).get(Loss::NoStatement), 0, "{version}");
    }
}

/// Sessions that each run `depth` statements inside one another, and how they ended: how many
/// were captured, and how many of them without what their begin would have told.
fn recurse(watched: &mut Watched, server: &Server, sessions: usize, depth: usize) -> (usize, u64) {
    let mut root = connect(server);
    root.run(
        "create procedure r(n int) \
         begin if n > 1 then call r(n - 1); else do sleep(600); end if; end",
    )
    .unwrap();
    let mut clients: Vec<Client> = (0..sessions).map(|_| connect(server)).collect();
    for client in &mut clients {
        client.run("set max_sp_recursion_depth = 255").unwrap();
        client.send(Command::Query, format!("call r({depth})").as_bytes()).unwrap();
    }
    let asleep = "select count(*) from information_schema.processlist where state = 'User sleep'";
    wait_until("all sessions at the bottom", || {
        root.run(asleep).unwrap()[0].text(0, 0) == Some(sessions.to_string())
    });
    let (mut nested, mut without_begin) = (0, 0);
    let mut count = |statement: &Statement<'_>| {
        if statement.origin == Origin::Nested {
            nested += 1;
            without_begin += u64::from(statement.latency_ns.is_none());
            assert_eq!(statement.latency_ns.is_none(), statement.rows_examined.is_none());
            assert!(statement.text.is_some());
        }
    };
    for client in &mut clients {
        root.run(format!("kill query {}", client.connection_id())).unwrap();
        client.read_reply().unwrap();
        watched.tap.drain(Amount::UpToNow, &mut count);
    }
    (nested, without_begin)
}

#[test]
fn what_lies_deeper_than_the_kernel_can_see_is_counted_as_lost() {
    let server = Server::builder(Version::Mysql80).arg("--thread-stack=16M").start().unwrap();
    let mut watched = Watched::of(&server, true);
    let (captured, without_begin) = recurse(&mut watched, &server, 3, 200);
    assert_eq!((captured, without_begin), (3 * 64, 0));
    let lost = watched.tap.losses(watched.pid);
    assert_eq!(lost.statements(), 3 * (200 - 64));
    // The next server with this pid has lost nothing yet.
    assert_eq!(watched.tap.detach(watched.pid), lost);
    assert_eq!(watched.tap.losses(watched.pid), Losses::default());
}

#[test]
fn what_runs_beyond_the_bound_is_captured_without_what_its_begin_would_have_told() {
    let server = Server::builder(Version::Mariadb1011).arg("--thread-stack=8M").start().unwrap();
    let mut watched = Watched::of(&server, true);
    // The map holds 8192 statements.
    let (captured, without_begin) = recurse(&mut watched, &server, 130, 64);
    assert_eq!(captured, 130 * 64);
    assert_eq!(without_begin, 130 * 64 - 8192);
    assert_eq!(watched.tap.losses(watched.pid).get(Loss::MapFull), without_begin);
    assert_eq!(watched.tap.losses(watched.pid).statements(), 0);
}
