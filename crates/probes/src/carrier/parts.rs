//! What a record says of where the time of its statement went.

use waggle_model::{Parts, TimeClass, Usage};

use super::record::SessionData;

/// `PARTS` and `enum part_extra` of `shared.h`. From this class on the kernel has no number of its own.
const PARTS: usize = TimeClass::BeforeAttach as usize;
const SINCE: usize = PARTS;
const QUEUE_BEFORE: usize = PARTS + 1;
const AFTER_REPLY: usize = PARTS + 2;
const READ_BYTES: usize = PARTS + 3;
const WRITTEN_BYTES: usize = PARTS + 4;
const MINOR_FAULTS: usize = PARTS + 5;
const MAJOR_FAULTS: usize = PARTS + 6;
const SWITCHES: usize = PARTS + 7;
const WORDS: usize = PARTS + 8;

/// The clocks that the whole and the parts are taken from may differ so much: by a part of the whole (they may run apart by
/// 0.05 %), and by the reading of two clocks, nanoseconds.
const CLOCKS_APART: u64 = 1000;
const READINGS_APART_NS: u64 = 20_000;

/// The time of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// Their sum is the latency.
    pub(crate) parts: Parts,
    pub(crate) usage: Usage,
    /// What the thread worked after the reply before.
    pub(crate) after_reply_before_ns: Option<u64>,
    /// Whether more time was counted than there was.
    pub(crate) is_overdrawn: bool,
}

/// How the latency of a statement is split; `None` where that is not known.
pub(crate) fn split_of(reply: &SessionData<'_>, latency_ns: u64) -> Option<Split> {
    let (mask, words) = words_of(reply.parts)?;
    let mut parts = Parts::default();
    let start_ns = reply.head.end_ns.saturating_sub(latency_ns);
    let before_ns = match words[SINCE] {
        0 => 0,
        since => since.saturating_sub(start_ns).min(latency_ns),
    };
    parts.add(TimeClass::BeforeAttach, before_ns);
    // Most statements waited for nothing, or for one thing.
    for (bit, class) in TimeClass::ALL.into_iter().enumerate().take(PARTS).skip(1) {
        if mask >> bit & 1 == 1 {
            parts.add(class, words[bit]);
        }
    }
    let off = parts.total();
    let mut is_overdrawn = false;
    if off <= latency_ns {
        parts.add(TimeClass::Cpu, latency_ns - off);
    } else {
        let excess = off - latency_ns;
        let is_apart = excess <= latency_ns / CLOCKS_APART + READINGS_APART_NS;
        // What was before is known by another clock, and to a tick.
        is_overdrawn = !is_apart && before_ns == 0;
        parts = cut(&parts, excess);
    }
    let half = |bits: u64| bits & u64::from(u32::MAX);
    let usage = Usage {
        queue_before_start_ns: words[QUEUE_BEFORE],
        read_bytes: words[READ_BYTES],
        written_bytes: words[WRITTEN_BYTES],
        major_faults: words[MAJOR_FAULTS],
        minor_faults: words[MINOR_FAULTS],
        voluntary_switches: half(words[SWITCHES]),
        involuntary_switches: half(words[SWITCHES] >> 32),
    };
    let after_reply_before_ns = Some(words[AFTER_REPLY]).filter(|ns| *ns > 0);
    Some(Split { parts, usage, after_reply_before_ns, is_overdrawn })
}

/// The mask of the words in a record, and all words. A record leaves out words that are 0.
fn words_of(bytes: &[u8]) -> Option<(u64, [u64; WORDS])> {
    let mut told = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let mask = told.next()? & ((1 << WORDS) - 1);
    let mut words = [0; WORDS];
    let mut left = mask;
    while let Some(word) = words.get_mut(left.trailing_zeros() as usize) {
        *word = told.next()?;
        left &= left - 1;
    }
    Some((mask, words))
}

/// The parts less an excess, taken from the largest ones.
fn cut(parts: &Parts, mut excess: u64) -> Parts {
    let mut by_size = TimeClass::ALL;
    by_size.sort_by_key(|class| std::cmp::Reverse(parts.get(*class)));
    let mut left = Parts::default();
    for class in by_size {
        let taken = parts.get(class).min(excess);
        excess -= taken;
        left.add(class, parts.get(class) - taken);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_of_both_halves_are_the_same() {
        let shared = include_str!("shared.h");
        let told = |class: &TimeClass| {
            let line = format!("PART_{} = {},", class.key().to_uppercase(), *class as usize);
            shared.contains(&line)
        };
        let missing: Vec<TimeClass> =
            TimeClass::ALL.into_iter().filter(|class| !told(class)).collect();
        // What the others leave, and what only user space knows.
        assert_eq!(missing, [TimeClass::Cpu, TimeClass::Parked, TimeClass::BeforeAttach]);
        assert!(shared.contains(&format!("PARTS = {PARTS},")));
    }

    #[test]
    fn words_that_are_not_there_are_zero_and_a_cut_list_is_none() {
        let told = [1 << 9 | 1 << SWITCHES, 500, 3_u64 << 32 | 7];
        let bytes: Vec<u8> = told.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (mask, words) = words_of(&bytes).unwrap();
        assert_eq!(mask, told[0]);
        assert_eq!((words[9], words[SWITCHES], words[1]), (500, 3 << 32 | 7, 0));
        assert!((0..bytes.len()).all(|end| words_of(&bytes[..end]).is_none()));
    }

    #[test]
    fn an_excess_is_taken_from_the_largest_parts() {
        let mut parts = Parts::default();
        parts.add(TimeClass::RowLock, 100);
        parts.add(TimeClass::Sync, 30);
        assert_eq!(cut(&parts, 110).total(), 20);
        assert_eq!(cut(&parts, 110).get(TimeClass::Sync), 20);
        assert_eq!(cut(&parts, 1000).total(), 0);
    }
}
