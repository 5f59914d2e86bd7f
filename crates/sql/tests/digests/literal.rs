//! What is built in: names and values in every form that the settings of a session allow.

use waggle_sql::SqlModes;

use crate::expand::Writer;

pub(crate) fn write(writer: &mut Writer<'_>, name: &str) {
    match name {
        "ident" => identifier(writer),
        "int" => one(writer, &INTEGERS),
        "digit" => one(writer, &["0", "1", "3", "6", "9"]),
        "decimal" => one(writer, &DECIMALS),
        "float" => one(writer, &FLOATS),
        "hex" => one(writer, &["0x41", "0xAbCdEf", "x'4142'", "X'ff'", "x''", "0x0", "X''"]),
        "bits" => one(writer, &["b'01'", "B'1'", "0b101", "b''", "0b0"]),
        "string" => string(writer),
        "nstring" => {
            one(writer, &["N", "n"]);
            quoted(writer, b'\'');
        }
        "introduced" => introduced(writer),
        "date" => one(writer, &["'2020-01-01'", "'0000-00-00'", "'2026-11-22'"]),
        "time" => one(writer, &["'10:11:12'", "'-838:59:59'", "'10:11:12.123456'"]),
        "timestamp" => one(writer, &["'2020-01-01 00:00:00'", "'2026-11-22 10:11:12.5'"]),
        "uservar" => user_variable(writer),
        "ig" => {
            if writer.settings.modes.contains(SqlModes::IGNORE_SPACE) && writer.random.coin() {
                one(writer, &[" ", "\t", "\n  "]);
            }
        }
        other => panic!("the grammar has no rule {other}"),
    }
}

const INTEGERS: [&str; 22] = [
    "0",
    "1",
    "1",
    "2",
    "3",
    "5",
    "7",
    "10",
    "42",
    "007",
    "100",
    "1000",
    "65535",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1234567890123456789012345678901234567890",
];
const DECIMALS: [&str; 7] = ["1.5", ".5", "1.", "0.0", "123456789012345678901.1", "00.10", "-1.25"];
const FLOATS: [&str; 8] = ["1e5", "1E-3", ".5e+2", "1.e3", "2e0", "1.5E10", "0e0", "1e+10"];

fn one(writer: &mut Writer<'_>, list: &[&str]) {
    let text = *writer.random.pick(list);
    writer.out.extend_from_slice(text.as_bytes());
}

/// Characters of the character set, among them those that end with the byte of a quote, a
/// backslash or a letter.
fn character(writer: &mut Writer<'_>, in_name: bool) {
    let all: &[&[u8]] = match writer.settings.charset.name() {
        "gbk" | "gb18030" => &[b"\xb0\xa1", b"\x81\x5c", b"\x81\x60", b"\xc4\xe3", b"\x95\x41"],
        "gb2312" => &[b"\xb0\xa1", b"\xc4\xe3", b"\xd7\xd6"],
        "big5" => &[b"\xa4\xa4", b"\xa5\x5c", b"\xa7\x60", b"\xb3\x5c"],
        "sjis" | "cp932" => &[b"\x93\xfa", b"\x83\x5c", b"\x83\x60", b"\x95\x5c", b"\x96\x7b"],
        "euckr" => &[b"\xb0\xa1", b"\xc7\xd1", b"\x81\x41"],
        "ujis" | "eucjpms" => &[b"\xc6\xfc", b"\xcb\xdc", b"\x8e\xb1", b"\x8f\xb0\xa1"],
        "utf8mb3" => &["é".as_bytes(), "名".as_bytes(), "ß".as_bytes()],
        "utf8mb4" if in_name => &["é".as_bytes(), "名".as_bytes(), "ß".as_bytes()],
        "utf8mb4" => &["é".as_bytes(), "名".as_bytes(), "\u{1f41d}".as_bytes()],
        "ascii" | "swe7" | "tis620" => &[b"z"],
        "hebrew" => &[b"\xe0", b"\xf9"],
        "cp1256" => &[b"\xc8", b"\xe1"],
        "cp850" | "cp852" | "keybcs2" => &[b"\x81", b"\x82", b"\x84"],
        _ => &[b"\xe9", b"\xc4", b"\xd1", b"\xe0"],
    };
    let bytes = *writer.random.pick(all);
    writer.out.extend_from_slice(bytes);
}

fn identifier(writer: &mut Writer<'_>) {
    match writer.random.below(40) {
        0 => one(
            writer,
            &["a$b", "_x", "_utf", "1a", "2e", "0xg", "0b2", "x", "n", "b", "N1", "$x1"],
        ),
        1 | 2 => one(writer, &KEYWORDS),
        3 => one(writer, &["count", "sum", "now", "substr", "trim", "position", "max", "extract"]),
        4 => {
            one(writer, &["a", "b", "_"]);
            character(writer, true);
            one(writer, &["", "c", "1", "_d"]);
        }
        5 => {
            character(writer, true);
            character(writer, true);
        }
        6..10 => quoted_name(writer, b'`'),
        10..13 if writer.settings.modes.contains(SqlModes::ANSI_QUOTES) => {
            quoted_name(writer, b'"')
        }
        13 => {
            let length = 60 + writer.random.below(9);
            let letter = *writer.random.pick(b"qrs");
            writer.out.extend(std::iter::repeat_n(letter, length));
        }
        _ => one(writer, &NAMES),
    }
}

const NAMES: [&str; 30] = [
    "a",
    "b",
    "c",
    "d",
    "id",
    "k",
    "t",
    "t1",
    "t2",
    "users",
    "orders",
    "ID",
    "Name",
    "col_1",
    "c2",
    "price",
    "qty",
    "customer_id",
    "created_at",
    "db1",
    "tmp",
    "x1",
    "y",
    "z",
    "idx",
    "p0",
    "p1",
    "e",
    "u",
    "w9",
];
/// Keywords that are names as well.
const KEYWORDS: [&str; 30] = [
    "date",
    "status",
    "value",
    "hash",
    "type",
    "name",
    "action",
    "comment",
    "user",
    "timestamp",
    "data",
    "level",
    "role",
    "host",
    "password",
    "offset",
    "time",
    "year",
    "end",
    "format",
    "language",
    "Enum",
    "BIT",
    "no",
    "one",
    "any",
    "ROLLUP",
    "quick",
    "session",
    "global",
];

fn quoted_name(writer: &mut Writer<'_>, quote: u8) {
    writer.out.push(quote);
    let parts = 1 + writer.random.below(3);
    for _ in 0..parts {
        match writer.random.below(9) {
            0 => writer.out.extend([quote, quote]),
            1 => character(writer, true),
            2 => one(writer, &["select", "from", "order by", "\\", "'"]),
            3 => one(writer, &["a b", "a-b", "1", "@x", "?", "/*", "--"]),
            _ => one(writer, &NAMES),
        }
    }
    // A blank at the end is no name.
    writer.out.push(b'_');
    writer.out.push(quote);
}

fn string(writer: &mut Writer<'_>) {
    let ansi = writer.settings.modes.contains(SqlModes::ANSI_QUOTES);
    let quote = if !ansi && writer.random.below(4) == 0 { b'"' } else { b'\'' };
    quoted(writer, quote);
}

fn quoted(writer: &mut Writer<'_>, quote: u8) {
    const ESCAPES: [&str; 12] =
        ["\\'", "\\\"", "\\\\", "\\n", "\\t", "\\0", "\\Z", "\\%", "\\_", "\\x", "\\`", "\\b"];
    const TEXTS: [&str; 16] = [
        "a", "abc", "x y", "1", "%x%", "?", "", "it", "--", "/* x */", "#", "`", ";", "\n",
        "select", "/*! */",
    ];
    let escapes = !writer.settings.modes.contains(SqlModes::NO_BACKSLASH_ESCAPES);
    writer.out.push(quote);
    for _ in 0..writer.random.below(4) {
        match writer.random.below(8) {
            0 if escapes => one(writer, &ESCAPES),
            0 => one(writer, &["\\", "\\\\", "\\n", "x\\"]),
            1 => writer.out.extend([quote, quote]),
            2 => writer.out.push(if quote == b'\'' { b'"' } else { b'\'' }),
            3 => character(writer, false),
            _ => one(writer, &TEXTS),
        }
    }
    writer.out.push(quote);
}

fn introduced(writer: &mut Writer<'_>) {
    one(
        writer,
        &[
            "_utf8mb4'x'",
            "_utf8mb4 'x y'",
            "_latin1 x'41'",
            "_binary 0x41",
            "_utf8mb4 b'01000001'",
            "_UTF8MB4 'x'",
            "_utf8mb3 'x'",
            "_koi8r 'x'",
            "_latin1'x' COLLATE latin1_bin",
            "_binary'a' 'b'",
            "_ascii 'a'",
            "_utf8 'x'",
            "_gbk 'x'",
            "_ucs2 x'0041'",
        ],
    );
}

fn user_variable(writer: &mut Writer<'_>) {
    one(
        writer,
        &[
            "a", "b1", "`x y`", "'str'", "a.b", "$x", "_y", "A", "x", "`a``b`", "'it''s'",
            "select", "1", "1a.b",
        ],
    );
}
