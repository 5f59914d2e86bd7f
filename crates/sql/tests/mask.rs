//! No secret leaves a statement.
#![allow(missing_docs)]

use std::borrow::Cow;

use proptest::prelude::*;
use waggle_sql::Dialect;
use waggle_sql::Normaliser;
use waggle_sql::mask_secrets;

/// What stands for the password; no text of a template has these letters.
const MARKER: &str = "hUnTeR2zQ";

/// Statements with secrets: `$` is a quoted secret, `%` a secret inside a larger string. Accounts
/// in braces have to stay.
const TEMPLATES: &[&str] = &[
    "CREATE USER {'ann'@'localhost'} IDENTIFIED BY $",
    "CREATE USER IF NOT EXISTS {ann@'%'} IDENTIFIED WITH caching_sha2_password BY $ , {'bob'} IDENTIFIED BY $",
    "CREATE USER {ann} IDENTIFIED WITH mysql_native_password AS $ REQUIRE SSL",
    "CREATE USER {ann} IDENTIFIED BY PASSWORD $",
    "CREATE USER {ann} IDENTIFIED BY $ AND IDENTIFIED WITH x BY $",
    "CREATE USER {ann} IDENTIFIED VIA mysql_native_password USING $ OR unix_socket",
    "CREATE USER {ann} IDENTIFIED VIA ed25519 USING PASSWORD ( $ )",
    "ALTER USER {ann@h} IDENTIFIED BY $ REPLACE $ RETAIN CURRENT PASSWORD",
    "ALTER USER USER ( ) IDENTIFIED BY $",
    "ALTER USER {ann} 2 FACTOR FINISH REGISTRATION SET CHALLENGE_RESPONSE AS $",
    "ALTER USER {ann} 2 FACTOR INITIATE REGISTRATION SET CHALLENGE_RESPONSE AS $",
    "SET PASSWORD = $",
    "SET PASSWORD FOR {'ann'@'localhost'} = $",
    "SET PASSWORD FOR {ann} = PASSWORD ( $ )",
    "SET PASSWORD FOR {ann} = OLD_PASSWORD ( $ ) , @a = 1",
    "GRANT ALL ON *.* TO {'ann'@'h'} IDENTIFIED BY $ WITH GRANT OPTION",
    "GRANT USAGE ON *.* TO {ann@h} IDENTIFIED BY PASSWORD $",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS ( HOST 'h' , PASSWORD $ )",
    "ALTER SERVER s OPTIONS ( PASSWORD $ , PORT 3306 )",
    "CHANGE MASTER TO MASTER_HOST = 'h' , MASTER_PASSWORD = $",
    "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'u' , SOURCE_PASSWORD = $ FOR CHANNEL 'c'",
    "START SLAVE USER = 'u' PASSWORD = $",
    "START REPLICA SQL_THREAD USER = 'u' PASSWORD = $",
    "START GROUP_REPLICATION USER = 'u' , PASSWORD = $",
    "SET GLOBAL authentication_ldap_simple_bind_root_pwd = $",
    "SET @@GLOBAL.wsrep_sst_auth_password = $",
    "SET PERSIST ssl_passphrase = $",
    "SELECT PASSWORD ( $ ) , OLD_PASSWORD( $ )",
    "SELECT AES_ENCRYPT ( a , $ ) , AES_DECRYPT ( a , $ ) , DES_ENCRYPT ( $ ) , ENCODE ( a , $ ) FROM t",
    "UPDATE users SET password = $ WHERE id = 5",
    "INSERT INTO users ( name , password ) VALUES ( 'bob' , $ )",
    "CLONE INSTANCE FROM {'ann'@'h'} : 3306 IDENTIFIED BY $",
    "CREATE TABLE t ( a INT ) ENGINE = FEDERATED CONNECTION = 'mysql://user:%@h:3306/d/t'",
    "CREATE TABLE t ( a INT ) ENCRYPTION_KEY = $",
    "PREPARE s FROM \"CREATE USER u IDENTIFIED BY '%'\"",
    "EXECUTE IMMEDIATE 'SET PASSWORD = \"%\"'",
    "EXECUTE IMMEDIATE 'CREATE USER u IDENT' 'IFIED BY \"%\"'",
    "SET @s = \"ALTER USER u IDENTIFIED BY '%'\"",
    "SELECT 1 ; CREATE USER {ann} IDENTIFIED BY $ ; SELECT 2",
    "CREATE TABLE oops IDENTIFIED BY $ , $ ( $",
    "IDENTIFIED $",
];

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
fn every_template_is_masked_as_typed() {
    for template in TEMPLATES {
        let sql = build(template, &[Style::plain()], 0);
        let out = masked(sql.as_bytes());
        assert!(!out.contains(MARKER), "{sql}\n  {out}");
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
            word if word.contains('%') && !word.contains("'%'") || word.contains("'%'\"") => {
                sql.push_str(&word.replace('%', MARKER));
            }
            word if style.upper => sql.push_str(word),
            word => sql.push_str(&word.to_lowercase()),
        }
    }
    let end = sql.len().saturating_sub(cut);
    (0..=end).rev().find_map(|at| sql.get(..at)).unwrap_or_default().to_owned()
}

fn literal(style: usize) -> String {
    match style {
        0 => format!("'{MARKER}'"),
        1 => format!("\"{MARKER}\""),
        2 => format!("_utf8mb4'{MARKER}'"),
        3 => format!("N'{MARKER}'"),
        4 => format!("'' '{MARKER}'"),
        5 => format!("'a''{MARKER}'"),
        6 => format!("'a\\'{MARKER}'"),
        7 => format!("'{MARKER}"),
        _ => format!("'a' /* ' */ \"{MARKER}\""),
    }
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
        template in 0..TEMPLATES.len(),
        styles in proptest::collection::vec(style(), 1..12),
        cut in 0..60_usize,
    ) {
        let sql = build(TEMPLATES[template], &styles, cut);
        let out = masked(sql.as_bytes());
        // A part of the secret is one as well, down to what could be chance.
        prop_assert!(!out.contains(&MARKER[..4]), "{}\n  {}", sql, out);
    }

    #[test]
    fn a_secret_never_reaches_a_digest(
        template in 0..TEMPLATES.len(),
        styles in proptest::collection::vec(style(), 1..12),
        cut in 0..60_usize,
    ) {
        let sql = build(TEMPLATES[template], &styles, cut);
        for dialect in [Dialect::Mysql9, Dialect::Mysql57, Dialect::Mariadb] {
            let mut normaliser = Normaliser::new(dialect);
            let text = normaliser.digest(sql.as_bytes()).text();
            prop_assert!(!text.contains(&MARKER[..4]), "{}\n  {}", sql, text);
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
        template in 0..TEMPLATES.len(),
        styles in proptest::collection::vec(style(), 1..12),
    ) {
        let once = masked(build(TEMPLATES[template], &styles, 0).as_bytes());
        prop_assert_eq!(masked(once.as_bytes()), once);
    }
}
