//! The layout of statements.
#![cfg(test)]

use std::cell::RefCell;

use proptest::prelude::*;
use waggle_sql::{Dialect, Lexeme, Lexer, Normaliser, Reading, SqlModes, format};

const CORPUS: &str = include_str!("corpus/digests.tsv");
const DIALECTS: [Dialect; 4] =
    [Dialect::Mysql9, Dialect::Mysql80, Dialect::Mysql57, Dialect::Mariadb];

/// Every statement and every digest text of the corpus.
fn texts() -> Vec<String> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with("# "));
    let fields = lines.flat_map(|line| line.split('\t')).filter(|field| *field != "-");
    fields.map(|field| field.replace("\\n", "\n").replace("\\t", "\t")).collect()
}

/// The tokens of a text without what stands between them.
fn tokens(sql: &str, reading: Reading) -> Vec<(Lexeme, &[u8], bool)> {
    let sql = sql.as_bytes();
    let tokens = Lexer::new(sql, reading);
    tokens
        .map(|token| match token.lexeme {
            // These begin with the gap before them.
            Lexeme::HintOpen | Lexeme::HintClose | Lexeme::Repeated => {
                (token.lexeme, &b""[..], false)
            }
            _ => (token.lexeme, token.bytes(sql), token.open),
        })
        .collect()
}

thread_local! {
    static TEXTS: Vec<String> = texts();
    static NORMALISERS: RefCell<[Normaliser; 4]> = RefCell::new(DIALECTS.map(Normaliser::new));
}

/// What a layout must keep.
fn check(sql: &str, width: usize) {
    NORMALISERS.with_borrow_mut(|normalisers| {
        DIALECTS.iter().zip(normalisers).for_each(|(it, made)| keeps(sql, width, *it, made));
    });
}

fn keeps(sql: &str, width: usize, dialect: Dialect, normaliser: &mut Normaliser) {
    let reading = dialect.reading();
    let laid = format(sql, reading, SqlModes::default(), width);
    assert_eq!(tokens(sql, reading), tokens(&laid, reading), "{sql:?}\n{laid:?}");
    let before = normaliser.digest(sql.as_bytes()).text().to_owned();
    assert_eq!(before, normaliser.digest(laid.as_bytes()).text(), "{sql:?}\n{laid:?}");
}

fn laid(sql: &str, width: usize) -> String {
    format(sql, Dialect::Mysql9.reading(), SqlModes::default(), width)
}

#[test]
fn a_query_has_its_clauses_and_conditions_on_lines_of_their_own() {
    let sql = "SELECT `c` , COUNT ( * ) FROM `t1` LEFT JOIN `t2` ON `t1` . `a` = `t2` . `b` AND `x` = ? \
               WHERE `a` BETWEEN ? AND ? AND `b` IN (...) OR `c` = ? GROUP BY `c` \
               HAVING COUNT ( * ) > ? ORDER BY `c` DESC LIMIT ?, ... FOR UPDATE";
    let expected = "\
SELECT `c` , COUNT ( * )
FROM `t1`
LEFT JOIN `t2` ON `t1` . `a` = `t2` . `b`
  AND `x` = ?
WHERE `a` BETWEEN ? AND ?
  AND `b` IN (...)
  OR `c` = ?
GROUP BY `c`
HAVING COUNT ( * ) > ?
ORDER BY `c` DESC
LIMIT ?, ...
FOR UPDATE";
    assert_eq!(laid(sql, 80), expected);
}

#[test]
fn a_subquery_is_indented() {
    let sql = "select a from(select b,c from t where d=1 union all select 1,2) x where a in \
               (select trim(both ' ' from e) from u) and f=(1)";
    let expected = "\
select a
from(
  select b,c
  from t
  where d=1
  union all
  select 1,2
) x
where a in (
  select trim(both ' ' from e)
  from u
)
  and f=(1)";
    assert_eq!(laid(sql, 80), expected);
}

#[test]
fn what_is_too_long_goes_on_below() {
    let sql = "INSERT INTO `orders` ( `id` , `name` , `amount` , `created` ) VALUES (...) \
               ON DUPLICATE KEY UPDATE `name` = VALUES ( `name` ) , `amount` = `amount` + ?";
    let expected = "\
INSERT INTO `orders` ( `id` , `name` ,
    `amount` , `created` )
VALUES (...)
ON DUPLICATE KEY UPDATE `name` = VALUES (
    `name` ) , `amount` = `amount` + ?";
    assert_eq!(laid(sql, 41), expected);
}

#[test]
fn other_statements_have_lines_too() {
    let cases = [
        (
            "update t set a = 1, b = 2 where c = 3 limit 1",
            "update t\nset a = 1, b = 2\nwhere c = 3\nlimit 1",
        ),
        ("delete from t where a = 1 or b", "delete from t\nwhere a = 1\n  or b"),
        ("set names utf8 collate x", "set names utf8 collate x"),
        ("with x as (select 1) select a from x", "with x as (\n  select 1\n)\nselect a\nfrom x"),
        (
            "select case when a and b then c end from t",
            "select case when a and b then c end\nfrom t",
        ),
        (
            "select a from t use index for order by (i)",
            "select a\nfrom t use index for order by (i)",
        ),
        ("select a -- why\nfrom t /* x */ where b", "select a -- why\nfrom t /* x */\nwhere b"),
        ("  select 1 ", "select 1"),
        ("/*!40000 1a */ select 2", "/*!40000 1a */\nselect 2"),
        ("a = ((((((((((((1--)))))))))))))", "a = ((((((((((((1--)))))))))))))"),
        ("", ""),
    ];
    for (sql, expected) in cases {
        assert_eq!(laid(sql, 80), expected, "{sql}");
    }
}

#[test]
fn what_no_token_is_keeps_its_place_behind_a_comment() {
    let mut normaliser = Normaliser::new(Dialect::Mysql57);
    // The server takes `.5e` for a number, finds none, and goes on behind it.
    keeps("select 1 -- one\n.5explain", 80, Dialect::Mysql57, &mut normaliser);
    keeps("select 1 /* -- one */ .5explain", 80, Dialect::Mysql57, &mut normaliser);
}

#[test]
fn a_hint_that_stays_open_keeps_the_blank_at_its_end() {
    let mut normaliser = Normaliser::new(Dialect::Mysql57);
    // Without the blank, `x'1` is the beginning of a number.
    keeps("select /*+ n x'1 ", 80, Dialect::Mysql57, &mut normaliser);
}

#[test]
fn the_layout_of_the_corpus_has_the_same_tokens_and_the_same_digest() {
    let texts = texts();
    assert!(texts.len() > 4000, "{} texts", texts.len());
    for (at, text) in texts.iter().enumerate() {
        let width = [20, 40, 80, 200][at % 4];
        check(text, width);
        // Laid out once more, it stays; comments may end elsewhere in their lines.
        let once = laid(text, width);
        if !text.contains("/*") && !text.contains("--") {
            assert_eq!(once, laid(&once, width), "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_keeps_its_tokens(sql in "\\PC{0,80}", width in 0..100_usize) {
        check(&sql, width);
    }

    #[test]
    fn lines_are_as_wide_as_they_may_be(text in 0..4000_usize, width in 20..120_usize) {
        let text = TEXTS.with(|texts| texts[text].clone());
        // What stands in strings and comments is not broken, nor what has no blank between.
        prop_assume!(!text.contains(['\n', '#', '\'', '"']) && !text.contains("/*") && !text.contains("--"));
        let longest = text.split([' ', ',', '(']).map(|part| part.chars().count()).max().unwrap();
        for line in laid(&text, width).lines() {
            // An opening parenthesis, a comma and their blanks stay where they are.
            let most = width.max(width / 2 + longest + 4);
            prop_assert!(line.chars().count() <= most + 4, "{line}");
        }
    }
}
