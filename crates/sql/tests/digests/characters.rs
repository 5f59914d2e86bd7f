//! Every character of every character set, as a name.

use std::env;
use std::sync::LazyLock;

use waggle_sql::{Charset, Dialect, Normaliser, SessionSettings, SqlModes};
use waggle_testkit::{Server, Version};

use crate::server::{Oracle, Reply};

/// Of the batches of longer characters `cargo test` takes one in four, a soak all.
static ONE_IN: LazyLock<usize> =
    LazyLock::new(|| if env::var_os("WAGGLE_SOAK_STATEMENTS").is_some() { 1 } else { 4 });
/// Names in one statement, so that it fits into a digest.
const BATCH: usize = 80;

/// Whatever could be a character: one byte, pairs, and some of the longer ones.
fn candidates(charset: Charset) -> Vec<Vec<u8>> {
    let single = (1..=0xff_u8).map(|byte| vec![byte]);
    let pairs = (0x80..=0xff_u8).flat_map(|head| (0x30..=0xff).map(move |tail| vec![head, tail]));
    let mut all: Vec<Vec<u8>> = single.chain(pairs).collect();
    match charset.name() {
        "ujis" | "eucjpms" => {
            for head in 0xa1..=0xfe_u8 {
                all.extend((0xa1..=0xfe).map(|tail| vec![0x8f, head, tail]));
            }
        }
        "gb18030" => {
            for first in 0x81..=0xfe_u8 {
                let rest = |third| vec![first, 0x30 + first % 10, third, 0x30 + third % 10];
                all.extend((0x81..=0xfe).map(rest));
            }
        }
        "utf8mb3" | "utf8mb4" => {
            let points = (0x80..0x3000).chain((0x3000..0x11_0000).step_by(97));
            let text = |point| char::from_u32(point).map(|it| it.to_string().into_bytes());
            all.extend(points.filter_map(text));
        }
        _ => {}
    }
    all
}

fn statement(names: &[Vec<u8>]) -> Vec<u8> {
    let mut statement = b"SELECT 1".to_vec();
    for name in names {
        statement.extend([b", `a", name.as_slice(), b"`"].concat());
    }
    statement
}

/// Differences, and how many names were compared.
struct Outcome {
    compared: usize,
    different: Vec<String>,
}

fn compare(
    oracle: &mut Oracle,
    normaliser: &mut Normaliser,
    settings: SessionSettings,
    names: &[Vec<u8>],
    outcome: &mut Outcome,
) {
    let statement = statement(names);
    let same = match oracle.ask(&statement) {
        Reply::Answer(answer) => {
            let digest = normaliser.digest_in(&statement, settings);
            let text = String::from_utf8_lossy(&answer.text);
            outcome.compared += names.len();
            if digest.text() == text {
                return;
            }
            outcome.compared -= names.len();
            format!("{:x?} server {text} waggle {}", names[0], digest.text())
        }
        Reply::Refused(_) => String::new(),
        Reply::Lost => panic!("the server ended over {}", String::from_utf8_lossy(&statement)),
    };
    match names {
        [_] if same.is_empty() => {}
        [_] => {
            outcome.compared += 1;
            outcome.different.push(same);
        }
        names => {
            let (left, right) = names.split_at(names.len() / 2);
            compare(oracle, normaliser, settings, left, outcome);
            compare(oracle, normaliser, settings, right, outcome);
        }
    }
}

#[test]
fn names_of_every_character_are_those_of_mysql_9() {
    let server = Server::start(Version::Mysql9).unwrap();
    let mut normaliser = Normaliser::new(Dialect::Mysql9);
    let mut wrong = Vec::new();
    // STATEMENT_DIGEST_TEXT() does not take `binary`.
    for charset in Charset::all().filter(|it| it.name() != "binary") {
        let settings = SessionSettings { charset, modes: SqlModes::default() };
        let mut oracle = Oracle::open(&server, settings);
        let mut outcome = Outcome { compared: 0, different: Vec::new() };
        let candidates = candidates(charset);
        let (single, more) = candidates.split_at(0xff);
        for names in single.chunks(BATCH).chain(more.chunks(BATCH).step_by(*ONE_IN)) {
            compare(&mut oracle, &mut normaliser, settings, names, &mut outcome);
        }
        let Outcome { compared, different } = outcome;
        println!("{charset:?}: {compared} names, {} different", different.len());
        assert!(compared >= 100, "only {compared} names in {charset:?}");
        wrong.extend(different.into_iter().map(|it| format!("{charset:?} {it}")));
    }
    if let Ok(path) = std::env::var("CHARACTERS_REPORT") {
        std::fs::write(path, wrong.join("\n")).unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(50)].join("\n")
    );
}
