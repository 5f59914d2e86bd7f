//! Texts of every shape: several in a packet, long ones, and bytes that are no text.

use waggle_model::Command;

use crate::matrix::scene::Scene;
use crate::matrix::talker::Talker;

pub(crate) fn packet_with_error(_: &mut Scene, talker: &mut Talker) {
    for _twice in 0..2 {
        let texts = ["SELECT 1", "UPDATE kept SET v = v + 1 WHERE id = 2", "SELECT n FROM nowhere"];
        let results = talker.packet(&[texts[0], texts[1], texts[2], "SELECT 4", "SELECT 5"]);
        assert_eq!(results.len(), 3);
        assert_eq!(results[2].error.as_ref().unwrap().0, 1146);
        let results = talker.packet(&["SELECT 1", "SELECT 'b'", "DO 3", "SELECT 4, 4", "SELECT 5"]);
        assert_eq!(results.len(), 5);
    }
}

/// Each statement has the database of its own moment.
pub(crate) fn packet_with_use(_: &mut Scene, talker: &mut Talker) {
    let texts =
        ["SELECT 1", "USE much_longer_name", "SELECT 3", "USE abcd", "SELECT 5", "SELECT 6"];
    let databases = ["test", "much_longer_name", "much_longer_name", "abcd", "abcd", "abcd"];
    let notes: Vec<_> =
        texts.iter().map(|text| talker.note(Command::QUERY, Some(text.as_bytes()))).collect();
    let results = talker.client.query(texts.join(";")).unwrap();
    assert_eq!(results.len(), texts.len());
    for ((mut note, result), database) in notes.into_iter().zip(&results).zip(databases) {
        note.who.database = Some(database.to_owned());
        talker.expect(note.answered(result));
    }
    talker.who.database = Some("abcd".to_owned());
    talker.run("SELECT 7");
}

pub(crate) fn load_data(_: &mut Scene, talker: &mut Talker) {
    let sql = "LOAD DATA LOCAL INFILE 'any' INTO TABLE bag (v)";
    for rows in [3, 20_000] {
        let lines: String = (0..rows).map(|line| format!("{line}\n")).collect();
        let note = talker.note(Command::QUERY, Some(sql.as_bytes()));
        let results = talker.client.load_local(sql, lines.as_bytes()).unwrap();
        assert_eq!(results[0].affected, rows, "{results:?}");
        talker.expect(note.answered(&results[0]));
    }
    talker.run("TRUNCATE TABLE bag");
}

pub(crate) fn odd_bytes(_: &mut Scene, talker: &mut Talker) {
    talker.query(b"SELECT 1 /* \xff\xfe \0 \xc3 \xf0\x9f\x90\x9d */, 2");
    talker.query(b"SELECT 'a\0b', LENGTH(x'ff00')");
    talker.query(b"SELECT LENGTH('\xff\xfe\xc3')");
    talker.query("SELECT 'é', '\u{1f41d}', 1 AS `größe`");
    talker.query(b"\xff\xfe\0");
    talker.query(b"SELECT 1\0");
}

/// The server drops space and semicolons around a statement, and nothing else.
pub(crate) fn space(_: &mut Scene, talker: &mut Talker) {
    let texts = [
        ("  \n\t SELECT 1", "SELECT 1"),
        ("SELECT 2 ;", "SELECT 2"),
        ("SELECT 3;  \n", "SELECT 3"),
        ("/* before */ SELECT 4 /* after */", "/* before */ SELECT 4 /* after */"),
        ("SELECT 5 -- end\n", "SELECT 5 -- end"),
        ("/*!50000 SELECT */ 6", "/*!50000 SELECT */ 6"),
    ];
    for (sent, shown) in texts {
        talker.query(sent);
        talker.last(|last| last.text = Some(shown.as_bytes().to_vec()));
    }
}

pub(crate) fn at_the_limit(_: &mut Scene, talker: &mut Talker) {
    for length in [255, 256, 257, 1023, 1024, 1025, 4096, 16_383, 16_384, 16_385, 70_000] {
        let sql = format!("SELECT '{}'", "x".repeat(length - "SELECT ''".len()));
        assert_eq!(sql.len(), length);
        talker.run(&sql);
    }
}

fn long(talker: &mut Talker, length: usize) {
    let sql = format!("SELECT LENGTH('{}')", "y".repeat(length));
    assert_eq!(talker.run(&sql).text(0, 0), Some(length.to_string()));
}

pub(crate) fn megabytes(_: &mut Scene, talker: &mut Talker) {
    long(talker, 3 << 20);
}

pub(crate) fn sixty_four_mebibytes(_: &mut Scene, talker: &mut Talker) {
    long(talker, 64 << 20);
}
