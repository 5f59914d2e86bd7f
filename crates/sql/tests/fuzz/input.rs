//! Inputs: mutated statements of the corpora, and random bytes.

use waggle_stats::Random;

const DIGESTS: &str = include_str!("../corpus/digests.tsv");
const FINGERPRINTS: &str = include_str!("../corpus/fingerprints.txt");
/// What a mutation puts in: where lexers and patterns decide.
const PIECES: &[&str] = &[
    "'",
    "\"",
    "`",
    "\\",
    "''",
    "\\'",
    "/*",
    "*/",
    "/*!",
    "/*!50000",
    "/*!99999 ",
    "/*M!",
    "/*+ ",
    "--",
    "-- ",
    "#",
    "\n",
    ";",
    "(",
    ")",
    "((",
    "))",
    ",",
    ", (",
    "?",
    "...",
    "/* , ... */",
    "(...)",
    "@",
    "@@",
    ".",
    "..",
    "*",
    "{",
    "}",
    ":=",
    "->>",
    "<=>",
    "||",
    "0x",
    "0b1",
    "x'41'",
    "b'01'",
    "n'x'",
    "_utf8'x'",
    "1e",
    "1e-5",
    ".5",
    "18446744073709551616",
    "\0",
    "\u{feff}",
    "é",
    "\u{1f600}",
    " in ",
    " in (1, 2)",
    " values ",
    " null ",
    " true ",
    " limit 1, 2",
    " union all select 1",
    " order by 1 asc",
    " by ",
    "select ",
    " from t",
    " join ",
    "with x as (",
    " recursive ",
    "insert into t values (1), (2)",
    "update t set ",
    "delete from ",
    " using ",
    "create table t like ",
    "create procedure p() ",
    "identified by 'x'",
    " password=",
    "call p(",
    "use d",
    "prepare s from '",
    "explain format=",
    " between 1 and 2",
    " case when ",
    " end ",
    " for update of ",
    "/*a.b:1/2*/",
];
/// Bytes of a usual input at most.
const USUAL: usize = 2000;
/// Bytes of the few long ones, which show what is not linear.
const LONG: usize = 64 * 1024;
/// One in so many is long.
const LONG_EVERY: usize = 5000;

/// Makes inputs; one at a time.
pub(crate) struct Inputs {
    seed: u64,
    corpus: Vec<&'static [u8]>,
    sql: Vec<u8>,
}

impl Inputs {
    pub(crate) fn new(seed: u64) -> Self {
        let lines = DIGESTS.lines().chain(FINGERPRINTS.lines());
        let lines = lines.filter(|line| !line.starts_with("# "));
        // Digest texts are input as well.
        let corpus = lines.flat_map(|line| line.split('\t')).filter(|field| field.len() > 1);
        Inputs { seed, corpus: corpus.map(str::as_bytes).collect(), sql: Vec::new() }
    }

    /// The input of a number: always the same for one seed.
    pub(crate) fn input(&mut self, number: u64) -> &[u8] {
        // Two rounds of the generator part the sequences of neighbouring numbers.
        let mut random = Random::seeded(Random::seeded(self.seed).bits() ^ number);
        let mut random = Random::seeded(random.bits());
        self.sql.clear();
        if random.below(10) == 0 {
            let length = random.below(300);
            // All bytes, or those of text.
            let (low, span) = if random.coin() { (0, 256) } else { (0x20, 0x5f) };
            self.sql.extend((0..length).map(|_| (low + random.below(span)) as u8));
        } else {
            let statement = self.statement(&mut random);
            self.sql.extend_from_slice(statement);
            for _ in 0..random.below(7) {
                self.mutate(&mut random);
            }
        }
        if random.below(LONG_EVERY) == 0 {
            self.lengthen(&mut random);
        }
        &self.sql
    }

    fn statement(&self, random: &mut Random) -> &'static [u8] {
        self.corpus[random.below(self.corpus.len())]
    }

    /// A place of the input and one behind it, mostly near.
    fn range(&self, random: &mut Random) -> (usize, usize) {
        let from = random.below(self.sql.len() + 1);
        let most = if random.coin() { 8 } else { self.sql.len() };
        (from, (from + random.below(most + 1)).min(self.sql.len()))
    }

    fn mutate(&mut self, random: &mut Random) {
        let (from, to) = self.range(random);
        match random.below(8) {
            0 if from < self.sql.len() => self.sql[from] = random.below(256) as u8,
            1 => drop(self.sql.drain(from..to)),
            2 => self.sql.truncate(from),
            3 => {
                let copied = self.sql[from..to].to_vec();
                let at = random.below(self.sql.len() + 1);
                self.insert(at, &copied);
            }
            4 => {
                let other = self.statement(random);
                let part = random.below(other.len() + 1);
                self.insert(from, if random.coin() { &other[..part] } else { &other[part..] });
            }
            5 if from < self.sql.len() => self.sql[from] ^= 1 << random.below(8),
            _ => self.insert(from, PIECES[random.below(PIECES.len())].as_bytes()),
        }
        self.sql.truncate(USUAL);
    }

    fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.sql.splice(at..at, bytes.iter().copied());
    }

    /// Repeats a part of the input, or a piece, very often.
    fn lengthen(&mut self, random: &mut Random) {
        let (from, to) = self.range(random);
        let piece = PIECES[random.below(PIECES.len())].as_bytes();
        let mut part = if random.coin() { self.sql[from..to].to_vec() } else { piece.to_vec() };
        if part.is_empty() {
            part.push(b'(');
        }
        let times = (LONG - self.sql.len()) / part.len();
        self.insert(from, &part.repeat(times));
    }
}
