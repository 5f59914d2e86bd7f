//! Arms take turns in a random order.

use std::time::Duration;

use waggle_host::thread_cpu_ns;
use waggle_stats::Random;

/// Makes blocks of every arm, in rounds of random order, so that a drift of the machine meets all of them. Each round has
/// a block of every arm that `wants` another one by what it has; `make` returns none where a block is void. There are
/// `most` rounds at most.
///
/// # Errors
/// What `make` says.
pub fn rounds<B, E>(
    arms: usize,
    most: usize,
    random: &mut Random,
    wants: impl Fn(usize, &[B]) -> bool,
    mut make: impl FnMut(usize, &mut Random) -> Result<Option<B>, E>,
) -> Result<Vec<Vec<B>>, E> {
    let mut blocks: Vec<Vec<B>> = (0..arms).map(|_| Vec::new()).collect();
    for _ in 0..most {
        let mut turns: Vec<usize> = (0..arms).filter(|arm| wants(*arm, &blocks[*arm])).collect();
        random.shuffle(&mut turns);
        for arm in turns {
            blocks[arm].extend(make(arm, random)?);
        }
    }
    Ok(blocks)
}

/// Processor time of the calling thread.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn void_blocks_are_made_again_and_not_for_ever() {
        let (mut random, mut made) = (Random::seeded(1), [0, 0]);
        let wants = |_: usize, blocks: &[usize]| blocks.len() < 3;
        // The first arm has a void block in its first round, the second one always.
        let blocks = rounds::<usize, ()>(2, 5, &mut random, wants, |arm, _| {
            made[arm] += 1;
            Ok((arm == 0 && made[arm] > 1).then_some(made[arm]))
        });
        assert_eq!(blocks.unwrap(), [vec![2, 3, 4], vec![]]);
        assert_eq!(made, [4, 5]);
    }
}
