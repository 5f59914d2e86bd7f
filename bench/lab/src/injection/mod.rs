//! A cost of known size per statement.

use std::iter::Sum;
use std::ops::Add;

use anyhow::{Context, Result};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};

/// So much may the runs of the program be off the statements, a share: those that are under way at the ends
/// of a window are counted here and not there.
const OFF_MAX: f64 = 0.05;

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/injection.bpf.o"));

/// The program, attached. It is gone when it is dropped.
pub(crate) struct Injection {
    object: Object,
    _link: Link,
    process: u32,
}

/// What the program did since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// How often a thread has been busy for as long as was set: once each time that it began to send.
    pub(crate) count: u64,
    /// How long that was by the clock of the program, ns.
    pub(crate) busy_ns: u64,
}

impl Injection {
    /// Loads and attaches it, without a cost.
    pub(crate) fn attach(process: u32) -> Result<Injection> {
        // Libbpf wants the bytes aligned, which a fresh allocation is.
        let aligned = OBJECT.to_vec();
        let object = ObjectBuilder::default().open_memory(&aligned)?.load();
        let object = object.context("the program that injects a cost cannot be loaded")?;
        let program = object.progs_mut().find(|program| program.name() == "on_send");
        let link = program.context("the object has no program")?.attach();
        let link = link.context("the tracepoint sys_enter")?;
        let injection = Injection { object, _link: link, process };
        injection.set(0)?;
        Ok(injection)
    }

    /// Makes a thread busy for so long each time that it begins to send, ns.
    pub(crate) fn set(&self, busy_ns: u32) -> Result<()> {
        let maps = &mut self.object.maps();
        let bss = maps.find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bss = bss.context("the object has no variables")?;
        let key = 0_u32.to_ne_bytes();
        let mut value = bss.lookup(&key, MapFlags::ANY)?.context("the variables cannot be read")?;
        // `injected` is the only variable of `mod.bpf.c`.
        value[..4].copy_from_slice(&self.process.to_ne_bytes());
        value[4..8].copy_from_slice(&busy_ns.to_ne_bytes());
        bss.update(&key, &value, MapFlags::ANY).context("the variables cannot be set")
    }

    /// What it did so far.
    pub(crate) fn runs(&self) -> Result<Runs> {
        let maps = &mut self.object.maps();
        let runs = maps.find(|map| map.name() == "runs").context("the object has no counter")?;
        let by_processor = runs.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let by_processor = by_processor.context("the counter cannot be read")?;
        let sum: Option<Runs> = by_processor.iter().map(|bytes| Runs::parse(bytes)).sum();
        sum.context("what the program counted has not two numbers of 8 bytes")
    }
}

impl Runs {
    /// Those of one processor.
    fn parse(bytes: &[u8]) -> Option<Runs> {
        let (count, busy_ns) = (bytes.get(..8)?, bytes.get(8..16)?);
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_ne_bytes);
        Some(Runs { count: number(count)?, busy_ns: number(busy_ns)? })
    }

    /// How much longer than each was to be they were in all, ns.
    pub(crate) fn longer_than(self, busy_ns: u32) -> u64 {
        self.busy_ns.saturating_sub(self.count * u64::from(busy_ns))
    }

    /// Those since an earlier look.
    pub(crate) fn since(self, earlier: Runs) -> Runs {
        Runs {
            count: self.count.saturating_sub(earlier.count),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
        }
    }
}

impl Add for Runs {
    type Output = Runs;

    fn add(self, other: Runs) -> Runs {
        Runs { count: self.count + other.count, busy_ns: self.busy_ns + other.busy_ns }
    }
}

impl Sum for Runs {
    fn sum<I: Iterator<Item = Runs>>(all: I) -> Runs {
        all.fold(Runs::default(), Add::add)
    }
}

/// Why a window does not show a cost of known size: the program did not run once a statement in what is named.
/// `runs` are the fewest and the most that there may have been in the window. `None` where it ran.
pub(crate) fn disproof(of: &str, runs: [u64; 2], statements: u64) -> Option<String> {
    let share = |runs: u64| runs as f64 / statements as f64;
    let [fewest, most] = runs;
    let is_active = share(fewest) <= 1.0 + OFF_MAX && share(most) >= 1.0 - OFF_MAX;
    (statements > 0 && !is_active).then(|| {
        format!(
            "the injection ran {fewest} to {most} times in the {of} while {statements} statements ended"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_longer_than_they_were_to_be_by_what_they_took_beyond_that() {
        let runs = Runs { count: 100, busy_ns: 100 * 40_000 + 2_000_000 };
        assert_eq!(runs.longer_than(40_000), 2_000_000);
        // Those under way when that was set anew.
        assert_eq!(runs.longer_than(90_000), 0);
    }

    #[test]
    fn a_window_counts_where_the_program_ran_about_once_a_statement() {
        for runs in [[1000, 1000], [960, 960], [1040, 1040], [900, 1010], [1000, 3000], [0, 960]] {
            assert_eq!(disproof("server", runs, 1000), None, "{runs:?}");
        }
        for runs in [[0, 0], [900, 940], [1060, 1070], [2000, 2000]] {
            let why = disproof("server", runs, 1000).unwrap();
            let said = format!("{} to {} times in the server", runs[0], runs[1]);
            assert!(why.contains(&said), "{why}");
        }
        // The gate of the lab says so.
        assert_eq!(disproof("server", [0, 0], 0), None);
    }
}
