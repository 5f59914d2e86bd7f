//! A trial of what looking costs: a coin decides, statement by statement, what is collected, and the processor time of
//! the server's thread is counted by that.
//!
//! `README.md` in this folder has the method, its price and its blind spots.

mod skeleton;

use std::mem::offset_of;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libbpf_rs::{Link, MapCore, MapHandle, Object};
use waggle_model::{Arm, Collector, Times, Tossed, Trial};

use crate::carrier::{self, Carrier, CarrierError, Mapped, Plan, TRIAL_MAPS, kernel_error};
use skeleton::types;

const WHAT: &str = "the program of the trial";
const SWITCHES: &str = "on_turn";
const BUCKETS: usize = size_of::<types::times>() / size_of::<types::bucket>();
/// No random number of 32 bits is as high.
const NEVER: u64 = 1 << 32;

/// The trial, where one is asked for.
#[derive(Default)]
pub(crate) struct Probe {
    trial: Option<Trial>,
    loaded: Option<Loaded>,
}

struct Loaded {
    object: Object,
    link: Option<Link>,
    tosses: Tosses,
}

/// What a trial counts, as it goes on.
#[derive(Clone)]
pub struct Tosses {
    memory: Rc<Mapped>,
    arms: usize,
}

impl Probe {
    /// One that runs this trial.
    pub(crate) fn new(trial: Option<Trial>) -> Probe {
        Probe { trial, loaded: None }
    }

    /// Makes what the programs need that serve servers by this plan; gives the plan for them.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub(crate) fn prepare(
        &mut self,
        carrier: &mut Carrier,
        plan: Plan,
    ) -> Result<Plan, CarrierError> {
        let Some(trial) = &self.trial else { return Ok(plan) };
        let plan = plan.with_trial();
        if self.loaded.is_none() {
            let mut open = carrier::open(skeleton::OBJECT, WHAT)?;
            carrier.prepare(&mut open, &plan, 0)?;
            let object = open.load().map_err(kernel_error("loading the program of the trial"))?;
            let mut maps = Vec::new();
            for name in TRIAL_MAPS {
                let map = object.maps().find(|map| map.name() == name);
                let map =
                    map.ok_or(CarrierError::Kernel { what: name, why: "no such map".into() })?;
                maps.push((name, MapHandle::try_from(&map).map_err(kernel_error(WHAT))?));
            }
            let tosses = Tosses::begin(&maps[1].1, trial)?;
            carrier.share(maps);
            self.loaded = Some(Loaded { object, link: None, tosses });
        }
        Ok(plan)
    }

    /// Begins to count, now that all other programs are attached: what they do when a thread leaves the processor is done
    /// before this one looks at the clock.
    ///
    /// # Errors
    ///
    /// The kernel has no such tracepoint.
    pub(crate) fn attach(&mut self) -> Result<(), CarrierError> {
        let Some(loaded) = self.loaded.as_mut().filter(|loaded| loaded.link.is_none()) else {
            return Ok(());
        };
        let program = carrier::program(&loaded.object, SWITCHES)?;
        let link = program.attach().map_err(kernel_error("tracepoint sched:sched_switch"))?;
        loaded.link = Some(link);
        Ok(())
    }

    /// What it counts; `None` without a trial that has begun.
    pub(crate) fn tosses(&self) -> Option<Tosses> {
        self.loaded.as_ref().map(|loaded| loaded.tosses.clone())
    }
}

impl Tosses {
    fn begin(map: &MapHandle, trial: &Trial) -> Result<Tosses, CarrierError> {
        let failed = |error: std::io::Error| CarrierError::Kernel {
            what: "the counters of the trial",
            why: error.to_string(),
        };
        let memory = Mapped::new(map.as_fd(), size_of::<types::trial>()).map_err(failed)?;
        let tosses = Tosses { memory: Rc::new(memory), arms: trial.arms.len() };
        let mut before = 0.0;
        for place in 0..Trial::ARMS_MAX {
            let arm = trial.arms.get(place);
            let from = arm.map_or(NEVER, |_| (before * NEVER as f64) as u64);
            before += arm.map_or(0.0, |arm| arm.share);
            let at = offset_of!(types::trial, from) + 8 * place;
            tosses.number(at).store(from, Ordering::Relaxed);
            let at = offset_of!(types::trial, collectors) + 4 * place;
            tosses.half(at).store(arm.map_or(0, bits_of), Ordering::Relaxed);
        }
        let at = offset_of!(types::trial, inject_ns);
        tosses.number(at).store(trial.inject_ns, Ordering::Relaxed);
        Ok(tosses)
    }

    /// Ends the trial: from now on nothing is collected or counted. What was collected before is still to be read.
    pub fn end(&self) {
        self.half(offset_of!(types::trial, is_over)).store(1, Ordering::Relaxed);
    }

    /// What it has counted so far.
    pub fn read(&self) -> Tossed {
        let processor = offset_of!(types::trial, processor);
        let latency = offset_of!(types::trial, latency);
        let row = |first: usize, row: usize| self.times(first + row * size_of::<types::times>());
        let of_arm = |before: usize, arm| row(processor, before * Trial::ARMS_MAX + arm);
        let load = |offset| self.number(offset).load(Ordering::Relaxed);
        Tossed {
            processor: (0..self.arms)
                .map(|before| (0..self.arms).map(|arm| of_arm(before, arm)).collect())
                .collect(),
            latency: (0..self.arms).map(|arm| row(latency, arm)).collect(),
            injected_ns: (0..self.arms)
                .map(|arm| load(offset_of!(types::trial, injected_ns) + 8 * arm))
                .collect(),
        }
    }

    fn times(&self, offset: usize) -> Times {
        let bucket = |place: usize| {
            let at = offset + place * size_of::<types::bucket>();
            let load = |offset| self.number(at + offset).load(Ordering::Relaxed);
            let count = load(offset_of!(types::bucket, count));
            (count, load(offset_of!(types::bucket, sum_ns)))
        };
        Times { buckets: (0..BUCKETS).map(bucket).filter(|(count, _)| *count > 0).collect() }
    }

    fn number(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the mapping and aligned, as an offset of a member is; the kernel changes it with atomic
        // instructions, and it lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.memory.at(offset).as_ptr().cast()) }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as in `number`.
        unsafe { AtomicU32::from_ptr(self.memory.at(offset).as_ptr().cast()) }
    }
}

/// As `COLLECT_…` of `shared.h`.
fn bits_of(arm: &Arm) -> u32 {
    let bit = |collector: &Collector| match collector {
        Collector::Statements => 1,
        Collector::Texts => 2,
        Collector::Waits => 4,
        Collector::Injected => 8,
    };
    arm.collectors.iter().map(bit).fold(0, |bits, bit| bits | bit)
}
