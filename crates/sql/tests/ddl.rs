//! Statements of data definition, by their text.

use proptest::prelude::*;
use waggle_sql::{Charset, Ddl, DdlKind, SessionSettings, SqlModes, SqlPrepared};

fn read(sql: &str) -> Option<Ddl> {
    Ddl::of(sql.as_bytes(), SessionSettings::default())
}

/// Kind and objects, such as `drop_table table a, table s.b`.
fn in_words(ddl: &Ddl) -> String {
    let objects: Vec<String> = ddl
        .objects
        .iter()
        .map(|object| format!("{} {object}", object.object_type.name()))
        .collect();
    format!("{} {}", ddl.kind.name(), objects.join(", ")).trim_end().to_owned()
}

/// A statement and what it does.
const STATEMENTS: &[(&str, &str)] = &[
    ("create table t (a int)", "create_table table t"),
    ("CREATE TABLE IF NOT EXISTS `s`.`t` LIKE s.u", "create_table table s.t"),
    ("create temporary table t select * from u", "create_table table t"),
    ("create or replace table s.t (a int)", "create_table table s.t"),
    ("/*!40101 create*/ table t (a int)", "create_table table t"),
    ("-- a comment\n create /* b */ table t (a int)", "create_table table t"),
    ("create table 2020_orders (a int)", "create_table table 2020_orders"),
    ("create table `a``b` (a int)", "create_table table a`b"),
    ("alter table s.t add column b int, rename to u", "alter_table table s.t"),
    ("alter online table t add b int", "alter_table table t"),
    ("alter table t rename column a to b", "alter_table table t"),
    ("drop table a, s.b, `c d`", "drop_table table a, table s.b, table c d"),
    ("drop temporary table if exists a", "drop_table table a"),
    ("drop tables a", "drop_table table a"),
    ("rename table a to b, s.c to s.d", "rename_table table a, table b, table s.c, table s.d"),
    ("truncate t", "truncate table t"),
    ("truncate table s.t", "truncate table s.t"),
    ("create index i on t (a)", "create_index index i, table t"),
    ("create unique index i using btree on s.t (a)", "create_index index i, table s.t"),
    ("create fulltext index if not exists i on t (a)", "create_index index i, table t"),
    ("drop index i on s.t", "drop_index index i, table s.t"),
    ("create view s.v as select 1", "create_view view s.v"),
    (
        "create or replace algorithm = merge definer = `a`@`b` sql security definer view v as select 1",
        "create_view view v",
    ),
    ("alter view v as select 1", "create_view view v"),
    ("drop view if exists v, s.w", "drop_view view v, view s.w"),
    (
        "create definer = table@localhost trigger s.g before insert on s.t for each row set @a = 1",
        "create_trigger trigger s.g, table s.t",
    ),
    ("drop trigger if exists s.g", "drop_trigger trigger s.g"),
    ("create procedure s.p() begin drop table t; end", "create_procedure procedure s.p"),
    ("create definer = current_user() procedure p() select 1", "create_procedure procedure p"),
    ("alter procedure p comment 'c'", "alter_procedure procedure p"),
    ("drop procedure p", "drop_procedure procedure p"),
    ("create function f(a int) returns int return a", "create_function function f"),
    ("create aggregate function f returns string soname 'f.so'", "create_udf function f"),
    ("alter function f comment 'c'", "alter_function function f"),
    ("drop function if exists s.f", "drop_function function s.f"),
    ("create event e on schedule every 1 day do drop table t", "create_event event e"),
    ("alter event s.e disable", "alter_event event s.e"),
    ("drop event e", "drop_event event e"),
    ("create database if not exists d", "create_db schema d"),
    ("create schema d charset utf8mb4", "create_db schema d"),
    ("alter database d collate utf8mb4_bin", "alter_db schema d"),
    ("alter database collate utf8mb4_bin", "alter_db"),
    ("alter database d upgrade data directory name", "alter_db_upgrade schema d"),
    ("drop database d", "drop_db schema d"),
    (
        "create user a identified by 'x', 'b'@'h' identified by 'y', `c`@`%`",
        "create_user user a, user b@h, user c@%",
    ),
    ("create user if not exists a@localhost", "create_user user a@localhost"),
    ("create user 'a''b'@h default role r, s", "create_user user a'b@h"),
    ("alter user a@h identified by 'x', b account lock", "alter_user user a@h, user b"),
    ("alter user a default role r, s", "alter_user_default_role user a"),
    ("alter user user() identified by 'x'", "alter_user user user"),
    ("rename user a@h to b@h, c to d", "rename_user user a@h, user b@h, user c, user d"),
    ("drop user a, b@'10.0.0.1'", "drop_user user a, user b@10.0.0.1"),
    ("create role r, s", "create_role role r, role s"),
    ("drop role if exists r", "drop_role role r"),
    ("set password = 'x'", "set_password"),
    ("set password for a@h = password('x')", "set_password user a@h"),
    ("set default role r to a, b", "alter_user_default_role user a, user b"),
    ("grant all on *.* to a@h with grant option", "grant table *.*, user a@h"),
    ("grant select (a, b), insert on s.t to a, b", "grant table s.t, user a, user b"),
    ("grant select on s.* to a", "grant table s.*, user a"),
    ("grant select on * to a", "grant table *, user a"),
    ("grant execute on procedure s.p to a", "grant procedure s.p, user a"),
    ("grant proxy on 'a'@'h' to b", "grant user a@h, user b"),
    (
        "grant r, 's'@'%' to a@h, b with admin option",
        "grant_roles role r, role s@%, user a@h, user b",
    ),
    ("revoke insert on s.t from a", "revoke table s.t, user a"),
    ("revoke all privileges, grant option from a, b", "revoke_all user a, user b"),
    ("revoke if exists r from a", "revoke_roles role r, user a"),
    ("create server s foreign data wrapper mysql options (host 'h')", "create_server server s"),
    ("alter server s options (host 'h')", "alter_server server s"),
    ("drop server if exists s", "drop_server server s"),
    ("create tablespace s add datafile 's.ibd'", "alter_tablespace tablespace s"),
    ("create undo tablespace u add datafile 'u.ibu'", "alter_tablespace tablespace u"),
    ("alter tablespace s rename to t", "alter_tablespace tablespace s"),
    ("drop tablespace s", "alter_tablespace tablespace s"),
    ("create logfile group g add undofile 'u'", "alter_tablespace tablespace g"),
    ("create sequence s.q start with 5", "create_sequence sequence s.q"),
    ("alter sequence q restart", "alter_sequence sequence q"),
    ("drop sequence q, r", "drop_sequence sequence q, sequence r"),
    ("create package body p as begin end", "create_package_body package body p"),
    ("drop package p", "drop_package package p"),
    ("create resource group g type = user", "create_resource_group resource group g"),
    ("alter resource group g disable", "alter_resource_group resource group g"),
    (
        "create spatial reference system 990001 name 'x'",
        "create_spatial_reference_system spatial reference system 990001",
    ),
    (
        "drop spatial reference system if exists 990001",
        "drop_spatial_reference_system spatial reference system 990001",
    ),
    ("create library l language javascript as $$ x $$", "create_library library l"),
    ("create masking policy p(a) as b", "create_masking_policy masking policy p"),
    ("drop masking policy p", "drop_masking_policy masking policy p"),
    ("alter instance rotate innodb master key", "alter_instance"),
    ("set statement max_statement_time = 5 for alter table t add b int", "alter_table table t"),
    ("create table t (a int); drop table u", "create_table table t"),
    ("create table (", "create_table"),
];

const OTHERS: &[&str] = &[
    "",
    "select 1",
    "insert into t values ('create table t')",
    "show create table t",
    "explain alter table t add a int",
    "prepare s from 'drop table t'",
    "execute s",
    "drop prepare s",
    "deallocate prepare s",
    "set role r",
    "set @a = 'drop table t'",
    "set global password_history = 1",
    "call drop_table()",
    "analyze table t",
    "flush privileges",
    "create",
    "create something else",
    "alter",
    "(create table t)",
    "'create' table t",
    "begin",
];

#[test]
fn a_statement_is_known_by_its_first_words() {
    for (sql, expected) in STATEMENTS {
        let ddl = read(sql).unwrap_or_else(|| panic!("{sql}"));
        assert_eq!(in_words(&ddl), *expected, "{sql}");
    }
    for sql in OTHERS {
        assert_eq!(read(sql), None, "{sql}");
    }
}

#[test]
fn every_kind_has_a_statement_here_and_is_found_by_its_instrument() {
    let known: Vec<DdlKind> = STATEMENTS.iter().map(|(sql, _)| read(sql).unwrap().kind).collect();
    let rare = [
        DdlKind::AlterLibrary,
        DdlKind::CreatePackage,
        DdlKind::DropLibrary,
        DdlKind::DropPackageBody,
        DdlKind::DropResourceGroup,
    ];
    for kind in DdlKind::ALL {
        assert!(known.contains(kind) || rare.contains(kind), "{}", kind.name());
        let instrument = format!("statement/sql/{}", kind.name());
        assert_eq!(DdlKind::of_instrument(&instrument), Some(*kind));
    }
    assert_eq!(DdlKind::of_instrument("statement/sql/grant_role"), Some(DdlKind::GrantRoles));
    assert_eq!(DdlKind::of_instrument("statement/sql/select"), None);
    assert_eq!(DdlKind::of_instrument("statement/com/Execute"), None);
}

#[test]
fn temporary_objects_and_long_lists_are_told() {
    assert!(read("create temporary table t (a int)").unwrap().temporary);
    assert!(!read("create table temporary (a int)").unwrap().temporary);
    let names: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let ddl = read(&format!("drop table {}", names.join(", "))).unwrap();
    assert_eq!((ddl.objects.len(), ddl.truncated), (32, true));
}

#[test]
fn a_name_at_the_cut_is_left_out() {
    let sql = "drop table first, secon";
    let whole = in_words(&read(sql).unwrap());
    assert_eq!(whole, "drop_table table first, table secon");
    let beginning = Ddl::of_beginning(sql.as_bytes(), SessionSettings::default()).unwrap();
    assert_eq!(in_words(&beginning), "drop_table table first");
}

#[test]
fn objects_that_may_stand_behind_the_cut_are_told() {
    for (sql, is_truncated) in [
        ("drop table first, secon", true),
        ("drop table first, ", true),
        ("create table t (a int, b in", false),
        ("create user a identified by 'x', b identi", true),
        ("grant r to a, ", true),
        ("grant select on s.t t", true),
        ("set password fo", true),
        ("set password = 'x", false),
    ] {
        let beginning = Ddl::of_beginning(sql.as_bytes(), SessionSettings::default()).unwrap();
        assert_eq!(beginning.truncated, is_truncated, "{sql}");
        assert!(!read(sql).unwrap().truncated, "{sql}");
    }
}

#[test]
fn blanks_of_the_character_set_hide_no_statement() {
    assert_eq!(in_words(&read("\x0b\x0cdrop table t").unwrap()), "drop_table table t");
    let latin1 = Charset::from_name("latin1").unwrap();
    let settings = SessionSettings { charset: latin1, ..SessionSettings::default() };
    let ddl = Ddl::of(b"\n\xa0drop table t", settings).unwrap();
    assert_eq!(in_words(&ddl), "drop_table table t");
}

#[test]
fn double_quotes_are_names_under_ansi_quotes() {
    let ansi = SessionSettings { modes: SqlModes::ANSI_QUOTES, ..SessionSettings::default() };
    let ddl = Ddl::of(br#"create table "s"."t" (a int)"#, ansi).unwrap();
    assert_eq!(in_words(&ddl), "create_table table s.t");
}

#[test]
fn a_prefix_that_is_repeated_without_end_is_read_once() {
    let endless = "set statement a = 1 for ".repeat(200_000);
    assert_eq!(read(&(endless.clone() + "drop table t")), None);
    assert!(read(&format!("grant {}", "a, ".repeat(200_000))).is_some());
    assert_eq!(read(&"create ".repeat(200_000)), None);
    assert!(read(&format!("drop table {}", "a.".repeat(200_000))).is_some());
    assert!(prepared(&format!("prepare s from {}", "'a' ".repeat(200_000))).is_some());
}

fn prepared(sql: &str) -> Option<SqlPrepared> {
    SqlPrepared::of(sql.as_bytes(), SessionSettings::default())
}

#[test]
fn prepared_statements_are_followed_by_name() {
    let prepare = |name: &str, text: Option<&str>| {
        let text = text.map(|text| text.as_bytes().to_vec());
        Some(SqlPrepared::Prepare { name: name.to_owned(), text })
    };
    let name = || "s".to_owned();
    assert_eq!(prepared("prepare S from 'drop table t'"), prepare("s", Some("drop table t")));
    assert_eq!(
        prepared(r#"PREPARE `a B` FROM "create table t (a char(1) default 'x' comment \"y\")" ;"#),
        prepare("a b", Some("create table t (a char(1) default 'x' comment \"y\")")),
    );
    assert_eq!(prepared("prepare s from 'a''b\\n' 'c'"), prepare("s", Some("a'b\nc")));
    assert_eq!(prepared("prepare s from @v"), prepare("s", None));
    assert_eq!(prepared("prepare s from 'drop tab"), prepare("s", None));
    assert_eq!(prepared("prepare s from concat('a', @v)"), prepare("s", None));
    assert_eq!(prepared("execute S using @a"), Some(SqlPrepared::Execute { name: name() }));
    assert_eq!(
        prepared("execute immediate 'drop table t'"),
        Some(SqlPrepared::Immediate { text: Some(b"drop table t".to_vec()) })
    );
    for sql in ["deallocate prepare s", "drop prepare s"] {
        assert_eq!(prepared(sql), Some(SqlPrepared::Deallocate { name: name() }));
    }
    for sql in ["select 1", "drop table t", "", "prepare", "execute"] {
        assert_eq!(prepared(sql), None, "{sql}");
    }
}

proptest! {
    #[test]
    fn a_statement_cut_anywhere_names_no_other_object_than_the_whole_and_tells_what_it_lacks(
        which in 0..STATEMENTS.len(),
        cut in 0_usize..200,
    ) {
        let sql = STATEMENTS[which].0.as_bytes();
        let whole = Ddl::of(sql, SessionSettings::default()).unwrap();
        let part = Ddl::of_beginning(&sql[..cut.min(sql.len())], SessionSettings::default());
        let is_kept = |object| part.iter().any(|ddl| ddl.objects.contains(object));
        let is_told = part.iter().all(|ddl| ddl.truncated);
        prop_assert!(is_told || whole.objects.iter().all(is_kept), "{}", STATEMENTS[which].0);
        for object in part.iter().flat_map(|ddl| &ddl.objects) {
            let is_there = whole.objects.iter().any(|one| {
                one.name == object.name || one.schema == object.name || one.schema == object.schema
            });
            prop_assert!(is_there, "{object} of {}", STATEMENTS[which].0);
        }
    }
}
