//! What a trial has shown by digest.

use std::collections::BTreeMap;

use waggle_model::{ShapeTimes, Times};

use crate::Price;

/// The statements whose texts begin alike, by their digests.
#[derive(Clone, Debug, PartialEq)]
pub struct DigestPrice<K> {
    /// The digests that were met among them: one, if nothing else begins alike.
    pub digests: Vec<K>,
    /// How many statements there were.
    pub statements: u64,
    /// Their processor time, nanoseconds.
    pub used_ns: u64,
    /// From the first arm of the trial to its last; `None` where there were too few.
    pub price: Option<Price>,
}

/// The price by digest. The one that used the processors most comes first. `digests_of` says in order which digests were met of
/// a shape; shapes without any are left out.
pub fn by_digest<K: Ord>(
    shapes: &[ShapeTimes],
    digests_of: impl Fn(u64) -> Vec<K>,
) -> Vec<DigestPrice<K>> {
    let mut alike: BTreeMap<Vec<K>, Vec<&ShapeTimes>> = BTreeMap::new();
    for shape in shapes {
        alike.entry(digests_of(shape.shape)).or_default().push(shape);
    }
    alike.retain(|digests, _| !digests.is_empty());
    let mut prices: Vec<_> =
        alike.into_iter().map(|(digests, shapes)| price(digests, &shapes)).collect();
    prices.sort_by_key(|price| std::cmp::Reverse(price.used_ns));
    prices
}

fn price<K>(digests: Vec<K>, shapes: &[&ShapeTimes]) -> DigestPrice<K> {
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
    fn shapes_of_one_digest_are_one_and_what_nobody_knows_is_left_out() {
        let shape = |shape, count, base| ShapeTimes {
            shape,
            processor: vec![times(base, count), times(base + 500, count)],
        };
        let shapes =
            [shape(1, 500, 9_000), shape(2, 300, 9_000), shape(3, 200, 40_000), shape(4, 9, 9)];
        let digests_of = |shape| match shape {
            1 | 2 => vec!["a"],
            3 => vec!["b", "c"],
            _ => vec![],
        };
        let found = by_digest(&shapes, digests_of);
        let of = |price: &DigestPrice<&'static str>| (price.digests.clone(), price.statements);
        let all: Vec<_> = found.iter().map(of).collect();
        assert_eq!(all, [(vec!["b", "c"], 400), (vec!["a"], 1_600)]);
        let prices: Vec<_> = found.iter().map(|price| price.price.unwrap().ns).collect();
        assert_eq!(prices, [500.0, 500.0]);
        assert_eq!(found[1].used_ns, 800 * 9_000 + 800 * 9_500);
    }
}
