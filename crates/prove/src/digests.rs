//! What a trial has shown by digest.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use waggle_model::{ShapeTimes, Times};

use crate::Price;

/// The statements of a digest, or of several that cannot be told apart.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestPrice<K> {
    /// The digests that were met among them: one, if no other was seen to begin alike.
    pub digests: BTreeSet<K>,
    /// How many statements there were.
    pub statements: u64,
    /// Their processor time, nanoseconds.
    pub used_ns: u64,
    /// From the first arm of the trial to its last; `None` where there were too few.
    pub price: Option<Price>,
}

/// The prices of the digests; the one that used the processors most comes first.
///
/// `digests_of` says which digests were met among the texts of a shape. A shape of which none was met is left out. Shapes that
/// share a digest are one row: it cannot be told which of the digests their statements had.
pub fn by_digest<K: Ord>(
    shapes: &[ShapeTimes],
    digests_of: impl Fn(u64) -> BTreeSet<K>,
) -> Vec<DigestPrice<K>> {
    let mut groups: Vec<(BTreeSet<K>, Vec<&ShapeTimes>)> = Vec::new();
    for shape in shapes {
        let mut group = (digests_of(shape.shape), vec![shape]);
        if group.0.is_empty() {
            continue;
        }
        groups.retain_mut(|other| {
            let is_apart = other.0.is_disjoint(&group.0);
            if !is_apart {
                group.0.append(&mut other.0);
                group.1.append(&mut other.1);
            }
            is_apart
        });
        groups.push(group);
    }
    let mut prices: Vec<_> =
        groups.into_iter().map(|(digests, shapes)| price(digests, &shapes)).collect();
    prices.sort_by_key(|price| Reverse(price.used_ns));
    prices
}

fn price<K>(digests: BTreeSet<K>, shapes: &[&ShapeTimes]) -> DigestPrice<K> {
    let arms = shapes.iter().map(|shape| shape.processor.len()).max().unwrap_or(0);
    let of_arm = |arm| Times::sum(shapes.iter().filter_map(|shape| shape.processor.get(arm)));
    let arms: Vec<Times> = (0..arms).map(of_arm).collect();
    let used_ns = |times: &Times| times.buckets.iter().map(|bucket| bucket.sum_ns).sum::<u64>();
    let ends = arms.first().zip(arms.last());
    DigestPrice {
        digests,
        statements: arms.iter().map(Times::count).sum(),
        used_ns: arms.iter().map(used_ns).sum(),
        price: ends.and_then(|(first, last)| Price::between(first, last)),
    }
}

#[cfg(test)]
mod tests {
    use waggle_model::Bucket;

    use super::*;

    fn times(ns: u64, count: u64) -> Times {
        Times { buckets: vec![Bucket { place: ns as u16, count, sum_ns: ns * count }] }
    }

    #[test]
    fn shapes_that_share_a_digest_are_one_and_what_nobody_knows_is_left_out() {
        let shape = |shape, count, base| ShapeTimes {
            shape,
            processor: vec![times(base, count), times(base + 500, count)],
        };
        let shapes = [
            shape(1, 500, 9_000),
            shape(2, 300, 9_000),
            shape(3, 200, 40_000),
            shape(4, 9, 9),
            shape(5, 100, 40_000),
            shape(6, 100, 40_000),
        ];
        let digests_of = |shape| match shape {
            1 | 2 => BTreeSet::from(["a"]),
            3 => BTreeSet::from(["b"]),
            4 => BTreeSet::new(),
            5 => BTreeSet::from(["c"]),
            _ => BTreeSet::from(["b", "c"]),
        };
        let found = by_digest(&shapes, digests_of);
        let of = |price: &DigestPrice<&'static str>| {
            (price.digests.iter().copied().collect::<String>(), price.statements)
        };
        let all: Vec<_> = found.iter().map(of).collect();
        assert_eq!(all, [("bc".to_owned(), 800), ("a".to_owned(), 1_600)]);
        let prices: Vec<_> = found.iter().map(|price| price.price.unwrap().ns).collect();
        assert_eq!(prices, [500.0, 500.0]);
        assert_eq!(found[1].used_ns, 800 * 9_000 + 800 * 9_500);
    }
}
