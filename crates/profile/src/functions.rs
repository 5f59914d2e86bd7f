//! How much each function used.

use std::collections::HashMap;

use crate::profile::{Profile, Stack};

/// What a function used, in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// An index into [`Profile::functions`].
    pub function: usize,
    /// The function itself.
    pub itself: u64,
    /// With all that it called.
    pub total: u64,
    /// For a function without a name: the one with a name that most often is the nearest above it.
    pub caller: Option<usize>,
}

impl Profile {
    /// What every function used, those that used the most themselves first.
    pub fn used(&self) -> Vec<Used> {
        let mut used: HashMap<usize, Used> = HashMap::new();
        for stack in &self.stacks {
            let mut seen = stack.functions.clone();
            seen.sort_unstable();
            seen.dedup();
            for function in seen {
                entry(&mut used, function).total += stack.count;
            }
            if let Some(innermost) = stack.functions.last() {
                entry(&mut used, *innermost).itself += stack.count;
            }
        }
        let callers = self.callers();
        let mut all: Vec<Used> = used.into_values().collect();
        for one in &mut all {
            one.caller = callers.get(&one.function).copied();
        }
        all.sort_unstable_by_key(|one| {
            (std::cmp::Reverse(one.itself), std::cmp::Reverse(one.total), one.function)
        });
        all
    }

    fn is_named(&self, function: usize) -> bool {
        self.functions.get(function).is_some_and(|function| function.is_named)
    }

    /// The most frequent nearest named caller of each function without a name.
    fn callers(&self) -> HashMap<usize, usize> {
        let mut counts: HashMap<(usize, usize), u64> = HashMap::new();
        for Stack { functions, count, .. } in &self.stacks {
            for (at, function) in functions.iter().enumerate() {
                if self.is_named(*function) {
                    continue;
                }
                let above = functions.iter().take(at).rev().find(|above| self.is_named(**above));
                if let Some(above) = above {
                    *counts.entry((*function, *above)).or_default() += count;
                }
            }
        }
        let mut best: HashMap<usize, (u64, usize)> = HashMap::new();
        for ((function, above), count) in counts {
            let known = best.entry(function).or_insert((count, above));
            // Of two that are as frequent, the one that was met first.
            if (count, std::cmp::Reverse(above)) > (known.0, std::cmp::Reverse(known.1)) {
                *known = (count, above);
            }
        }
        best.into_iter().map(|(function, (_, above))| (function, above)).collect()
    }
}

fn entry(used: &mut HashMap<usize, Used>, function: usize) -> &mut Used {
    let none = Used { function, itself: 0, total: 0, caller: None };
    used.entry(function).or_insert(none)
}
