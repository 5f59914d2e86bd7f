//! One effect from several places that share their blocks.

use std::collections::BTreeMap;

/// The mean effect over places in each block, in the order of the blocks: one number for each unit that is
/// independent of the others (Matthews et al., "Analysis of serial measurements in medical research",
/// British Medical Journal 1990). What is common to all places of a block, such as the start of a
/// server, stays in these numbers, where an interval over places would leave it out.
///
/// Each place is given by its effects with their blocks, and has the same weight. Where a place lacks a
/// block, its own mean stands in for it, so that blocks do not differ by what they lack. A block that half of
/// the places lack, or more, is left out: it would be made of means for the most part, and such a number is too
/// near to the others. `None` without places, or where one has no effect or one that is not finite.
pub fn block_means(places: &[&[(u32, f64)]]) -> Option<Vec<f64>> {
    let means: Option<Vec<f64>> = places.iter().map(|place| mean_of(place)).collect();
    let means = means.filter(|means| !means.is_empty())?;
    let of_all = means.iter().sum::<f64>() / means.len() as f64;
    let mut blocks: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for (place, mean) in places.iter().zip(&means) {
        for (block, effect) in *place {
            let (count, apart) = blocks.entry(*block).or_default();
            *count += 1;
            *apart += effect - mean;
        }
    }
    blocks.retain(|_, (count, _)| *count * 2 > places.len());
    Some(blocks.into_values().map(|(_, apart)| of_all + apart / means.len() as f64).collect())
}

fn mean_of(place: &[(u32, f64)]) -> Option<f64> {
    let mean = place.iter().map(|(_, effect)| effect).sum::<f64>() / place.len() as f64;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn nothing_has_no_mean() {
        assert_eq!(block_means(&[]), None);
        assert_eq!(block_means(&[&[(0, 1.0)], &[]]), None);
        assert_eq!(block_means(&[&[(0, f64::NAN)]]), None);
    }
}
