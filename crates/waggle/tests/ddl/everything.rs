//! Five hundred statements of every kind.

use waggle_testkit::Version;

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As it is.
    Text,
    /// By `PREPARE` and `EXECUTE`.
    Prepared,
    /// The same, with the text in a variable.
    FromVariable,
    /// In a procedure, which is made before.
    Procedure,
}

/// What one session runs.
pub(crate) type Script = Vec<(Way, String)>;

/// The password of every account.
pub(crate) const PASSWORD: &str = "hUnTeR2zQ";
/// Sessions.
pub(crate) const SESSIONS: usize = 8;
/// Statements that are to be listed, of all sessions.
pub(crate) const STATEMENTS: usize = 500;
/// How many of them are prepared, run in a procedure, fail, or are longer than what a server keeps.
const PREPARED: usize = 20;
/// How many of the prepared ones have their text in the `PREPARE`.
pub(crate) const WITHOUT_TEXT: usize = 10;
const IN_PROCEDURES: usize = 20;
const FAILING: usize = 20;
const LONG: usize = 5;

/// What every session runs, of the kinds that most servers know; `$` is the number of the session, `!` the
/// password.
const KINDS: &[&str] = &[
    "CREATE DATABASE d$",
    "CREATE TABLE d$.t (a INT PRIMARY KEY, b VARCHAR(20) DEFAULT 'x' COMMENT 'it''s') ENGINE=InnoDB",
    "CREATE INDEX i ON d$.t (b)",
    "ALTER TABLE d$.t ADD COLUMN c INT",
    "DROP INDEX i ON d$.t",
    "CREATE VIEW d$.v AS SELECT a FROM d$.t",
    "ALTER VIEW d$.v AS SELECT b FROM d$.t",
    "DROP VIEW d$.v",
    "CREATE TRIGGER d$.g BEFORE INSERT ON d$.t FOR EACH ROW SET @a = 1",
    "DROP TRIGGER d$.g",
    "CREATE PROCEDURE d$.p() SELECT 1",
    "ALTER PROCEDURE d$.p COMMENT 'x'",
    "DROP PROCEDURE d$.p",
    "CREATE FUNCTION d$.f() RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    "ALTER FUNCTION d$.f COMMENT 'x'",
    "DROP FUNCTION d$.f",
    "CREATE FUNCTION f$ RETURNS STRING SONAME 'nosuch.so'",
    "CREATE EVENT d$.e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
    "ALTER EVENT d$.e DISABLE",
    "DROP EVENT d$.e",
    "RENAME TABLE d$.t TO d$.u",
    "TRUNCATE TABLE d$.u",
    "CREATE USER made_$@localhost IDENTIFIED BY '!'",
    "ALTER USER made_$@localhost IDENTIFIED BY '!'",
    "GRANT SELECT, INSERT ON d$.* TO made_$@localhost",
    "REVOKE INSERT ON d$.* FROM made_$@localhost",
    "CREATE ROLE role_$",
    "GRANT role_$ TO made_$@localhost",
    "REVOKE role_$ FROM made_$@localhost",
    "DROP ROLE role_$",
    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM made_$@localhost",
    "RENAME USER made_$@localhost TO named_$@localhost",
    "DROP USER named_$@localhost",
    "CREATE SERVER s$ FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1', DATABASE 'd')",
    "ALTER SERVER s$ OPTIONS (HOST '127.0.0.2')",
    "ALTER SERVER s$ OPTIONS (PASSWORD '!')",
    "DROP SERVER s$",
    "CREATE TEMPORARY TABLE d$.temporary (a INT)",
    "DROP TEMPORARY TABLE d$.temporary",
    "CREATE TABLESPACE ts$ ADD DATAFILE 'ts$.ibd' ENGINE=InnoDB",
    "DROP TABLESPACE ts$",
    "DROP TABLE d$.u",
    "ALTER DATABASE d$ CHARACTER SET latin1",
    "DROP DATABASE d$",
];

/// Statements that one session runs, in this order; `$` and `!` as in [`KINDS`].
type Group = &'static [&'static str];

const SEQUENCES: Group = &[
    "CREATE SEQUENCE test.sequence_$ START WITH 5 INCREMENT BY 2",
    "ALTER SEQUENCE test.sequence_$ RESTART WITH 50",
    "DROP SEQUENCE test.sequence_$",
];
/// Before 11.4 only the mode of Oracle knows them: elsewhere they fail.
const PACKAGES: Group = &[
    "CREATE PACKAGE test.package_$ END",
    "CREATE PACKAGE BODY test.package_$ END",
    "DROP PACKAGE BODY test.package_$",
    "DROP PACKAGE test.package_$",
];
const UPGRADE: Group = &["ALTER DATABASE `#mysql50#d-$` UPGRADE DATA DIRECTORY NAME"];
const LOGFILE_GROUPS: Group =
    &["CREATE LOGFILE GROUP group_$ ADD UNDOFILE 'group_$.dat' ENGINE=InnoDB"];
const INSTANCE: Group = &["ALTER INSTANCE ROTATE INNODB MASTER KEY", "ALTER INSTANCE RELOAD TLS"];
const RESOURCE_GROUPS: Group = &[
    "CREATE RESOURCE GROUP resources_$ TYPE = USER",
    "ALTER RESOURCE GROUP resources_$ DISABLE",
    "DROP RESOURCE GROUP resources_$",
];
const SPATIAL_REFERENCE_SYSTEMS: Group = &[
    "CREATE SPATIAL REFERENCE SYSTEM 99000$ NAME 'made $' DEFINITION \
     'GEOGCS[\"made\",DATUM[\"made\",SPHEROID[\"made\",6377397.155,299.1528128]],\
     PRIMEM[\"Greenwich\",0],UNIT[\"degree\",0.017453292519943278],\
     AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST]]'",
    "DROP SPATIAL REFERENCE SYSTEM 99000$",
];
const UNDO_TABLESPACES: Group = &[
    "CREATE UNDO TABLESPACE undo_$ ADD DATAFILE 'undo_$.ibu'",
    "ALTER UNDO TABLESPACE undo_$ SET INACTIVE",
    "DROP UNDO TABLESPACE undo_$",
];
const LIBRARIES: Group = &[
    "CREATE LIBRARY test.library_$ LANGUAGE JAVASCRIPT AS 'export function f() { return 1 }'",
    "ALTER LIBRARY test.library_$ COMMENT 'x'",
    "DROP LIBRARY test.library_$",
];
const PASSWORDS: Group = &[
    "CREATE USER holder_$@localhost IDENTIFIED BY '!'",
    "SET PASSWORD FOR holder_$@localhost = '!'",
    "DROP USER holder_$@localhost",
];
const DEFAULT_ROLES: Group = &[
    "CREATE ROLE kept_$",
    "CREATE USER kept_by_$@localhost IDENTIFIED BY '!'",
    "GRANT kept_$ TO kept_by_$@localhost",
    "SET DEFAULT ROLE kept_$ TO kept_by_$@localhost",
    "ALTER USER kept_by_$@localhost DEFAULT ROLE NONE",
    "DROP USER kept_by_$@localhost",
    "DROP ROLE kept_$",
];
/// What MariaDB writes in its own way.
const OF_MARIADB: Group = &[
    "CREATE OR REPLACE TABLE test.replaced_$ (a INT)",
    "CREATE ROLE kept_$",
    "CREATE USER kept_by_$@localhost IDENTIFIED BY '!'",
    "GRANT kept_$ TO kept_by_$@localhost",
    "SET DEFAULT ROLE kept_$ FOR kept_by_$@localhost",
    "SET PASSWORD FOR kept_by_$@localhost = PASSWORD('!')",
    "DROP USER kept_by_$@localhost",
    "DROP ROLE kept_$",
];

/// What MySQL knows since 8.0, but for the last two, which came later.
static SINCE_8: [Group; 8] = [
    LOGFILE_GROUPS,
    INSTANCE,
    RESOURCE_GROUPS,
    SPATIAL_REFERENCE_SYSTEMS,
    PASSWORDS,
    DEFAULT_ROLES,
    UNDO_TABLESPACES,
    LIBRARIES,
];

/// What not every server knows. Some of it fails, which is listed as well.
fn of_some_servers(version: Version) -> &'static [Group] {
    match version {
        Version::Mysql57 => &[UPGRADE, LOGFILE_GROUPS, INSTANCE, PASSWORDS],
        Version::Mysql80 => &SINCE_8[..6],
        Version::Mysql9 => &SINCE_8,
        Version::Mariadb1011 | Version::Mariadb114 | Version::Mariadb118 => {
            &[UPGRADE, SEQUENCES, PACKAGES, OF_MARIADB]
        }
    }
}

/// What each session runs; 500 statements in all.
pub(crate) fn scripts(version: Version) -> Vec<Script> {
    let of = |kind: &str, session: usize| {
        (Way::Text, kind.replace('$', &session.to_string()).replace('!', PASSWORD))
    };
    let common = |session| KINDS.iter().map(|kind| of(kind, session)).collect();
    let mut scripts: Vec<Script> = (0..SESSIONS).map(common).collect();
    for (number, group) in of_some_servers(version).iter().enumerate() {
        let session = number % SESSIONS;
        scripts[session].extend(group.iter().map(|kind| of(kind, session)));
    }
    let mut add = |number: usize, way: Way, statement: String| {
        scripts[number % SESSIONS].push((way, statement));
    };
    for number in 0..FAILING {
        add(number, Way::Text, format!("DROP TABLE test.nosuch_{number}"));
    }
    for number in 0..PREPARED {
        match number < WITHOUT_TEXT {
            true => {
                add(number, Way::Prepared, format!("CREATE TABLE test.literal_{number} (a INT)"))
            }
            false => {
                add(
                    number,
                    Way::FromVariable,
                    format!("CREATE TABLE test.variable_{number} (a INT)"),
                );
            }
        }
    }
    for number in 0..IN_PROCEDURES {
        add(number, Way::Procedure, format!("CREATE TABLE test.inside_{number} (a INT)"));
    }
    for number in 0..LONG {
        let columns: Vec<String> =
            (0..150).map(|column| format!("a_rather_long_name_{column} INT")).collect();
        let columns = columns.join(", ");
        add(number, Way::Text, format!("CREATE TABLE test.long_{number} ({columns})"));
    }
    let of_procedures = IN_PROCEDURES;
    let so_far: usize = scripts.iter().map(Vec::len).sum::<usize>() + of_procedures;
    for number in so_far..STATEMENTS {
        let statement = format!("ALTER TABLE test.shared COMMENT 'number {number}'");
        scripts[number % SESSIONS].push((Way::Text, statement));
    }
    scripts
}

/// Whether a server has its statement, but Performance Schema not its text: MySQL 5.7 and 8.0.12 write
/// a `PREPARE` with its text anew, without it.
pub(crate) fn is_without_text(version: Version, text: &str) -> bool {
    matches!(version, Version::Mysql57 | Version::Mysql80) && text.contains("test.literal_")
}

/// Kinds whose text MySQL writes anew before it records it (`sql/sql_rewrite.cc`); of `ALTER SERVER` only
/// where a password stands in it.
pub(crate) fn is_written_anew(version: Version, kind: &str) -> bool {
    let kinds = ["create_user", "alter_user", "set_password", "grant", "alter_server"];
    !version.is_mariadb() && kinds.contains(&kind)
}

/// Kinds that MySQL 9.7.4 records without their text where they succeed: they are listed, without text and
/// objects.
pub(crate) fn may_lack_its_text(version: Version, kind: &str) -> bool {
    version == Version::Mysql9 && kind == "drop_spatial_reference_system"
}
