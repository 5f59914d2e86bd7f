//! One effect from several cells that share their blocks.

use std::collections::BTreeMap;

/// The mean effect over places in each block, in the order of the blocks: one number for each unit that is
/// independent of the others (Matthews et al., "Analysis of serial measurements in medical research",
/// British Medical Journal 1990). What is common to all places of a block, such as the start of a
/// server, stays in these numbers, where an interval over places would leave it out.
///
/// Each place is given by its effects with their blocks, and has the same weight. Where a place lacks a
/// block, its own mean stands in for it, so that blocks do not differ by what they lack; how far its other effects
/// are from that mean counts for more by so much, so that the spread of the blocks stays what the effects that
/// are there say. A block that half of the places lack, or more, is left out. `None` without places, or where one
/// has no effect in the blocks that are left, or one that is not finite.
pub fn block_means(places: &[&[(u32, f64)]]) -> Option<Vec<f64>> {
    let mut having: BTreeMap<u32, usize> = BTreeMap::new();
    places.iter().copied().flatten().for_each(|(block, _)| *having.entry(*block).or_default() += 1);
    having.retain(|_, places_with_it| *places_with_it * 2 > places.len());
    let mut blocks: BTreeMap<u32, f64> = having.into_keys().map(|block| (block, 0.0)).collect();
    let mut of_all = 0.0;
    for place in places {
        let there: Vec<&(u32, f64)> =
            place.iter().filter(|(block, _)| blocks.contains_key(block)).collect();
        let mean = there.iter().map(|(_, effect)| effect).sum::<f64>() / there.len() as f64;
        of_all += mean / places.len() as f64;
        let more = blocks.len() as f64 / there.len() as f64 / places.len() as f64;
        for (block, effect) in there {
            *blocks.entry(*block).or_default() += more * (effect - mean);
        }
    }
    let is_known = !places.is_empty() && of_all.is_finite();
    is_known.then(|| blocks.into_values().map(|apart| of_all + apart).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean_interval;

    #[test]
    fn what_is_common_to_the_places_of_a_block_stays() {
        let [one, two] = [[(0, 1.0), (1, 3.0)], [(0, 5.0), (1, 7.0)]];
        assert_eq!(block_means(&[&one, &two]), Some(vec![3.0, 5.0]));
    }

    #[test]
    fn a_block_that_a_place_lacks_is_not_judged_by_the_others_alone() {
        let whole = [(0, 1.0), (1, 3.0), (2, 2.0)];
        let part = [(0, 11.0), (2, 11.0)];
        let [low, high] = [0.0, 3.0].map(|effect| [0, 1, 2].map(|block| (block, effect)));
        assert_eq!(block_means(&[&whole, &part, &low, &high]), Some(vec![3.75, 4.25, 4.0]));
    }

    #[test]
    fn a_block_that_most_places_lack_does_not_count() {
        let whole = [(0, 1.0), (1, 3.0)];
        let more = [(0, 1.0), (1, 3.0), (2, 2.0)];
        let two = [(0, 1.0), (1, 3.0)];
        assert_eq!(block_means(&[&whole, &more, &two]), Some(vec![1.0, 3.0]));
        assert_eq!(block_means(&[&more, &more, &two]).map(|means| means.len()), Some(3));
    }

    #[test]
    fn blocks_that_a_place_lacks_do_not_make_the_mean_surer_than_it_is() {
        let still: Vec<(u32, f64)> = (0..8).map(|block| (block, 0.0)).collect();
        let part: Vec<(u32, f64)> =
            (0..6).map(|block| (block, if block % 2 == 0 { 0.06 } else { -0.06 })).collect();
        let means = block_means(&[&still, &still, &part]).unwrap();
        let error = mean_interval(&means, 0.95).unwrap().error;
        // That of the place alone, by 3: 0.06 · √(6 / 5) / √6 / 3.
        assert!((error / 0.00894 - 1.0).abs() < 0.05, "{error}");
    }

    #[test]
    fn nothing_has_no_mean() {
        assert_eq!(block_means(&[]), None);
        assert_eq!(block_means(&[&[(0, 1.0)], &[]]), None);
        assert_eq!(block_means(&[&[(0, f64::NAN)]]), None);
    }
}
