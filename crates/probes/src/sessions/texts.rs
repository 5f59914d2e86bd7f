//! How long texts may be where all texts of a look are too long together.

use super::read::{Doing, Seen};

/// The most bytes of a text, so that texts of these lengths fit into a budget: short ones stay whole,
/// and long ones share equally what is left. `u64::MAX` where all of them fit.
pub(super) fn longest(mut lengths: Vec<u64>, budget: u64) -> u64 {
    if lengths.iter().sum::<u64>() <= budget {
        return u64::MAX;
    }
    lengths.sort_unstable();
    let mut left = budget;
    for (shorter, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - shorter) as u64;
        if *length > share {
            return share;
        }
        left -= length;
    }
    u64::MAX
}

/// The lengths of texts that were read at an earlier look.
pub(super) fn lengths(seen: &[Seen]) -> impl Iterator<Item = u64> {
    let text = |seen: &Seen| match &seen.doing {
        Doing::Running(statement) => Some(statement.text.as_ref()?.len() as u64),
        _ => None,
    };
    seen.iter().filter_map(text)
}

/// Cuts texts that were read at an earlier look. Their true length stays, and tells that they are cut.
pub(super) fn cut(seen: &mut [Seen], longest: u64) {
    for seen in seen {
        if let Doing::Running(statement) = &mut seen.doing
            && let Some(text) = &mut statement.text
            && text.len() as u64 > longest
        {
            text.truncate(longest as usize);
            text.shrink_to_fit();
        }
    }
}
