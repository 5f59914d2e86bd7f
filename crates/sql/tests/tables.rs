//! The tables of statements, as a reader of the manual would name them.

use proptest::prelude::*;
use waggle_sql::{Dialect, Normaliser, SessionSettings, TableName, Tables};

/// Statements and their tables, in the order of their first mention.
const CASES: &[(&str, &str)] = &[
    ("select 1", ""),
    ("select 1 from dual", ""),
    ("select a from t", "t"),
    ("select a from t as x where a in (1, 2)", "t"),
    ("select a from d.t", "d.t"),
    ("select a from `d b`.`t``1` x", "d b.t`1"),
    ("select a from d . t", "d.t"),
    ("select a.b, c.d.e from t, u x, v as y where a = (1, 2)", "t u v"),
    ("select a from t1 join t2 on t1.a = t2.b left join d.t3 using (a, b), t4", "t1 t2 d.t3 t4"),
    ("select a from t1 natural left outer join t2 cross join t3 straight_join t4", "t1 t2 t3 t4"),
    ("select straight_join a from t", "t"),
    ("select a from (t1, t2) join (t3 join t4 on 1)", "t1 t2 t3 t4"),
    ("select a from ((t1))", "t1"),
    ("select a from { oj t1 left outer join t2 on t1.a = t2.a }", "t1 t2"),
    ("select a from (select b from t group by c, d) as x (e, f), u", "t u"),
    ("select a from t, lateral (select b from u where u.a = t.a) x, v", "t u v"),
    ("select a from json_table('[1]', '$[*]' columns (x int path '$')) j, t", "t"),
    ("select (select max(b) from u), c from t where exists (select 1 from v)", "u t v"),
    ("select trim(both 'x' from a), extract(year from b), substring(c from 2) from t", "t"),
    ("select a from t where b is distinct from c", "t"),
    ("select a from t partition (p0, p1) x use index (i, j), u", "t u"),
    ("select a from t use index for join (i, j), u force index for order by (k)", "t u"),
    ("select a from t ignore index for group by (i), u group by a, b", "t u"),
    ("select a from t, u for update of t, x", "t u"),
    ("select a from t where a = 1 for share of x, y skip locked", "t"),
    ("select a from t lock in share mode", "t"),
    ("select a into @x, @y from t", "t"),
    ("select a, b from t into x, y", "t"),
    ("select a from t order by b, c limit 1, 2", "t"),
    ("select a from t window w as (partition by b, c), v as (order by d)", "t"),
    ("select a from t group by b with rollup having c in (select d from u)", "t u"),
    ("select a from t union all (select b from u) except select c from v limit 1", "t u v"),
    ("select a from t for system_time as of timestamp '2020-01-01' x, u", "t u"),
    ("select a from t, T, t, d.t", "t T d.t"),
    ("(select a from t) union (select a from u)", "t u"),
    ("table t order by a limit 1", "t"),
    ("table t union table u", "t u"),
    ("values row(1, 2), row(3, 4)", ""),
    ("with x as (select a from t) select b from x, u", "t u"),
    ("with x (a, b) as (select 1 from t), y as (select 1 from x, u) select 1 from y join x", "t u"),
    ("with recursive x as (select 1 union all select a + 1 from x) select a from x, t", "t"),
    ("with t as (select a from t) select a from t", "t"),
    ("with t as (select 1) select a from d.t", "d.t"),
    ("select a from (with x as (select 1 from t) select * from x) y, x", "t x"),
    ("with x as (select 1 from t) update u join x set a = 1", "t u"),
    ("with x as (select 1 from t) delete from u where a in (select 1 from x)", "t u"),
    ("insert into t (a, b) values (1, 2), (3, 4) on duplicate key update a = 1, b = 2", "t"),
    ("insert low_priority ignore into d.t values (1)", "d.t"),
    ("insert t select a from u, v", "t u v"),
    ("insert into t(a) select a from u on duplicate key update b = (select 1 from v)", "t u v"),
    ("insert into t with x as (select 1 from u) select * from x", "t u"),
    ("insert into t set a = 1, b = 2", "t"),
    ("insert into t table u", "t u"),
    ("insert into t partition (p) values (1)", "t"),
    ("replace t values (replace(a, 'b', 'c'))", "t"),
    ("replace delayed into t values (1)", "t"),
    ("update t set a = 1, b = 2 where c = 3", "t"),
    ("update low_priority ignore t x, d.u as y set x.a = y.b, y.c = 1", "t d.u"),
    ("update t join u using (a) set t.a = (select max(b) from v)", "t u v"),
    ("delete from t where a = 1", "t"),
    ("delete low_priority quick ignore from t", "t"),
    ("delete t1, t2 from d.t1 join t2 join t3", "d.t1 t2 t3"),
    ("delete x.*, y.* from t x, u y", "t u"),
    ("delete from x, y using t x join u y using (a)", "t u"),
    ("delete from t1.*, t2.* using t1, t2", "t1 t2"),
    ("truncate t", "t"),
    ("truncate table d.t", "d.t"),
    ("select truncate(a, 2) from t", "t"),
    (
        "create table t (a int, b int comment 'x', index i (a, b)), comment = 'x', engine = innodb",
        "t",
    ),
    ("create table if not exists d.t (a int references u (b))", "d.t u"),
    ("create temporary table t like d.u", "t d.u"),
    ("create table t (like u)", "t u"),
    ("create table t (a varchar(10) check (a like b))", "t"),
    ("create or replace table t as select a from u", "t u"),
    ("create table t (a int) with x as (select 1 from u) select * from x", "t u"),
    ("create view v (a) as select a from t, u", "v t u"),
    ("create algorithm = merge sql security invoker view v as select 1 from t", "v t"),
    ("create unique index i on d.t (a, b)", "d.t"),
    ("create trigger x before insert on t for each row insert into u values (1)", "t"),
    ("create procedure p() begin select 1 from t; end", ""),
    ("create database d", ""),
    ("create user u identified by 'x'", ""),
    ("alter table t add column a int, drop column b, add index (c)", "t"),
    ("alter table t add constraint foreign key (a) references d.u (b) on delete set null", "t d.u"),
    ("alter table t exchange partition p with table u", "t u"),
    ("alter view v as select 1 from t", "v t"),
    ("drop table if exists t, d.u cascade", "t d.u"),
    ("drop temporary table t", "t"),
    ("drop view v, w", "v w"),
    ("drop index i on t", "t"),
    ("drop procedure p", ""),
    ("rename table a to b, c to d.e", "a b c d.e"),
    ("rename user a to b", ""),
    (
        "load data local infile 'x' replace into table d.t fields terminated by ',' (a, b) set c = 1",
        "d.t",
    ),
    ("load xml infile 'x' into table t", "t"),
    ("handler t open as x", "t"),
    ("handler d.t read i = (1) where a = 1", "d.t"),
    ("call p(1, 2)", ""),
    ("call d.p((select a from t))", "t"),
    ("do sleep(1)", ""),
    ("set @a = (select max(a) from t), b = 1", "t"),
    ("set names utf8", ""),
    ("lock tables t as x read, u low_priority write", "t u"),
    ("unlock tables", ""),
    ("flush tables", ""),
    ("flush tables t, u for export", "t u"),
    ("flush tables with read lock", ""),
    ("analyze table t, d.u", "t d.u"),
    ("analyze table t update histogram on a, b with 5 buckets", "t"),
    ("analyze format = json select a from t", "t"),
    ("check table t quick", "t"),
    ("checksum table t, u extended", "t u"),
    ("optimize no_write_to_binlog table t", "t"),
    ("show columns from t from d", "t"),
    ("show full fields in d.t like 'x'", "d.t"),
    ("show index from t where a = 1", "t"),
    ("show create table d.t", "d.t"),
    ("show create view v", "v"),
    ("show create procedure p", ""),
    ("show tables from d", ""),
    ("show table status from d like 'x'", ""),
    ("show open tables in d", ""),
    ("show variables like 'x'", ""),
    ("desc t", "t"),
    ("describe d.t a", "d.t"),
    ("explain t", "t"),
    ("explain select a from t", "t"),
    ("explain extended select a from t join u", "t u"),
    ("explain format = json update t set a = 1", "t"),
    ("explain analyze select a from t", "t"),
    ("explain (select a from t join u)", "t u"),
    ("explain for connection 5", ""),
    ("grant select (a) on d.t to u", ""),
    ("revoke select on d.t from u", ""),
    ("prepare s from 'select a from t'", ""),
    ("begin", ""),
    ("start transaction with consistent snapshot", ""),
    ("commit", ""),
    ("kill 5", ""),
    ("select a from t; select b from u", "t"),
    ("select /* from u */ a from /* x */ t -- , v\n, w", "t w"),
    ("select /*+ JOIN_ORDER(x, y) */ a from t", "t"),
    ("select a from /*!40000 t, */ u", "t u"),
    ("select 'from x' from t", "t"),
    ("", ""),
];

fn tables(sql: &str) -> String {
    listed(&Tables::of(sql.as_bytes(), Dialect::Mysql9.reading(), SessionSettings::default()))
}

fn listed(tables: &Tables) -> String {
    let one = |table: &TableName| match &table.schema {
        Some(schema) => format!("{schema}.{}", table.name),
        None => table.name.clone(),
    };
    tables.names.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_form_of_statement_names_its_tables() {
    let wrong: Vec<String> = CASES
        .iter()
        .filter(|(sql, expected)| tables(sql) != *expected)
        .map(|(sql, expected)| format!("{sql}\n  expected {expected}\n  found    {}", tables(sql)))
        .collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// A digest text has no values, its names stand in backticks and its words in capitals.
#[test]
fn a_digest_text_names_the_tables_of_its_statement() {
    let mut compared = 0;
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    // MySQL 9 knows no such table versions: `AS OF` is a name there.
    for (sql, expected) in CASES.iter().filter(|(sql, _)| !sql.contains("system_time")) {
        let digest = normaliser.digest(sql.as_bytes()).text().to_owned();
        // A backtick inside a name stands alone in a digest text.
        if !expected.contains('`') {
            assert_eq!(tables(&digest).to_lowercase(), expected.to_lowercase(), "{digest}");
            compared += 1;
        }
    }
    assert!(compared > 120, "only {compared} compared");
}

#[test]
fn more_tables_than_are_kept_are_said_to_be_missing() {
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
        format!("select 1 from {}", names.join(", "))
    };
    let reading = Dialect::Mysql9.reading();
    let some = Tables::of(names(32).as_bytes(), reading, SessionSettings::default());
    assert_eq!((some.names.len(), some.truncated), (32, false));
    let many = Tables::of(names(33).as_bytes(), reading, SessionSettings::default());
    assert_eq!((many.names.len(), many.truncated), (32, true));
    let deep = format!("select 1 from {}t{}", "(".repeat(65), ")".repeat(65));
    assert!(Tables::of(deep.as_bytes(), reading, SessionSettings::default()).truncated);
}

#[test]
fn a_name_that_the_capture_limit_may_have_cut_is_left_out() {
    let reading = Dialect::Mysql9.reading();
    let beginning = |sql: &str| {
        listed(&Tables::of_beginning(sql.as_bytes(), reading, SessionSettings::default()))
    };
    assert_eq!(beginning("select a from t, orde"), "t");
    assert_eq!(beginning("select a from t, orders "), "t orders");
    assert_eq!(beginning("select a from t, `orde"), "t");
}

proptest! {
    #[test]
    fn blanks_comments_and_case_change_nothing(
        case in 0..CASES.len(),
        blank in "[ \t\n]{1,3}|/\\* [a-z]{0,5} \\*/|-- x\n",
        upper in any::<bool>(),
    ) {
        let (sql, expected) = CASES[case];
        // Inside strings and comments a blank is not between tokens.
        prop_assume!(!sql.contains(['\'', '`', '*']) && !sql.contains("--"));
        // Names that only their case tells apart.
        prop_assume!(!expected.contains('T'));
        let sql = sql.replace(' ', &blank);
        let sql = if upper { sql.to_uppercase() } else { sql };
        prop_assert_eq!(tables(&sql).to_lowercase(), expected.to_lowercase());
    }

    #[test]
    fn the_tables_of_a_beginning_are_among_those_of_the_whole(
        case in 0..CASES.len(),
        cut in 0..120_usize,
    ) {
        let (sql, _) = CASES[case];
        let reading = Dialect::Mysql9.reading();
        let beginning = Tables::of_beginning(&sql.as_bytes()[..cut.min(sql.len())], reading, SessionSettings::default());
        let whole = Tables::of(sql.as_bytes(), reading, SessionSettings::default());
        // What makes a name an alias, a function or a schema may stand after the cut.
        prop_assert!(beginning.names.len() <= whole.names.len() + 2);
    }
}
