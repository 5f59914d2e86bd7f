//! Which digests the texts have that begin alike.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use waggle_account::{Digests, Grouping};
use waggle_model::{DigestKey, DigestName, Server, ShapeTimes, Statement, Times, Tossed};
use waggle_observe::StatementSink;
use waggle_probes::coin::shape_of;
use waggle_prove::{DigestPrice, by_digest};

/// How many digests get a row.
const SHOWN_MAX: usize = 10;
/// How many shapes are remembered: many more than the kernel has room for, so that each of its shapes is among them.
const SHAPES_MAX: usize = 4096;
/// To make a digest costs much more than a shape: it is made of the first statements of a shape, then of one in `ONE_OF`.
const FIRST: u64 = 16;
const ONE_OF: u64 = 64;
/// So many digests of one shape are told apart.
const DIGESTS_MAX: usize = 8;

/// The digests that were met, by the shapes of their texts.
pub(super) struct Met {
    digests: Digests,
    shapes: HashMap<u64, Shape>,
    names: BTreeMap<DigestKey, DigestName>,
}

#[derive(Default)]
struct Shape {
    statements: u64,
    /// Only cut texts were met.
    is_cut: bool,
    met: BTreeSet<DigestKey>,
}

/// The price of the busiest digests.
pub(super) struct ByDigest {
    /// Each with what its digests are called.
    pub(super) rows: Vec<(DigestPrice<DigestKey>, Vec<DigestName>)>,
    /// Statements of other digests, of none, or of several in one request.
    pub(super) others: u64,
    /// Those of them whose texts begin in too many ways.
    pub(super) without_room: u64,
}

impl Met {
    /// Nothing yet, of this server.
    pub(super) fn of(server: &Server) -> Met {
        let digests = Digests::of(server, Grouping::Digest);
        Met { digests, shapes: HashMap::new(), names: BTreeMap::new() }
    }

    /// What a trial has shown of them.
    pub(super) fn price(&self, tossed: &Tossed, shapes: &[ShapeTimes]) -> ByDigest {
        let digests_of =
            |shape| self.shapes.get(&shape).map_or(BTreeSet::new(), |shape| shape.met.clone());
        let mut prices = by_digest(shapes, digests_of);
        prices.truncate(SHOWN_MAX);
        let all: u64 = tossed.processor.iter().flatten().map(Times::count).sum();
        let shown: u64 = prices.iter().map(|price| price.statements).sum();
        let named = |price: DigestPrice<DigestKey>| {
            let names = price.digests.iter().filter_map(|digest| self.names.get(digest));
            let names = names.cloned().collect();
            (price, names)
        };
        ByDigest {
            rows: prices.into_iter().map(named).collect(),
            others: all.saturating_sub(shown),
            without_room: tossed.without_room,
        }
    }
}

impl StatementSink for Met {
    fn ended(&mut self, statement: &Statement<'_>) {
        let Some(text) = statement.text.filter(|text| !text.bytes.is_empty()) else { return };
        let Met { digests, shapes, names } = self;
        let place = shape_of(text.bytes);
        if shapes.len() >= SHAPES_MAX && !shapes.contains_key(&place) {
            return;
        }
        let shape = shapes.entry(place).or_default();
        shape.statements += 1;
        if shape.statements > FIRST && !shape.statements.is_multiple_of(ONE_OF) {
            return;
        }
        // A cut text names it only as long as no whole one does.
        match (text.is_truncated(), shape.is_cut || shape.met.is_empty()) {
            (true, false) => return,
            (false, true) => shape.met.clear(),
            _ => {}
        }
        shape.is_cut = text.is_truncated();
        let (key, name) = digests.digest(statement);
        if shape.met.len() < DIGESTS_MAX && shape.met.insert(key) {
            names.entry(key).or_insert_with(name);
        }
    }
}
