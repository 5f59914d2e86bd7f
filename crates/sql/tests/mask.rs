//! No secret leaves a statement.

use std::borrow::Cow;

use proptest::prelude::*;
use waggle_sql::{Dialect, Normaliser, SessionSettings, mask_secrets};
use waggle_testkit::secrets::{SECRET, shown, templates};

fn masked(sql: &[u8]) -> String {
    String::from_utf8_lossy(&mask_secrets(sql, None)).into_owned()
}

#[test]
fn a_statement_without_secrets_is_borrowed() {
    for sql in ["select 1", "select c from sbtest1 where id=5013", "prepare s from 'select 1'"] {
        assert!(matches!(mask_secrets(sql.as_bytes(), None), Cow::Borrowed(_)), "{sql}");
    }
}

#[test]
fn an_account_stays_and_its_password_goes() {
    let expected = [
        (
            "create user 'a'@'h' identified by 'x', 'b' identified by \"y\"",
            "create user 'a'@'h' identified by '<secret>', 'b' identified by '<secret>'",
        ),
        ("SET PASSWORD FOR 'a'@'%' = 'x'", "SET PASSWORD FOR 'a'@'%' = '<secret>'"),
        ("alter user a identified by x", "alter user a identified by '<secret>'"),
        (
            "alter user a identified by random password",
            "alter user a identified by random password",
        ),
        ("set password = x", "set password = '<secret>'"),
        ("set password = password('x')", "set password = password('<secret>')"),
        ("create user a identified by _utf8'x'", "create user a identified by _utf8'<secret>'"),
        ("create user a identified by 0x41", "create user a identified by '<secret>'"),
        ("create user a identified by 'x", "create user a identified by '<secret>'"),
        (
            "create user a identified by /* 'x' */ 'y' -- z",
            "create user a identified by '<secret>'",
        ),
        ("create user a /*!50000 identified by 'x' */", "create user a identified by '<secret>'"),
        (
            "create user a identified by 'x' 'y'",
            "create user a identified by '<secret>' '<secret>'",
        ),
        ("create user `a identified by 'x'", "create user '<secret>'"),
        (
            "create user a identified by 'x\\', b identified by 'y'",
            "create user a identified by '<secret>'",
        ),
    ];
    for (sql, is) in expected {
        assert_eq!(masked(sql.as_bytes()), is, "{sql}");
    }
}

#[test]
fn what_is_no_secret_of_the_servers_stays() {
    for sql in [
        "SET GLOBAL binlog_encryption = ON",
        "SET PERSIST default_table_encryption = 'ON', block_encryption_mode = 'aes-256-cbc'",
        "SET GLOBAL innodb_redo_log_encrypt = 1, innodb_undo_log_encrypt = 1",
        "SET GLOBAL password_history = 5, password_reuse_interval = 365",
        "SET GLOBAL validate_password.policy = 'STRONG', validate_password_length = 12",
        "SET GLOBAL innodb_encryption_threads = 4, innodb_encrypt_tables = 'FORCE'",
        "SET GLOBAL innodb_ft_min_token_size = 2",
        "CREATE SCHEMA `s encryption='n' s`",
        "CREATE SCHEMA s ENCRYPTION = 'N'",
        "ALTER TABLESPACE t ENCRYPTION='Y'EXTENT_SIZE = 100M",
        "CREATE TABLE t (a INT) ENCRYPTED=YES ENCRYPTION_KEY_ID=2 COMMENT='x'",
        "SELECT * FROM t WHERE identifier = 'x' AND registration = 'y' AND challenge = 'z'",
        "SELECT * FROM t WHERE url = 'https://example.com/a'",
        "SELECT * FROM tokens WHERE id = 5",
        "SELECT user FROM mysql.user WHERE plugin = 'caching_sha2_password'",
        "SHOW VARIABLES LIKE 'validate_password%'",
        "INSTALL COMPONENT 'file://component_validate_password'",
        "PREPARE s FROM 'SELECT ?'",
    ] {
        assert_eq!(masked(sql.as_bytes()), sql);
    }
}

#[test]
fn a_name_in_quotes_is_no_secret() {
    for (sql, is) in [
        (
            "create user `o'neil`@`h` identified by 'x'",
            "create user `o'neil`@`h` identified by '<secret>'",
        ),
        ("update `t` set `password` = `it's`", "update `t` set `password` = `it's`"),
        (
            "insert into `a \"b\"` (`password`) values ('x')",
            "insert into `a \"b\"` (`password`) values ('<secret>')",
        ),
        // Where quotes do not pair, it may be none.
        ("create user `a identified by 'x', `b", "create user '<secret>'b"),
    ] {
        assert_eq!(masked(sql.as_bytes()), is, "{sql}");
    }
}

#[test]
fn a_statement_that_is_a_name_under_ansi_quotes_reaches_no_digest() {
    let settings = SessionSettings::of_session(1 << 2, "utf8mb4").unwrap();
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let mut digest = |sql: &str| normaliser.digest_in(sql.as_bytes(), settings).text().to_owned();
    let nested = digest("PREPARE s FROM \"CREATE USER u IDENTIFIED BY 'hunter2'\"");
    assert!(!nested.contains("hunter2"), "{nested}");
    let column = digest("SELECT \"password\" FROM t WHERE \"password\" = \"other\"");
    assert_eq!(column, "SELECT `password` FROM `t` WHERE `password` = `other`");
}

#[test]
fn a_secret_without_quotes_goes_on_to_a_blank() {
    assert_eq!(masked(b"LOGIN password=hunter.2e-x;1"), "LOGIN password='<secret>';1");
    assert_eq!(masked(b"LOGIN password=a.b, host = c"), "LOGIN password='<secret>', host = c");
}

#[test]
fn what_stands_in_the_place_of_a_comment_makes_no_other() {
    for comment in ["/**/", "/* , ... */ "] {
        let sql = format!("SET PASSWORD = 'x', a = 1--{comment}1");
        assert_eq!(masked(sql.as_bytes()), "SET PASSWORD = '<secret>', a = 1--1", "{comment}");
    }
}

#[test]
fn a_hash_of_a_password_is_a_secret() {
    let sql = "UPDATE mysql.user SET authentication_string = '*94BDCE' WHERE user = 'u'";
    assert!(!masked(sql.as_bytes()).contains("94BDCE"));
}

#[test]
fn every_template_is_masked_as_typed() {
    for template in templates() {
        let sql = build(template, &[Style::plain()], 0);
        let out = masked(sql.as_bytes());
        assert_eq!(shown(&out), None, "{sql}\n  {out}");
        for account in accounts(template) {
            assert!(out.contains(account), "{account} of {sql}\n  {out}");
        }
    }
}

fn accounts(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| part.split('}').next())
}

/// How one token is written.
#[derive(Clone, Copy, Debug)]
struct Style {
    upper: bool,
    blank: usize,
    literal: usize,
}

impl Style {
    fn plain() -> Style {
        Style { upper: true, blank: 0, literal: 0 }
    }
}

fn build(template: &str, styles: &[Style], cut: usize) -> String {
    const BLANKS: [&str; 7] =
        [" ", "\n\t", " /* it's a comment */ ", " -- don't\n", "/**/", " # \"x\n", "\r\n  "];
    let mut sql = String::new();
    let plain = template.replace(['{', '}'], "");
    let mut quotes = 0;
    for (number, word) in plain.split(' ').enumerate() {
        let style = styles[number % styles.len()];
        // Inside a quoted statement a comment would be part of the string.
        let nested = quotes % 2 == 1;
        quotes += word.matches(['"', '\'']).count();
        sql.push_str(if nested || number == 0 { " " } else { BLANKS[style.blank] });
        match word {
            "$" => sql.push_str(&literal(style.literal)),
            word if word.contains('§') => sql.push_str(&word.replace('§', SECRET)),
            word if style.upper => sql.push_str(word),
            word => sql.push_str(&word.to_lowercase()),
        }
    }
    let end = sql.len().saturating_sub(cut);
    (0..=end).rev().find_map(|at| sql.get(..at)).unwrap_or_default().to_owned()
}

fn literal(style: usize) -> String {
    match style {
        0 => format!("'{SECRET}'"),
        1 => format!("\"{SECRET}\""),
        2 => format!("_utf8mb4'{SECRET}'"),
        3 => format!("N'{SECRET}'"),
        4 => format!("'' '{SECRET}'"),
        5 => format!("'a''{SECRET}'"),
        6 => format!("'a\\'{SECRET}'"),
        7 => format!("'{SECRET}"),
        _ => format!("'a' /* ' */ \"{SECRET}\""),
    }
}

fn template() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(templates().collect::<Vec<_>>())
}

fn style() -> impl Strategy<Value = Style> {
    (any::<bool>(), 0..7_usize, 0..9_usize).prop_map(|(upper, blank, literal)| Style {
        upper,
        blank,
        literal,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_secret_never_leaves_a_statement(
        template in template(),
        styles in proptest::collection::vec(style(), 1..12),
        cut in 0..60_usize,
    ) {
        let sql = build(template, &styles, cut);
        let out = masked(sql.as_bytes());
        prop_assert_eq!(shown(&out), None, "{}\n  {}", sql, out);
    }

    #[test]
    fn a_secret_never_reaches_a_digest(
        template in template(),
        styles in proptest::collection::vec(style(), 1..12),
        cut in 0..60_usize,
    ) {
        let sql = build(template, &styles, cut);
        for dialect in [Dialect::Mysql9, Dialect::Mysql57, Dialect::Mariadb] {
            let mut normaliser = Normaliser::new(dialect);
            let text = normaliser.digest(sql.as_bytes()).text();
            prop_assert_eq!(shown(text), None, "{}\n  {}", sql, text);
        }
    }

    #[test]
    fn any_bytes_can_be_masked(sql in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = mask_secrets(&sql, None);
        let mut account = b"create user a identified by ".to_vec();
        account.extend(sql);
        let _ = mask_secrets(&account, None);
    }

    #[test]
    fn masking_twice_is_masking_once(
        template in template(),
        styles in proptest::collection::vec(style(), 1..12),
    ) {
        let once = masked(build(template, &styles, 0).as_bytes());
        prop_assert_eq!(masked(once.as_bytes()), once);
    }
}
