//! Inputs: mutated statements of the corpora, words in any order, and random bytes.

use waggle_fuzz_frame::{Random, mutate};

const DIGESTS: &str = include_str!("../corpus/digests.tsv");
const FINGERPRINTS: &str = include_str!("../corpus/fingerprints.txt");
/// What a mutation puts in: where lexers and patterns decide.
const PIECES: &[&[u8]] = &[
    b"'",
    b"\"",
    b"`",
    b"\\",
    b"''",
    b"\\'",
    b"/*",
    b"*/",
    b"/*!",
    b"/*!50000",
    b"/*!99999 ",
    b"/*M!",
    b"/*+ ",
    b"--",
    b"-- ",
    b"#",
    b"\n",
    b";",
    b"(",
    b")",
    b"((",
    b"))",
    b",",
    b", (",
    b"?",
    b"...",
    b"/* , ... */",
    b"(...)",
    b"@",
    b"@@",
    b".",
    b"..",
    b"*",
    b"{",
    b"}",
    b":=",
    b"->>",
    b"<=>",
    b"||",
    b"0x",
    b"0b1",
    b"x'41'",
    b"b'01'",
    b"n'x'",
    b"_utf8'x'",
    b"1e",
    b"1e-5",
    b".5",
    b"18446744073709551616",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
    b"\xf0\x9f\x98\x80",
    b" in ",
    b" in (1, 2)",
    b" values ",
    b" null ",
    b" true ",
    b" limit 1, 2",
    b" union all select 1",
    b" order by 1 asc",
    b" by ",
    b"select ",
    b" from t",
    b" join ",
    b"with x as (",
    b" recursive ",
    b"insert into t values (1), (2)",
    b"update t set ",
    b"delete from ",
    b" using ",
    b"create table t like ",
    b"create procedure p() ",
    b"identified by 'x'",
    b" password=",
    b"call p(",
    b"use d",
    b"prepare s from '",
    b"explain format=",
    b" between 1 and 2",
    b" case when ",
    b" end ",
    b" for update of ",
    b"/*a.b:1/2*/",
];
/// Words that pieces are put between.
const WORDS: &str = "select from join with recursive as t u `v` using delete update insert into table \
    create like references on for values explain desc show columns lock tables = 1 union set where \
    drop view index trigger rename to replace and between case left end x -> _utf8 / -";
/// Bytes of a usual input at most.
const USUAL: usize = 2000;
/// Bytes of the few long ones, which show what is not linear.
const LONG: usize = 64 * 1024;
/// One in this many is long.
const LONG_EVERY: usize = 5000;

/// Makes inputs; one at a time.
pub(crate) struct Inputs {
    corpus: Vec<&'static [u8]>,
    words: Vec<&'static [u8]>,
    sql: Vec<u8>,
}

impl Inputs {
    pub(crate) fn new() -> Self {
        let lines = DIGESTS.lines().chain(FINGERPRINTS.lines());
        let lines = lines.filter(|line| !line.starts_with("# "));
        // Digest texts are input as well.
        let corpus = lines.flat_map(|line| line.split('\t')).filter(|field| field.len() > 1);
        let corpus = corpus.map(str::as_bytes).collect();
        Inputs { corpus, words: WORDS.split(' ').map(str::as_bytes).collect(), sql: Vec::new() }
    }

    /// The input that was made last.
    pub(crate) fn sql(&self) -> &[u8] {
        &self.sql
    }

    /// Makes an input, and returns its length.
    pub(crate) fn make(&mut self, random: &mut Random) -> usize {
        self.sql.clear();
        match random.below(10) {
            0 => {
                let length = random.below(400);
                // All bytes, or those of text.
                let (low, span) = if random.coin() { (0, 256) } else { (0x20, 0x5f) };
                self.sql.extend((0..length).map(|_| (low + random.below(span)) as u8));
            }
            1 => self.words(random),
            _ => {
                self.sql.extend_from_slice(random.pick::<&[u8]>(&self.corpus));
                for _ in 0..random.below(7) {
                    mutate(&mut self.sql, random, PIECES, &self.corpus, USUAL);
                }
            }
        }
        if random.below(LONG_EVERY) == 0 {
            self.lengthen(random);
        }
        self.sql.len()
    }

    /// Words and pieces in any order, mostly with a blank between them.
    fn words(&mut self, random: &mut Random) {
        for _ in 0..random.below(60) {
            let from = if random.below(3) == 0 { PIECES } else { &self.words };
            self.sql.extend_from_slice(random.pick::<&[u8]>(from));
            if random.below(4) != 0 {
                self.sql.push(b' ');
            }
        }
    }

    /// Repeats a part of the input, or a piece, very often.
    fn lengthen(&mut self, random: &mut Random) {
        let from = random.below(self.sql.len() + 1);
        let to = (from + 1 + random.below(80)).min(self.sql.len());
        let part = if random.coin() { &self.sql[from..to] } else { *random.pick(PIECES) };
        let part = if part.is_empty() { b"(" } else { part }.to_vec();
        let times = LONG.saturating_sub(self.sql.len()) / part.len();
        self.sql.splice(from..from, part.repeat(times));
    }
}
