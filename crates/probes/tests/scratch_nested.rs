//! scratch
#![allow(clippy::all, clippy::pedantic, clippy::restriction, missing_docs, unused)]
use std::path::Path;
use std::time::{Duration, Instant};
use waggle_model::*;
use waggle_probes::tap::{Tap, TapOptions};
use waggle_probes::target::discover::servers;
use waggle_probes::target::recognise::Builds;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, PerformanceSchema, Server, Version};

fn text(t: &Statement<'_>) -> String { t.text.map_or("<none>".into(), |t| String::from_utf8_lossy(t.bytes).into_owned()) }

#[test]
fn explore() {
    let only = std::env::var("V").ok();
    for version in Version::ALL {
        if only.as_ref().is_some_and(|o| o != version.name()) { continue }
        println!("===== {version}");
        let mut b = Server::builder(version).performance_schema(PerformanceSchema::Statements).arg("--event-scheduler=ON");
        if std::env::var("BINLOG").is_ok() { b = b.binlog(true).arg("--binlog-format=STATEMENT").arg("--log-bin-trust-function-creators=1"); }
        let server = b.start().unwrap();
        let found = servers(Path::new("/proc")).into_iter().find(|f| f.pid == server.pid()).unwrap();
        let rec = Builds::default().recognise(&found).unwrap();
        let mut tap = Tap::new(TapOptions { nested: true, ..Default::default() }).unwrap();
        let hook = tap.attach(&rec.instance, &rec.layout).unwrap();
        println!("{hook} {:?}", tap.nested(server.pid()));
        let mut c = Client::builder().database("test").connect(&server, Transport::Tcp, Account::APP).unwrap();
        for sql in [
            "create table t (id int primary key, v int)", "create table log (id int auto_increment primary key, v int)",
            "create database other",
            "create procedure inner_p(n int) begin update t set v = v + 1 where id = n; end",
            "create procedure p(n int) begin
               declare continue handler for 1062 select 'dup' as h;
               insert into t values (n, 1), (n + 1, 2);
               insert into t values (n, 1);
               call inner_p(n);
               select * from t where id < 100;
               set @a = (select count(*) from t);
               if (select count(*) from t) > 0 then delete from t where id = n + 1; end if;
             end",
            "create procedure other.q() select database(), 1",
            "create function f(n int) returns int reads sql data begin declare r int; select count(*) into r from t where id <= n; return r; end",
            "create trigger tr before insert on log for each row update t set v = v + new.v where id = 1",
            "create procedure dyn() begin set @s = 'select count(*) from t'; prepare s from @s; execute s; deallocate prepare s; end",
            "create procedure cur() begin declare x int; declare c cursor for select id from t; open c; fetch c into x; close c; end",
            "create procedure wide() select * from t where id < 3",
        ] { c.run(sql).unwrap(); }
        let mut root = Client::connect(&server, Transport::Unix, Account::ROOT).unwrap();
        let mut seen = |tap: &mut Tap| { loop {
            let n = tap.drain(10000, |s| {
                println!("  {:?} id={:?} cmd={:?} lat={:?}us sent={:?} exam={:?} aff={:?} err={:?} st={:?} user={:?} db={:?} | {}", s.origin, s.connection_id.unwrap(), s.command.unwrap().0, s.latency_ns.map(|n| n / 1000), s.rows_sent, s.rows_examined, s.rows_affected, s.error, s.server_status.map(|s|s.0),
                   s.identity.user.as_ref().map(|u| String::from_utf8_lossy(u).into_owned()), s.identity.database.as_ref().map(|u| String::from_utf8_lossy(u).into_owned()), text(s).replace('\n', " "));
            });
            if n == 0 { break }
        } };
        seen(&mut tap);
        for sql in ["call p(1)", "call other.q()", "select f(id) from (select 1 id union select 2 union select 3) x", "insert into log(v) values (1),(2),(3)", "call dyn()", "call cur()", "call wide()", "alter table t add column w int", "call wide()",
           ] {
            root.run("truncate performance_schema.events_statements_history_long").unwrap();
            seen(&mut tap);
            println!("--- {sql}");
            let r = c.query(sql).unwrap();
            if let Some(e) = r.iter().find_map(|r| r.error.clone()) { println!("  ERROR {e:?}"); }
            seen(&mut tap);
            let r = root.run("select event_name, nesting_event_level, rows_sent, rows_examined, rows_affected, mysql_errno, round(timer_wait/1000000), current_schema, sql_text from performance_schema.events_statements_history_long where nesting_event_id is not null order by timer_end").unwrap();
            for row in 0..r[0].rows.len() { println!("  PS {}", (0..9).map(|i| r[0].text(row, i).unwrap_or("NULL".into())).collect::<Vec<_>>().join(" | ").replace('\n', " ")); }
        }
        println!("--- event");
        root.run("truncate performance_schema.events_statements_history_long").unwrap();
        c.run("create event e on schedule at current_timestamp do begin insert into log(v) values (7); update t set v = 0; end").unwrap();
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until { seen(&mut tap); std::thread::sleep(Duration::from_millis(20)); }
        let r = root.run("select event_name, nesting_event_level, rows_sent, rows_examined, rows_affected, mysql_errno, round(timer_wait/1000000), current_schema, sql_text from performance_schema.events_statements_history_long where nesting_event_id is not null order by timer_end").unwrap();
        for row in 0..r[0].rows.len() { println!("  PS {}", (0..9).map(|i| r[0].text(row, i).unwrap_or("NULL".into())).collect::<Vec<_>>().join(" | ").replace('\n', " ")); }
        println!("{:?} {:?}", tap.losses(), tap.counts());
        tap.detach(server.pid());
    }
}
