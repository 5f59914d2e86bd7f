//! A trial of what looking costs: a coin decides, statement by statement, what is collected, and the processor time of
//! the server's thread is counted by that.
//!
//! `README.md` in this folder has the method, its price and its blind spots.

mod shape;
mod skeleton;

use std::mem::offset_of;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libbpf_rs::{Link, MapCore, MapHandle, Object};
use waggle_model::{Arm, ArmTimes, Bucket, Chooser, ShapeTimes, Times, Tossed, Trial};

use crate::carrier::{self, Carrier, CarrierError, Mapped, Plan, kernel_error};
pub use shape::shape_of;
use skeleton::types;

const WHAT: &str = "the program of the trial";
const COUNTERS: &str = "the counters of the trial";
const SWITCHES: &str = "on_turn";
const BUCKETS: usize = size_of::<types::times>() / size_of::<types::bucket>();
const TIME_SHIFT: usize = 5;
const TIME_FIRST: usize = 6;
const _: () = assert!(
    BUCKETS == 28 << TIME_SHIFT
        && offset_of!(types::trial, collectors) == 8 * Trial::ARMS_MAX
        && offset_of!(types::trial, latency) - offset_of!(types::trial, processor)
            == Trial::ARMS_MAX * Trial::ARMS_MAX * size_of::<types::times>()
);
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
    memory: Counters,
    shapes: Option<Shapes>,
    arms: usize,
}

/// The shapes that are counted, and how many have room.
#[derive(Clone)]
struct Shapes {
    memory: Counters,
    room: usize,
}

/// Memory in which the kernel counts.
#[derive(Clone)]
struct Counters(Rc<Mapped>);

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
        let plan = plan.with_trial(trial);
        if self.loaded.is_none() {
            let mut open = carrier::open(skeleton::OBJECT, WHAT)?;
            carrier.prepare(&mut open, &plan, 0)?;
            let object = open.load().map_err(kernel_error("loading the program of the trial"))?;
            let mut maps = Vec::new();
            for name in ["coins", "trials", "shapes"].into_iter().filter(|name| plan.needs(name)) {
                let map = carrier::map(&object, name)?;
                maps.push((name, MapHandle::try_from(&map).map_err(kernel_error(WHAT))?));
            }
            let tosses = Tosses::begin(&maps, trial)?;
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
    fn begin(maps: &[(&str, MapHandle)], trial: &Trial) -> Result<Tosses, CarrierError> {
        let map = |name| maps.iter().find(|(map, _)| *map == name).map(|(_, map)| map);
        let none = || CarrierError::Kernel { what: COUNTERS, why: "no map".to_owned() };
        let memory = Counters::of(map("trials").ok_or_else(none)?, size_of::<types::trial>())?;
        let shapes = map("shapes").map(Shapes::of).transpose()?;
        let tosses = Tosses { memory, shapes, arms: trial.arms.len() };
        tosses.end();
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
        tosses.choose(match trial.chooser {
            Chooser::Coin => Trial::ARMS_MAX,
            Chooser::Time => trial.arms.len() - 1,
        });
        let at = offset_of!(types::trial, inject_ns);
        tosses.number(at).store(trial.inject_ns, Ordering::Relaxed);
        Ok(tosses)
    }

    /// Begins the trial. Before, no statement is collected.
    pub fn start(&self) {
        self.half(offset_of!(types::trial, is_over)).store(0, Ordering::Relaxed);
    }

    /// Ends the trial: from now on nothing is collected or counted. What was collected before is still to be read.
    pub fn end(&self) {
        self.half(offset_of!(types::trial, is_over)).store(1, Ordering::Relaxed);
    }

    /// From now on all statements belong to this arm, in a trial in windows. Its last arm has what is between them.
    pub fn choose(&self, arm: usize) {
        self.half(offset_of!(types::trial, window)).fetch_add(1, Ordering::SeqCst);
        self.half(offset_of!(types::trial, chosen)).store(arm as u32, Ordering::SeqCst);
    }

    /// Takes away what an arm has counted so far.
    pub fn take(&self, arm: usize) -> ArmTimes {
        let processor = (0..self.arms).map(|before| self.memory.times(row_of(before, arm), take));
        ArmTimes {
            requests: take(self.number(offset_of!(types::trial, requests) + 8 * arm)),
            processor: Times::sum(&processor.collect::<Vec<_>>()),
            latency: self.memory.times(latency_of(arm), take),
        }
    }

    /// What it has counted so far.
    pub fn read(&self) -> Tossed {
        let injected_ns = |arm| {
            self.number(offset_of!(types::trial, injected_ns) + 8 * arm).load(Ordering::Relaxed)
        };
        let row = |before, arm| self.memory.times(row_of(before, arm), load);
        Tossed {
            processor: (0..self.arms)
                .map(|before| (0..self.arms).map(|arm| row(before, arm)).collect())
                .collect(),
            latency: (0..self.arms).map(|arm| self.memory.times(latency_of(arm), load)).collect(),
            injected_ns: (0..self.arms).map(injected_ns).collect(),
            without_room: load(self.number(offset_of!(types::trial, without_room))),
        }
    }

    /// What it has counted so far of each shape; nothing in a trial without shapes.
    pub fn shapes(&self) -> Vec<ShapeTimes> {
        let all = |shapes: &Shapes| -> Vec<ShapeTimes> {
            (0..shapes.room).filter_map(|place| shapes.memory.shape(place, self.arms)).collect()
        };
        self.shapes.as_ref().map_or(Vec::new(), all)
    }

    fn number(&self, offset: usize) -> &AtomicU64 {
        self.memory.number(offset)
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        self.memory.half(offset)
    }
}

impl Shapes {
    fn of(map: &MapHandle) -> Result<Shapes, CarrierError> {
        let room = map.max_entries() as usize;
        Ok(Shapes { memory: Counters::of(map, room * size_of::<types::shape>())?, room })
    }
}

impl Counters {
    fn of(map: &MapHandle, bytes: usize) -> Result<Counters, CarrierError> {
        let failed =
            |error: std::io::Error| CarrierError::Kernel { what: COUNTERS, why: error.to_string() };
        Ok(Counters(Rc::new(Mapped::new(map.as_fd(), bytes).map_err(failed)?)))
    }

    /// What was counted of the shape in this place; `None` while it is nobody's.
    fn shape(&self, place: usize, arms: usize) -> Option<ShapeTimes> {
        let at = place * size_of::<types::shape>();
        let shape = load(self.number(at + offset_of!(types::shape, hash)));
        let times = at + offset_of!(types::shape, processor);
        let of_arm = |arm| self.times(times + arm * size_of::<types::times>(), load);
        (shape != 0).then(|| ShapeTimes { shape, processor: (0..arms).map(of_arm).collect() })
    }

    /// The buckets of the row at this offset.
    fn times(&self, offset: usize, read: fn(&AtomicU64) -> u64) -> Times {
        let bucket = |place: usize| {
            let at = offset + place * size_of::<types::bucket>();
            let number = |offset| read(self.number(at + offset));
            let count = number(offset_of!(types::bucket, count));
            let sum_ns = sum_within(place, count, number(offset_of!(types::bucket, sum_ns)));
            Bucket { place: place as u16, count, sum_ns }
        };
        Times { buckets: (0..BUCKETS).map(bucket).filter(|bucket| bucket.count > 0).collect() }
    }

    fn number(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the mapping and aligned, as an offset of a member is; the kernel changes it with atomic
        // instructions, and it lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.0.at(offset).as_ptr().cast()) }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as in `number`.
        unsafe { AtomicU32::from_ptr(self.0.at(offset).as_ptr().cast()) }
    }
}

fn load(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

fn take(number: &AtomicU64) -> u64 {
    number.swap(0, Ordering::Relaxed)
}

/// Where the processor times are of an arm's statements that came after those of another.
fn row_of(before: usize, arm: usize) -> usize {
    let row = before * Trial::ARMS_MAX + arm;
    offset_of!(types::trial, processor) + row * size_of::<types::times>()
}

fn latency_of(arm: usize) -> usize {
    offset_of!(types::trial, latency) + arm * size_of::<types::times>()
}

/// A sum that a bucket with this count can have. The kernel changes count and sum one after the other: a reader may meet
/// the one before the other.
fn sum_within(place: usize, count: u64, sum_ns: u64) -> u64 {
    let (power, step) = (place >> TIME_SHIFT, (place & ((1 << TIME_SHIFT) - 1)) as u64);
    let unit = 1_u64 << (power + TIME_FIRST - TIME_SHIFT);
    let low = ((1 << TIME_SHIFT) + step) * unit;
    match place {
        0 => sum_ns.min(count * (low + unit)),
        _ if place + 1 == BUCKETS => sum_ns.max(count * low),
        _ => sum_ns.clamp(count * low, count * (low + unit)),
    }
}

/// `COLLECT_…` of `shared.h`, which has them in the same order.
fn bits_of(arm: &Arm) -> u32 {
    arm.collectors.iter().fold(0, |bits, collector| bits | 1 << *collector as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_is_read_between_two_changes_stays_in_its_bucket() {
        // 64 to 66 ns, then 128 to 132.
        assert_eq!(sum_within(0, 2, 10), 10, "what is shorter counts there, too");
        assert_eq!(sum_within(0, 2, 1_000), 2 * 66);
        assert_eq!(sum_within(1 << TIME_SHIFT, 3, 0), 3 * 128);
        assert_eq!(sum_within(1 << TIME_SHIFT, 3, 390), 390);
        assert_eq!(sum_within(1 << TIME_SHIFT, 3, 1_000), 3 * 132);
        assert_eq!(sum_within(BUCKETS - 1, 1, u64::MAX), u64::MAX, "the last one has no end");
    }
}
