//! Statements that run without a reply of their own: statements of stored programs (procedures,
//! functions, triggers, events), and statements that a replica applies.
//!
//! `README.md` in this folder has cost, requirements and blind spots.

mod deadly;
mod record;
mod skeleton;

use std::collections::HashMap;

use libbpf_rs::{Link, Object};
use waggle_model::{Losses, Reading};

use crate::carrier::{
    self, Carrier, CarrierError, RunTime, Session, Target, kernel_error, run_time_of,
};
use crate::servers::Instance;
use crate::servers::breakpoint::Function;
use record::Nested;

/// The functions that run statements without a reply of their own.
const FUNCTIONS: [Function; 2] = [Function::Routine, Function::Applied];

/// The programs of `mod.bpf.c` at the begin and at the end of a function.
fn programs(function: Function) -> [&'static str; 2] {
    match function {
        Function::Applied => ["on_apply", "on_apply_end"],
        _ => ["on_routine", "on_routine_end"],
    }
}

/// Which nested statements of a server are captured; the reason where they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Those of stored programs. The value is the function on which the probe stands.
    pub routines: Reading<&'static str>,
    /// Statements that a replica applies in text form.
    pub applied: Reading<&'static str>,
}

impl Coverage {
    fn absent(why: &str) -> Self {
        Self { routines: Reading::absent(why), applied: Reading::absent(why) }
    }
}

/// The programs of one server. A breakpoint belongs to a process, so every server has its own.
struct Loaded {
    object: Object,
    _links: Vec<Link>,
}

/// The breakpoints in every server.
#[derive(Default)]
pub(crate) struct Probe {
    targets: HashMap<u32, Target>,
    loaded: HashMap<u32, Loaded>,
    coverage: HashMap<u32, Coverage>,
    /// By server.
    lost: HashMap<u32, Losses>,
}

impl Probe {
    /// Sets the breakpoints in a server that another probe watches as `target`. Where that cannot be
    /// done, the coverage says why.
    pub(crate) fn attach(&mut self, carrier: &Carrier, target: &Target, instance: &Instance) {
        let target = Nested::target(target);
        let coverage = match load(carrier, &target, instance) {
            Ok((loaded, coverage)) => {
                self.loaded.insert(instance.pid, loaded);
                coverage
            }
            Err(error) => Coverage::absent(&error.to_string()),
        };
        self.coverage.insert(instance.pid, coverage);
        self.targets.insert(instance.pid, target);
    }

    /// One that reads the records of a server that another probe watches as `target`, as if its programs were there.
    #[cfg(test)]
    pub(crate) fn reading(pid: u32, target: &Target) -> Probe {
        let mut probe = Probe::default();
        probe.targets.insert(pid, Nested::target(target));
        probe
    }

    /// Goes on with a layout that lost fields; the programs stay as they are.
    pub(crate) fn narrow(&mut self, pid: u32, target: &Target) {
        if let Some(before) = self.targets.get_mut(&pid) {
            *before = Nested::target(target);
        }
    }

    /// Removes the breakpoints from a server, and says what was lost of it.
    pub(crate) fn detach(&mut self, pid: u32) -> Losses {
        self.targets.remove(&pid);
        self.coverage.remove(&pid);
        self.loaded.remove(&pid);
        self.lost.remove(&pid).unwrap_or_default()
    }

    /// What is captured of a server; `None` if it is not attached.
    pub(crate) fn coverage(&self, pid: u32) -> Option<&Coverage> {
        self.coverage.get(&pid)
    }

    /// Reads a record of this probe.
    pub(crate) fn read<'a>(&'a mut self, session: Session, record: &'a [u8]) -> Option<Nested<'a>> {
        Nested::of(self.targets.get(&session.tgid)?, record, &mut self.lost)
    }

    /// What has been lost on this side of a server that is watched.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        self.lost.get(&pid).copied().unwrap_or_default()
    }

    /// How often a statement ended here and how long the programs at both of its ends ran.
    pub(crate) fn run_time(&self) -> RunTime {
        let mut sum = RunTime::default();
        for loaded in self.loaded.values() {
            for programs in FUNCTIONS.map(programs) {
                let [begin, end] = programs.map(|name| run_time_of(&loaded.object, name));
                sum.runs += end.runs;
                sum.time += begin.time + end.time;
            }
        }
        sum
    }
}

fn load(
    carrier: &Carrier,
    target: &Target,
    instance: &Instance,
) -> Result<(Loaded, Coverage), CarrierError> {
    deadly::refuse(instance.pid)?;
    let mut open = carrier::open(skeleton::OBJECT, "the programs for nested statements")?;
    let mut plan = target.plan.clone();
    plan.config.instruction_text = instance.breakpoints.instruction_text.unwrap_or(0);
    carrier.prepare(&mut open, &plan, target.program)?;
    let object = open.load().map_err(kernel_error("loading the programs for nested statements"))?;
    let mut links = Vec::new();
    let [routines, applied] = FUNCTIONS.map(|function| {
        let place = instance.breakpoints.at(function).as_ref();
        place.and_then(|place| {
            let pair = attach_pair(&object, function, *place, instance);
            links.extend(pair.map_err(|error| error.to_string())?);
            Ok::<_, String>(function.name())
        })
    });
    Ok((Loaded { object, _links: links }, Coverage { routines, applied }))
}

/// The end is attached first: a statement that is seen to begin is then seen to end.
fn attach_pair(
    object: &Object,
    function: Function,
    place: u64,
    instance: &Instance,
) -> Result<[Link; 2], CarrierError> {
    let attach = |name: &'static str, retprobe| {
        let program = carrier::program(object, name)?;
        carrier::attach_breakpoint(&program, function.name(), instance, place, retprobe)
    };
    let [begin, end] = programs(function);
    let end = attach(end, true)?;
    Ok([attach(begin, false)?, end])
}
