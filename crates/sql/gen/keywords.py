#!/usr/bin/env python3
"""Reads the keyword tables out of a mysqld or mariadbd executable.

The server compiles two arrays into itself: `symbols[]` (sql/lex.h: word -> token number) and
`lex_token_array[]` (built by sql/gen_lex_token.cc: token number -> text in a digest, whether a
space follows, whether an expression follows).  Both are found by content, so a stripped
executable serves as well:  keywords.py MYSQLD NAME > words.txt
"""
import struct
import sys


class Image:
    """The loadable bytes of an x86-64 ELF file with its relative relocations applied."""

    def __init__(self, path):
        data = open(path, "rb").read()
        phoff, = struct.unpack_from("<Q", data, 32)
        phentsize, phnum = struct.unpack_from("<HH", data, 54)
        self.segments, dynamic = [], None
        for i in range(phnum):
            kind, _, offset, vaddr, _, filesz, _, _ = struct.unpack_from(
                "<IIQQQQQQ", data, phoff + i * phentsize)
            if kind == 1:
                self.segments.append((vaddr, bytearray(data[offset:offset + filesz])))
            elif kind == 2:
                dynamic = data[offset:offset + filesz]
        tags = dict(struct.iter_unpack("<QQ", dynamic or b""))
        for base, size in ((7, 8), (23, 2)):
            if base in tags:
                self.relocate(tags[base], tags[size])

    def relocate(self, address, size):
        segment, at = self.find(address)
        for offset, info, addend in struct.iter_unpack("<QQq", bytes(segment[at:at + size])):
            if info & 0xFFFFFFFF == 8:
                target, where = self.find(offset)
                struct.pack_into("<q", target, where, addend)

    def find(self, address):
        for vaddr, segment in self.segments:
            if vaddr <= address < vaddr + len(segment):
                return segment, address - vaddr
        raise KeyError(hex(address))

    def text(self, address, length=None):
        segment, at = self.find(address)
        end = segment.index(0, at) if length is None else at + length
        return segment[at:end].decode("latin1")

    def pointers_to(self, word):
        """Addresses that hold a pointer to the whole string `word`."""
        for vaddr, segment in self.segments:
            at = segment.find(b"\0" + word + b"\0")
            while at >= 0:
                needle = struct.pack("<Q", vaddr + at + 1)
                for base, other in self.segments:
                    hit = other.find(needle)
                    while hit >= 0:
                        if hit % 8 == 0:
                            yield base + hit
                        hit = other.find(needle, hit + 1)
                at = segment.find(b"\0" + word + b"\0", at + 1)


def symbol(image, address):
    """One entry of symbols[]: {name, length, token, [group]}, or None."""
    segment, at = image.find(address)
    name, length, token = struct.unpack_from("<QII", segment, at)
    group, = struct.unpack_from("<I", segment, at + 16)
    try:
        word = image.text(name)
    except (KeyError, ValueError):
        return None
    if token == 0 and length > 255:
        # MariaDB: {name, token, length, group}, the length filled in when the server starts.
        length, token, group = len(word), length, 0
    plausible = len(word) == length and 0 < length < 64 and 33 <= token < 2000
    return (word, token, group) if plausible and word.isascii() else None


def run(image, address, stride):
    """The entries around `address`, walked in both directions."""
    first = address
    while symbol(image, first - stride):
        first -= stride
    entries = []
    while entry := symbol(image, first):
        entries.append(entry)
        first += stride
    return entries


def symbols(image, word, least):
    for address in image.pointers_to(word):
        # lex_token_array[] has the same shape but a flag where the token number stands.
        entry = symbol(image, address)
        if entry is None or entry[1] < 256:
            continue
        for stride in (16, 24):
            try:
                entries = run(image, address, stride)
            except KeyError:
                continue
            if len(entries) >= least:
                return entries
    return []


def printed(image):
    """lex_token_array[]: found by a fake token, walked back to the one-character tokens."""
    for hit in image.pointers_to(b"(tok_id)"):
        segment, at = image.find(hit)
        for start in range(at, max(at - 1500 * 16, 0), -16):
            pointer, length = struct.unpack_from("<QI", segment, start)
            try:
                if length == 1 and image.text(pointer, 1) == "@":
                    break
            except KeyError:
                pass
        at, rows = start - 64 * 16, []
        try:
            while len(rows) < 1450:
                pointer, length, space, expr = struct.unpack_from("<QIBB", segment, at)
                rows.append((image.text(pointer, min(length, 64)), bool(space), bool(expr)))
                at += 16
        except (KeyError, struct.error):
            pass
        if len(rows) > 600 and rows[65][0] == "A" and rows[90][0] == "Z":
            return rows
    return []


OPERATORS = set("!%&()*+,-/:;<=>@^|~")


def write(path, words, tokens):
    """The words as a text file, on standard output."""
    def rows(name, what, values):
        print(f"[{name}] {what}")
        line = ""
        for value in values:
            if line and len(line) + 1 + len(value) > 98:
                print(line)
                line = ""
            line = f"{line} {value}" if line else value
        if line:
            print(line)

    def row(word, token, group):
        text = word if group == 8 else tokens[token][0]
        return word if text == word else f"{word}={text}"

    plain = sorted({e for e in words if e[0] and e[0][0] not in OPERATORS and e[1] > 255})
    hints = [row(*e) for e in plain if e[2] == 8]
    functions = [row(*e) for e in plain if e[2] == 2]
    keywords = [row(*e) for e in plain if e[2] in (0, 1, 4)]
    known = {token for _, token, group in words if group != 8}
    starts = sorted({text for token, (text, _, expr) in enumerate(tokens)
                     if expr and (token in known or token < 256 or text == "||" or text == "|")})
    version = sys.argv[2] if len(sys.argv) > 2 else path
    print(f"# Words of {version}, read out of its executable. Generated, not edited:")
    print("# python3 crates/sql/gen/keywords.py EXECUTABLE NAME > FILE")
    print("# WORD=TEXT where a digest prints a word as another one.")
    rows("keywords", "Words that are keywords wherever they stand.", keywords)
    rows("functions", "Words that are keywords only right before a parenthesis.", functions)
    rows("hints", "Words inside an optimizer hint.", hints)
    rows("starts", "Tokens after which an expression begins, so that a sign is unary.", starts)


def main():
    image = Image(sys.argv[1])
    words = symbols(image, b"ACCESSIBLE", 300)
    # MariaDB keeps its function words apart, in sql_functions[].
    functions = []
    if not any(word == "SUBSTRING" for word, _, _ in words):
        functions = [(w, t, 2) for w, t, _ in symbols(image, b"SUBSTRING", 5)]
    write(sys.argv[1], functions + words, printed(image))


if __name__ == "__main__":
    main()
