//! Texts under the settings of a session that move where strings and names end.
#![cfg(test)]

use proptest::prelude::*;
use waggle_sql::{
    Dialect, Fingerprinter, SessionSettings, SqlModes, TableName, Tables, format, mask_secrets,
    printable,
};

const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
const ANSI_QUOTES: u64 = 1 << 2;

fn settings(sql_mode: u64, charset: &str) -> SessionSettings {
    SessionSettings::of_session(sql_mode, charset).unwrap()
}

/// Settings, a text, and the text without its literals.
const CASES: [(u64, &str, &[u8], &str); 6] = [
    (
        NO_BACKSLASH_ESCAPES,
        "utf8mb4",
        br"select 'a\', 'private', b from t1",
        "select ?, ?, b from t1",
    ),
    (
        ANSI_QUOTES,
        "utf8mb4",
        br#"select 1 as "a\", 'say " private', b from t1"#,
        r#"select ? as "a\", ?, b from t1"#,
    ),
    (0, "gbk", b"select '\x81\\', 'private', b from t1", "select ?, ?, b from t1"),
    (0, "sjis", b"select '\x83\\', 'private', b from t1", "select ?, ?, b from t1"),
    // The second byte of a character looks like the quote of a name.
    (0, "big5", b"select a\xa4`, 'private `', b from t1", "select a\u{fffd}`, ?, b from t1"),
    (0, "utf8mb4", br"select 'a\', \'private', b from t1", "select ?, b from t1"),
];

#[test]
fn literals_are_found_under_the_settings_of_the_session() {
    for (mode, charset, sql, expected) in CASES {
        assert_eq!(printable(sql, Some(settings(mode, charset)), true), expected);
    }
}

#[test]
fn where_the_settings_are_not_known_nothing_is_shown_that_could_be_a_literal() {
    for (.., sql, _) in CASES {
        let shown = printable(sql, None, true);
        assert!(!shown.contains("private") && shown.starts_with("select "), "{shown}");
    }
    assert_eq!(printable(br"select 'it\'s' from t", None, true), "select ?...");
    assert_eq!(printable(br"select 'it''s' from t where a = 'x\'y'", None, true), {
        "select ? from t where a = ?"
    });
}

#[test]
fn fingerprints_hold_no_literal_whatever_the_settings() {
    let mut fingerprinter = Fingerprinter::new();
    for (mode, charset, sql, _) in CASES {
        let fingerprint = fingerprinter.fingerprint_in(sql, settings(mode, charset));
        assert!(!fingerprint.contains("private"), "{fingerprint}");
        assert!(fingerprint.ends_with(", b from t?"), "{fingerprint}");
    }
}

#[test]
fn passwords_are_masked_and_what_stands_behind_them_is_shown_where_that_is_sure() {
    let masked = |sql: &[u8], mode: u64, charset: &str| {
        let masked = mask_secrets(sql, Some(settings(mode, charset))).into_owned();
        String::from_utf8_lossy(&masked).into_owned()
    };
    let gbk = b"create user u identified by '\x81\\' comment 'hunter2' account lock";
    assert_eq!(masked(gbk, 0, "gbk"), "create user u identified by '<secret>'");
    let ansi = br#"set password = 'hunter2', @"a" = 1"#;
    assert!(!masked(ansi, ANSI_QUOTES, "utf8mb4").contains("hunter2"));
    // A mode may have changed unseen: a name in double quotes could be a password.
    let doubted = br#"create user u identified by "hunter2""#;
    assert_eq!(masked(doubted, ANSI_QUOTES, "utf8mb4"), "create user u identified by '<secret>'");
    // Strings that the server joins, in which the word for the secret is in two parts.
    let joined =
        b"execute immediate '/*\x81\\' '*/create user u ident' /**/ 'ified by \"hunter2\"'";
    assert!(!masked(joined, 0, "gbk").contains("hunter2"));
    let joined = br#"execute immediate '/*\' '*/create user u ident' 'ified by "hunter2"'"#;
    assert!(!masked(joined, NO_BACKSLASH_ESCAPES, "utf8mb4").contains("hunter2"));
    assert!(!String::from_utf8_lossy(&mask_secrets(joined, None)).contains("hunter2"));
    let doubted = br#"execute immediate "create user u ident" "ified by 'hunter2'""#;
    assert!(!masked(doubted, ANSI_QUOTES, "utf8mb4").contains("hunter2"));
}

#[test]
fn names_of_tables_are_found_under_the_settings_of_the_session() {
    let listed = |sql: &[u8], mode, charset| {
        let known = settings(mode, charset);
        let whole = Tables::of(sql, Dialect::Mysql9.reading(), known).names;
        let beginning = [sql, b" "].concat();
        let beginning = Tables::of_beginning(&beginning, Dialect::Mysql9.reading(), known).names;
        assert_eq!(whole, beginning);
        let names = whole.into_iter().map(|TableName { schema, name }| (schema, name));
        names.collect::<Vec<_>>()
    };
    let plain = |name: &str| (None, name.to_owned());
    let ansi = br#"select a from "t one" join "s"."u""#;
    assert_eq!(
        listed(ansi, ANSI_QUOTES, "utf8mb4"),
        [plain("t one"), (Some("s".to_owned()), "u".to_owned())]
    );
    assert_eq!(listed(ansi, 0, "utf8mb4"), []);
    let slash = br"select 'a\' from t1 where b in ('', 'from t2')";
    assert_eq!(listed(slash, NO_BACKSLASH_ESCAPES, "utf8mb4"), [plain("t1")]);
    let gbk = b"select '\x81\\' from t1 where b in ('', 'from t2')";
    assert_eq!(listed(gbk, 0, "gbk"), [plain("t1")]);
}

#[test]
fn a_layout_leaves_names_and_strings_whole_under_the_modes_of_the_session() {
    let laid =
        |sql: &str, mode| format(sql, Dialect::Mysql9.reading(), SqlModes::from_bits(mode), 60);
    let slash = r"select 'a\' from t1 where b = ' from t2 where c = '";
    assert_eq!(
        laid(slash, NO_BACKSLASH_ESCAPES),
        "select 'a\\'\nfrom t1\nwhere b = ' from t2 where c = '"
    );
    let ansi = r#"select "a\" from t1 where b = '" from t2'"#;
    assert_eq!(laid(ansi, ANSI_QUOTES), "select \"a\\\"\nfrom t1\nwhere b = '\" from t2'");
}

proptest! {
    #[test]
    fn no_literal_is_shown_under_any_settings(
        mode in prop_oneof![
            Just(0), Just(NO_BACKSLASH_ESCAPES), Just(ANSI_QUOTES), Just(NO_BACKSLASH_ESCAPES | ANSI_QUOTES)
        ],
        before in "[a'\"`\\\\ ]{0,6}",
        behind in "[a'\"`\\\\ ]{0,6}",
    ) {
        // Quoted as a client would under these settings.
        let escaped = |text: &str| {
            let text = text.replace('\'', "''");
            if mode & NO_BACKSLASH_ESCAPES == 0 { text.replace('\\', "\\\\") } else { text }
        };
        let named = |text: &str| format!("`{}`", text.replace('`', "``"));
        let sql = format!(
            "select '{}', {}, 'private{}' from t",
            escaped(&before), named(&behind), escaped(&behind)
        );
        let known = settings(mode, "utf8mb4");
        let shown = printable(sql.as_bytes(), Some(known), true);
        prop_assert_eq!(&shown, &format!("select ?, {}, ? from t", named(&behind)));
        prop_assert!(!printable(sql.as_bytes(), None, true).contains("private"));
    }
}
