//! Statements longer than what is captured of them.

use std::collections::BTreeSet;

use serde_json::Value;
use waggle_testkit::{Server, Version, on_each_server};

use crate::watching::Waggle;
use crate::{load, watched};

/// Rows of the inserts: the first has less than 1,024 bytes, the others are cut in other places.
const ROWS: [usize; 8] = [3, 120, 200, 201, 202, 203, 204, 400];

fn insert(rows: usize) -> String {
    let rows: Vec<String> =
        (0..rows).map(|row| format!("({row}, '{}')", "x".repeat(row % 7))).collect();
    format!("INSERT INTO cut_rows VALUES {}", rows.join(", "))
}

fn select(condition: &str) -> String {
    let list: Vec<String> = (1000..2000).map(|number| number.to_string()).collect();
    format!("SELECT a FROM cut_rows WHERE a IN ({}) {condition}", list.join(","))
}

/// Text and mark of each digest about the table.
fn seen(watch: Waggle) -> BTreeSet<(String, bool)> {
    let lines = watch.interrupt().lines();
    let told = |digest: &&Value| {
        let text = digest["digest_text"].as_str().unwrap().to_owned();
        (text, digest["digest_cut"].as_bool().unwrap())
    };
    watched::digests(&lines, "`cut_rows`").iter().map(told).collect()
}

fn a_cut_text_is_one_marked_digest_wherever_it_is_cut(version: Version) {
    let server = Server::start(version).unwrap();
    let mut client = load::session(&server);
    client.run("CREATE TABLE cut_rows (a INT, b VARCHAR(10))").unwrap();
    let limit = |bytes: &str| Waggle::watch(&server, &["--limit", "1000", "--text-limit", bytes]);
    let (mut short, mut usual) = (limit("1024"), limit("16384"));
    for rows in ROWS {
        client.run(insert(rows)).unwrap();
    }
    for condition in ["AND b = 'x'", "OR b = 'x'"] {
        client.run(select(condition)).unwrap();
    }
    // It would have another digest while it runs if less of it were read then.
    let long = "x".repeat(2000);
    let slow =
        format!("SELECT cut_rows.a, SLEEP(1.2), '{long}', 1 AS z FROM (SELECT 1 AS a) cut_rows");
    client.run(slow).unwrap();
    short.wait_for_lines(2);
    usual.wait_for_lines(1);
    let slow = |text: &(String, bool)| text.0.contains("`SLEEP`");
    let whole = |texts: &BTreeSet<(String, bool)>| {
        texts.iter().filter(|text| !slow(text)).cloned().collect::<Vec<_>>()
    };
    let is = |text: &str, cut: bool| (text.to_owned(), cut);
    let select = "SELECT `a` FROM `cut_rows` WHERE `a` IN (...)";
    let usual = seen(usual);
    assert_eq!(
        whole(&usual),
        [
            is("INSERT INTO `cut_rows` VALUES (...) /* , ... */", false),
            is(&format!("{select} AND `b` = ?"), false),
            is(&format!("{select} OR `b` = ?"), false),
        ],
        "{version}"
    );
    assert_eq!(usual.iter().filter(|text| slow(text)).count(), 1, "{version}: {usual:#?}");
    assert_eq!(
        whole(&seen(short)),
        [
            is("INSERT INTO `cut_rows` VALUES (...) /* , ... */", false),
            is("INSERT INTO `cut_rows` VALUES (...) /* , ... */ ...", true),
            is(&format!("{select} ..."), true),
        ],
        "{version}"
    );
}

on_each_server!(a_cut_text_is_one_marked_digest_wherever_it_is_cut);
