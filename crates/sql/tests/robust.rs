//! Digests of texts that nobody should send.

use proptest::prelude::*;
use waggle_sql::{Charset, Dialect, Lexer, Normaliser, SessionSettings, SqlModes};

const DIALECTS: [Dialect; 6] = [
    Dialect::Mysql9,
    Dialect::Mysql80,
    Dialect::Mysql57,
    Dialect::Mariadb,
    Dialect::Mariadb11,
    Dialect::Mariadb118,
];
const MEGABYTE: usize = 1 << 20;

/// One with something of everything; every byte of it is a place to be cut at.
const RICH: &str = "/*!50000 select*/ /*+ MAX_EXECUTION_TIME(5) bka(`t`@qb) */ N'a', x'41', b'01', \
    0x41, 1.5e3, 'it''s', \"a\\\"b\", `a``b`, @x, @@global.y, {d '2020-01-01'}, _latin1'x', $$ a $$ \
    -- comment\n from t1 # other\n join t2 /* third */ on a in (1, 2, NULL) and b->>'$.a' is not null \
    or password = 'x' order by 1, -2 limit 5; select 2";

fn settings() -> Vec<SessionSettings> {
    let modes = [0, 1 << 2, 1 << 20, (1 << 1) | (1 << 3) | (1 << 29), u64::MAX];
    let all = |charset| {
        let settings = move |bits| SessionSettings { modes: SqlModes::from_bits(bits), charset };
        modes.map(settings)
    };
    Charset::all().flat_map(all).collect()
}

fn digest(sql: &str) -> (String, bool) {
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let digest = normaliser.digest_in(sql.as_bytes(), SessionSettings::default());
    (digest.text().to_owned(), digest.complete)
}

#[test]
fn what_is_open_at_the_end_is_not_complete() {
    for (sql, text) in [
        ("select 'abc", "SELECT ?"),
        ("select a, \"abc\\\"", "SELECT `a` , ?"),
        ("select `abc", "SELECT `abc`"),
        ("select x'41", "SELECT ?"),
        ("select $$ abc $", "SELECT (unknown)"),
        ("select 1 /* abc", "SELECT ?"),
        ("select 1 /*!50000 + 2", "SELECT ? + ?"),
        ("select 1 /*!99999 + 2", "SELECT ?"),
        ("select 1 /*!99999 /* */ + 2", "SELECT ?"),
        ("select /*+ bka(t)", "SELECT /*+ BKA ( `t` )"),
    ] {
        assert_eq!(digest(sql), (text.to_owned(), false), "{sql}");
    }
    assert_eq!(digest("select 1 -- abc"), ("SELECT ?".to_owned(), true));
    assert_eq!(digest("select 1 # abc"), ("SELECT ?".to_owned(), true));
}

#[test]
fn a_text_cut_anywhere_has_a_digest_under_all_settings() {
    for dialect in DIALECTS {
        let mut normaliser = Normaliser::new(dialect);
        for settings in settings() {
            for cut in 0..RICH.len() {
                let part = &RICH.as_bytes()[..cut];
                let _ = normaliser.digest_in(part, settings);
                assert!(!normaliser.digest_truncated_in(part, settings).complete);
            }
        }
    }
}

#[test]
fn a_cut_text_has_the_tokens_of_the_whole_one_and_no_other() {
    let whole = digest(RICH).0;
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    // Behind the first cut that ends a value, a shorter list may stand for a longer one.
    for cut in 0..RICH.find("N'a'").unwrap() {
        let digest =
            normaliser.digest_truncated_in(&RICH.as_bytes()[..cut], SessionSettings::default());
        let part = digest.text().trim_end_matches("...").trim_end();
        assert!(whole.starts_with(part), "{part}\n{whole}");
    }
}

#[test]
fn a_digest_full_of_the_longest_word_has_all_of_its_text() {
    let word = "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS";
    let (text, complete) = digest(&format!("{word} ").repeat(600));
    assert_eq!(text, [word; 512].join(" "));
    assert!(!complete);
}

#[test]
fn ten_thousand_parentheses_fill_a_digest() {
    let deep = format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let (text, complete) = digest(&deep);
    assert!(!complete);
    // 1,024 bytes of two for each token, one of them SELECT.
    assert_eq!(text, format!("SELECT{}", " (".repeat(511)));
    let closed = digest(&format!("select {}1{}", "(".repeat(250), ")".repeat(250)));
    assert_eq!(closed.0, format!("SELECT{} (?){}", " (".repeat(249), " )".repeat(249)));
}

#[test]
fn ten_megabytes_of_a_list_are_one_value() {
    let mut list = String::with_capacity(11 * MEGABYTE);
    list += "select a from t where a in (";
    while list.len() < 10 * MEGABYTE {
        list += "12345, 'abc', -1.5, NULL, x'41', ";
    }
    list += "1) order by 1";
    let expected = "SELECT `a` FROM `t` WHERE `a` IN (...) ORDER BY 1";
    assert_eq!(digest(&list), (expected.to_owned(), true));
}

/// A lexer that looks at the rest of the text again for each of these would take hours.
const ENDLESS: &[&str] = &[
    "/*!99999 /*",
    "/*! ",
    "/* ",
    "*/",
    "/*+ ",
    "select /*+ */ ",
    "`",
    "``",
    "'",
    "''",
    "'\\",
    "\"",
    "$",
    "$a",
    "$$ ",
    "$a$ $b",
    "x'",
    "x'4",
    "b'0",
    "n'",
    "0x",
    "0b1 ",
    "1e",
    "1e+",
    ".1e.",
    "1.",
    ".",
    "a.",
    "a.1",
    "@",
    "@@",
    "@@a.",
    "@'",
    "--",
    "-- ",
    "#",
    "#\n",
    "null ",
    "null on ",
    "(",
    ")",
    "(1),",
    "1,",
    "-",
    "- 1 ",
    "a ",
    "a(",
    "a    ",
    "<=>",
    "=!",
    "||",
    "\\N",
    "\0",
    "\u{e9}",
    "order by 1, ",
    "password = ",
    "identified by 'a\\'",
    "identified by x ",
];

#[test]
fn a_megabyte_of_anything_comes_to_an_end() {
    let charsets = ["utf8mb4", "latin1", "gbk", "gb18030"];
    for part in ENDLESS {
        let text = part.repeat(MEGABYTE / part.len());
        for charset in charsets.map(|name| Charset::from_name(name).unwrap()) {
            let modes = SqlModes::IGNORE_SPACE;
            let settings = SessionSettings { modes, charset };
            for sql in [&text, &format!("select {text}"), &format!("create user {text}")] {
                let mut normaliser = Normaliser::new(Dialect::Mysql9);
                let _ = normaliser.digest_in(sql.as_bytes(), settings);
                let tokens =
                    Lexer::with_settings(sql.as_bytes(), Dialect::Mysql9.reading(), settings);
                assert!(tokens.count() <= sql.len());
            }
        }
    }
}

#[test]
fn a_known_statement_allocates_nothing() {
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let gbk = Charset::from_name("gbk").unwrap();
    let modes = SqlModes::ANSI_QUOTES.with(SqlModes::HIGH_NOT_PRECEDENCE);
    let sessions = [
        SessionSettings::default(),
        SessionSettings { modes, charset: gbk },
        SessionSettings { modes, charset: Charset::from_name("latin1").unwrap() },
    ];
    let statements: [&[u8]; 4] = [
        b"select `a``b`, c from t1 where id in (1, 2, 3) and not d = 'x' order by 1",
        "select \u{e9}, \"x\u{e9}\", `q` from t".as_bytes(),
        b"select `\x81\x60`, `\xff\xfe`, a from t",
        &[b"select ".as_slice(), [b'q'; 80].as_slice(), b" from t"].concat(),
    ];
    let mut all = || {
        for settings in sessions {
            for statement in statements {
                let _ = normaliser.digest_in(statement, settings);
            }
        }
    };
    all();
    let allocated = allocation_counter::measure(all);
    assert_eq!(allocated.count_total, 0, "{allocated:?}");
}

proptest! {
    #[test]
    fn any_bytes_have_a_digest_under_any_settings(
        sql in proptest::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"'\"`\\/*!+-#$@.,()x0NnBbe \n".to_vec())],
            0..300,
        ),
        bits in any::<u64>(),
        charset in 0..37_usize,
        dialect in prop::sample::select(DIALECTS.to_vec()),
    ) {
        let charset = Charset::all().nth(charset).unwrap();
        let settings = SessionSettings { modes: SqlModes::from_bits(bits), charset };
        let mut normaliser = Normaliser::new(dialect);
        let hash = normaliser.digest_in(&sql, settings).hash;
        prop_assert_eq!(normaliser.digest_in(&sql, settings).hash, hash);
        prop_assert!(!normaliser.digest_truncated_in(&sql, settings).complete);
        let mut end = 0;
        for token in Lexer::with_settings(&sql, dialect.reading(), settings) {
            prop_assert!(end <= token.start && token.start <= token.end && token.end <= sql.len());
            end = token.end;
        }
    }

    #[test]
    fn literals_of_every_form_are_one_digest(
        number in prop_oneof!["[0-9]{1,30}", "[0-9]{1,5}\\.[0-9]{0,5}", "\\.[0-9]{1,5}",
            "[0-9]{1,3}[eE][+-]?[0-9]{1,3}", "0x[0-9a-fA-F]{1,8}", "[xX]'([0-9a-f]{2}){0,4}'",
            "[bB]'[01]{0,9}'", "0b[01]{1,9}"],
        sign in prop_oneof!["", "-", "[+] ", "- -"],
        text in "[a-z ?;#%*/é]{0,12}(''|\\\\'|\\\\\\\\)?[a-z]{0,3}",
    ) {
        let expected = digest("select a from t where b = ? and c = ?");
        let sql = format!("select a from t where b = {sign}{number} and c = '{text}'");
        prop_assert_eq!(digest(&sql), expected);
    }
}

#[test]
fn modes_are_read_from_their_names_and_numbers() {
    let ansi = SqlModes::PIPES_AS_CONCAT.with(SqlModes::ANSI_QUOTES).with(SqlModes::IGNORE_SPACE);
    assert_eq!(
        SqlModes::from_text("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI"),
        ansi
    );
    assert_eq!(SqlModes::from_text("ansi"), ansi);
    assert_eq!(SqlModes::from_text("oracle"), ansi);
    assert_eq!(
        SqlModes::from_text("STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
        SqlModes::default()
    );
    assert_eq!(SqlModes::from_text(""), SqlModes::default());
    assert_eq!(SqlModes::from_text("NO_BACKSLASH_ESCAPES"), SqlModes::NO_BACKSLASH_ESCAPES);
    // MODE_STRICT_TRANS_TABLES, MODE_NO_BACKSLASH_ESCAPES, MODE_HIGH_NOT_PRECEDENCE.
    let bits = (1 << 21) | (1 << 20) | (1 << 29);
    let expected = SqlModes::NO_BACKSLASH_ESCAPES.with(SqlModes::HIGH_NOT_PRECEDENCE);
    assert_eq!(SqlModes::from_bits(bits), expected);
    let names: Vec<_> = expected.names().collect();
    assert_eq!(names, ["NO_BACKSLASH_ESCAPES", "HIGH_NOT_PRECEDENCE"]);
}

#[test]
fn character_sets_are_known_by_their_names() {
    assert_eq!(Charset::all().count(), 37);
    assert_eq!(Charset::default().name(), "utf8mb4");
    for charset in Charset::all() {
        assert_eq!(Charset::from_name(charset.name()), Some(charset));
    }
    assert_eq!(Charset::from_name("UTF8").unwrap().name(), "utf8mb3");
    assert_eq!(Charset::from_name("ucs2"), None);
    assert_eq!(Charset::from_name("klingon"), None);
}
