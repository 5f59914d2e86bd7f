#!/usr/bin/env python3
"""Asks a MySQL server how it lexes each byte of its character sets, and which characters those of
the single-byte sets are:  charsets.py SOCKET > src/charset/sets.rs

Needs PyMySQL and an account `root` without a password on that socket."""
import sys
import unicodedata

import pymysql

SHAPES = {"big5": "Big5", "cp932": "Sjis", "eucjpms": "Ujis", "euckr": "Euckr", "sjis": "Sjis",
          "gb18030": "Gb18030", "gb2312": "Gb2312", "gbk": "Gbk", "ujis": "Ujis",
          "utf8mb3": "Utf8mb3", "utf8mb4": "Utf8mb4"}
# They cannot be character_set_client.
WIDE = ("ucs2", "utf16", "utf16le", "utf32")
SYNTAX = (1064, 1054, 1300)


def passes(cursor, sql):
    try:
        cursor.execute(sql)
        return True
    except pymysql.err.MySQLError as error:
        if error.args[0] not in SYNTAX:
            raise
        return False


def classes(cursor, name):
    """One letter a byte: w word, s blank, c neither but makes `--` a comment, . any other."""
    cursor.execute(f"SET character_set_client = {name}")
    text = ""
    for byte in range(256):
        one = bytes([byte])
        if one in b"\0'.>=!<&|#;:/*@`\"-()%,+?":
            text += "."
        elif passes(cursor, b"SELECT 1 a" + one + b"b"):
            text += "w"
        elif passes(cursor, b"SELECT 1" + one + b"a"):
            text += "s"
        elif passes(cursor, b"SELECT 1 --" + one + b"a"):
            text += "c"
        else:
            text += "."
    cursor.execute("SET character_set_client = utf8mb4")
    return text


def characters(cursor, name, first, last):
    """The code point of each byte; 0 where there is none."""
    for byte in range(first, last):
        cursor.execute(f"SELECT HEX(CONVERT(_{name} x'{byte:02x}' USING utf32))")
        point = int(cursor.fetchone()[0] or "0", 16)
        yield 0 if point == 0x3F and byte != 0x3F else point


def shown(point):
    """A character as it stands in a string of Rust: escaped where an editor may not show it."""
    kind, direction = unicodedata.category(chr(point)), unicodedata.bidirectional(chr(point))
    if chr(point) in '"\\':
        return "\\" + chr(point)
    if kind[0] in "LNPS" and kind != "Lm" and direction not in ("R", "AL") and point != 0xFFFD:
        return chr(point)
    return f"\\u{{{point:x}}}" if point else "\\0"


def upper(points):
    """The first byte that is not its own code point, and the characters from there on."""
    first = next((byte for byte in range(128, 256) if points[byte - 128] != byte), 256)
    lines = [""]
    for point in points[first - 128:]:
        if len(lines[-1]) + len(shown(point)) > 88:
            lines.append("")
        lines[-1] += shown(point)
    return f'&upper({first}, "' + "\\\n             ".join(lines) + '")'


def main():
    link = pymysql.connect(unix_socket=sys.argv[1], user="root", charset="utf8mb4")
    cursor = link.cursor()
    cursor.execute("SELECT VERSION()")
    version = cursor.fetchone()[0]
    cursor.execute("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS ORDER BY 1")
    names = [row[0] for row in cursor.fetchall() if row[0] not in WIDE]
    print(f"//! The character sets of MySQL {version}, asked of the server. Generated, not edited:")
    print("//! `python3 crates/sql/gen/charsets.py SOCKET > FILE`.")
    print("\nuse super::{PLAIN, Set, Shape, classes, upper};\n")
    print(f"#[rustfmt::skip]\npub(super) static SETS: [Set; {len(names)}] = [")
    usual = classes(cursor, "latin1")[:128]
    for name in names:
        letters = classes(cursor, name)
        if name == "utf8mb3":
            # It takes the same bytes for letters but refuses what is no valid character.
            letters = classes(cursor, "utf8mb4")
        odd = [(byte, letters[byte]) for byte in range(128) if letters[byte] != usual[byte]]
        low = ", ".join(f"({byte}, b'{letter}')" for byte, letter in odd)
        is_single = name not in SHAPES and name not in ("binary", "ascii")
        points = list(characters(cursor, name, 128, 256)) if is_single else []
        if name == "binary":
            # Converted byte by byte (my_mb_wc_bin in strings/ctype-bin.cc).
            points = list(range(128, 256))
        lower = [] if name in SHAPES or name == "binary" else [
            (byte, point) for byte, point in zip(range(1, 128), characters(cursor, name, 1, 128))
            if byte != point]
        pairs = ", ".join(f"({byte}, 0x{point:04x})" for byte, point in lower)
        print(f'    Set {{ name: "{name}", shape: Shape::{SHAPES.get(name, "Single")},')
        print(f"        classes: &classes(&[{low}],")
        print(f"            b\"{letters[128:]}\"),", end="")
        if pairs:
            print(f"\n        lower: &[{pairs}],", end="")
        if any(points):
            print(f"\n        upper: {upper(points)},", end="")
        print(" ..PLAIN },")
    print("];")


if __name__ == "__main__":
    main()
