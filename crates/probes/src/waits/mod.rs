//! Where the wall time of each statement went: what its thread waited for whenever it left the processor.
//!
//! `README.md` in this folder has cost, requirements and blind spots.

mod already;
mod look;
mod scheduler;
mod skeleton;
mod stacks;
mod tables;
mod told;
mod unwound;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use libbpf_rs::{Link, Object};
use waggle_model::{Losses, Reading};

pub(crate) use self::look::{is_noted, wait_of};
pub(crate) use self::told::told_of;
use self::unwound::Code;
use crate::carrier::{
    self, Carrier, CarrierError, PartsPlaces, Plan, RunTime, kernel_error, run_time_of,
};
use crate::servers::Instance;
use crate::servers::waiting::{UnwindRow, Waiting, WaitingFunction};
pub(crate) use stacks::Stacks;

const SWITCH: &str = "on_switch";
const MOVE: &str = "on_move";

/// What is known of the waits of a server, with the reason where something is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Whether statements have parts at all.
    pub parts: Reading<()>,
    /// How many functions of the server say what a thread waits for. Without them a row lock is told as other.
    pub functions: Reading<usize>,
    /// How many rows say how the C library is left. Without them a latch is told as other, too.
    pub library: Reading<usize>,
    /// Whether what runs already when waggle comes has parts, too.
    pub already: Reading<()>,
}

impl Waits {
    /// What is known where there are no parts.
    pub fn absent(why: &str) -> Waits {
        let (functions, library) = (Reading::absent(why), Reading::absent(why));
        let (parts, already) = (Reading::absent(why), Reading::absent(why));
        Waits { parts, functions, library, already }
    }
}

/// The tables of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tables {
    functions: Arc<Vec<WaitingFunction>>,
    rows: Arc<Vec<UnwindRow>>,
}

impl Tables {
    fn of(waiting: &Waiting) -> Tables {
        let rows = waiting.library.value().map(|library| Arc::clone(&library.rows));
        Tables {
            functions: waiting.functions.value().cloned().unwrap_or_default(),
            rows: rows.unwrap_or_default(),
        }
    }
}

/// A program in the kernel, which serves the servers of one layout and the same files.
struct Loaded {
    number: u32,
    plan: Plan,
    tables: Tables,
    object: Object,
    _links: Vec<Link>,
    pids: HashSet<u32>,
}

/// The waits of every server.
#[derive(Default)]
pub(crate) struct Probe {
    /// Where threads wait, where that is asked for.
    pub(crate) stacks: Option<Stacks>,
    loaded: Vec<Loaded>,
    /// How many programs were loaded.
    numbers: u32,
    places: HashMap<u32, PartsPlaces>,
    waits: HashMap<u32, Waits>,
}

impl Probe {
    /// One that also tells the stack of every wait in a statement, where that is asked for.
    pub(crate) fn new(tells_stacks: bool) -> Probe {
        Probe { stacks: tells_stacks.then(Stacks::default), ..Probe::default() }
    }

    /// Loads what accounts the time of the threads of a server that will be watched by this plan. That takes a while, in
    /// which statements would have no parts, so it comes before.
    pub(crate) fn prepare(&mut self, carrier: &Carrier, plan: &Plan, instance: &Instance) {
        let waits = match self.load(carrier, plan, instance) {
            Ok(()) => Waits::absent("the server is not watched yet"),
            Err(error) => Waits::absent(&error.to_string()),
        };
        self.waits.insert(instance.pid, waits);
    }

    /// Begins to account, now that another probe watches the server by the plan that was prepared.
    pub(crate) fn attach(&mut self, carrier: &mut Carrier, plan: &Plan, instance: &Instance) {
        if let Some(waits) = self.watch(carrier, plan, instance) {
            self.waits.insert(instance.pid, waits);
        }
    }

    /// Notes why the statements of a server have no parts.
    pub(crate) fn refuse(&mut self, pid: u32, why: &str) {
        self.detach(pid);
        self.waits.insert(pid, Waits::absent(why));
    }

    /// Ends it; a program that serves no other server is unloaded.
    pub(crate) fn detach(&mut self, pid: u32) {
        self.waits.remove(&pid);
        self.places.remove(&pid);
        self.stacks.iter_mut().for_each(|stacks| stacks.forget(pid));
        for loaded in &mut self.loaded {
            loaded.pids.remove(&pid);
        }
        self.loaded.retain(|loaded| !loaded.pids.is_empty());
    }

    /// What is known of a server; `None` if it is not attached.
    pub(crate) fn waits(&self, pid: u32) -> Option<&Waits> {
        self.waits.get(&pid)
    }

    /// Whether the statements of a server have parts.
    pub(crate) fn measures(&self, pid: u32) -> bool {
        self.waits.get(&pid).is_some_and(|waits| waits.parts.value().is_some())
    }

    /// What the sessions of a server do now, by the address of the session.
    pub(crate) fn look(&self, pid: u32) -> Option<Vec<look::Now>> {
        if !self.measures(pid) {
            return None;
        }
        let loaded = self.loaded.iter().find(|loaded| loaded.pids.contains(&pid))?;
        look::of(&loaded.object, pid).ok()
    }

    /// Notes the threads that are not noted yet, because they moved on while they were read.
    pub(crate) fn note_threads(&self, pid: u32) {
        let loaded = self.loaded.iter().find(|loaded| loaded.pids.contains(&pid));
        if let (Some(loaded), Some(places)) = (loaded, self.places.get(&pid)) {
            // Who cannot be noted stays as unknown as before.
            let _ = loaded.note_threads(pid, *places, already::AT_LOOK);
        }
    }

    /// Waits of a server whose length is not known.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        self.stacks.as_ref().map(|stacks| stacks.losses(pid)).unwrap_or_default()
    }

    /// How often the programs ran and how long: for every switch of the host.
    pub(crate) fn run_time(&self) -> RunTime {
        let mut sum = RunTime::default();
        for loaded in &self.loaded {
            let switches = run_time_of(&loaded.object, SWITCH);
            sum.runs += switches.runs;
            sum.time += switches.time + run_time_of(&loaded.object, MOVE).time;
        }
        sum
    }

    fn load(
        &mut self,
        carrier: &Carrier,
        plan: &Plan,
        instance: &Instance,
    ) -> Result<(), CarrierError> {
        let tables = Tables::of(&instance.waiting);
        let at = match self.loaded.iter().position(|loaded| loaded.serves(plan, &tables)) {
            Some(at) => at,
            None => {
                self.numbers += 1;
                let tells_stacks = self.stacks.is_some();
                self.loaded.push(load(carrier, plan, tables, self.numbers, tells_stacks)?);
                self.loaded.len() - 1
            }
        };
        self.loaded[at].pids.insert(instance.pid);
        Ok(())
    }

    /// What is known of the server from now on; `None` where nothing was loaded for it.
    fn watch(&mut self, carrier: &mut Carrier, plan: &Plan, instance: &Instance) -> Option<Waits> {
        let (pid, waiting) = (instance.pid, &instance.waiting);
        let tables = Tables::of(waiting);
        let at = self.loaded.iter().position(|loaded| loaded.serves(plan, &tables))?;
        for (index, loaded) in self.loaded.iter_mut().enumerate() {
            if index != at {
                loaded.pids.remove(&pid);
            }
        }
        let library = waiting.library.value();
        let places = PartsPlaces {
            program: self.loaded[at].number,
            load_bias: instance.load_bias,
            library: library.map_or(0, |library| library.base),
            library_bytes: library.map_or(0, |library| library.bytes),
        };
        carrier.tell_parts(pid, &places);
        self.places.insert(pid, places);
        let noted = self.loaded[at].note_threads(pid, places, already::WHEN_ATTACHED);
        self.loaded.retain(|loaded| !loaded.pids.is_empty());
        let (parts, already) = match (noted, why_no_parts(plan, waiting)) {
            (Ok(already), None) => (Reading::Value(()), already),
            (Ok(already), Some(why)) => (Reading::absent(why), already),
            (Err(error), _) => {
                carrier.tell_parts(pid, &PartsPlaces::default());
                return Some(Waits::absent(&error.to_string()));
            }
        };
        Some(Waits {
            parts,
            functions: counted(&waiting.functions, |functions| functions.len()),
            library: counted(&waiting.library, |library| library.rows.len()),
            already,
        })
    }
}

/// Why the statements of a server have no parts, though its threads are accounted.
fn why_no_parts(plan: &Plan, waiting: &Waiting) -> Option<&'static str> {
    if !plan.tells_parts() {
        return Some("this build does not show when a statement began");
    }
    waiting
        .is_pooled
        .then_some("a pool of threads serves this server: a statement need not have a thread")
}

impl Loaded {
    /// Notes what the threads of a server do that nobody has noted yet.
    fn note_threads(
        &self,
        pid: u32,
        places: PartsPlaces,
        effort: already::Effort,
    ) -> Result<Reading<()>, CarrierError> {
        let code = Code { tables: &self.tables, places };
        let server = already::Server { pid, config: &self.plan.config, code };
        already::note_threads(&self.object, &server, effort)
    }

    fn serves(&self, plan: &Plan, tables: &Tables) -> bool {
        self.plan.is_same_program(plan) && self.tables == *tables
    }
}

fn counted<T>(reading: &Reading<T>, count: impl Fn(&T) -> usize) -> Reading<usize> {
    match reading {
        Reading::Value(value) => Reading::Value(count(value)),
        Reading::Absent(why) => Reading::Absent(why.clone()),
    }
}

fn load(
    carrier: &Carrier,
    plan: &Plan,
    tables: Tables,
    number: u32,
    tells_stacks: bool,
) -> Result<Loaded, CarrierError> {
    // Without them the program would account nothing, and all time would be that on the processor.
    scheduler::check()?;
    let mut open = carrier::open(skeleton::OBJECT, "the program for waits")?;
    carrier.prepare(&mut open, plan, number)?;
    tables::set_sizes(&mut open, &tables, tells_stacks)?;
    let delays_sleepers = scheduler::delays_sleepers();
    for mut program in open.progs_mut().filter(|program| program.name() == MOVE) {
        program.set_autoload(delays_sleepers);
    }
    let object = open.load().map_err(kernel_error("loading the program for waits"))?;
    tables::fill(&object, &tables)?;
    let attach =
        |name, place| carrier::program(&object, name)?.attach().map_err(kernel_error(place));
    let mut links = vec![attach(SWITCH, "tracepoint sched:sched_switch")?];
    if delays_sleepers {
        links.push(attach(MOVE, "tracepoint sched:sched_migrate_task")?);
    }
    Ok(Loaded { number, plan: plan.clone(), tables, object, _links: links, pids: HashSet::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that may sleep reads memory that may never answer, and then no program of the host can be unloaded.
    #[test]
    fn no_program_may_wait_for_memory() {
        let open = carrier::open(skeleton::OBJECT, "the program for waits").unwrap();
        let sections: Vec<String> =
            open.progs().map(|program| program.section().to_string_lossy().into_owned()).collect();
        assert_eq!(sections.len(), 5, "{sections:?}");
        assert!(sections.iter().all(|section| !section.contains(".s/")), "{sections:?}");
    }
}
