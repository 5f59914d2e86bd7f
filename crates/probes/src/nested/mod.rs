//! Statements that run without a reply of their own: those of stored programs (procedures,
//! functions, triggers, events) and those that a replica applies.
//!
//! What it costs, what it needs and what it cannot see: `README.md` in this folder.

mod place;
mod record;
mod skeleton;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, Object, ObjectBuilder, UprobeOpts};
use waggle_model::Reading;

use crate::tap::{Plan, Programs, RunTime, TapError, kernel_error, run_time_of_program};
use crate::target::elf::Elf;
use place::{Kind, Place};
pub(crate) use record::Nested;

/// Which nested statements of a server are captured; the reason where they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Those of stored programs. The value is the function on which the probe stands.
    pub routines: Reading<&'static str>,
    /// Those that a replica applies in text form.
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

/// The probes of every server.
#[derive(Default)]
pub(crate) struct Probes {
    loaded: HashMap<u32, Loaded>,
    coverage: HashMap<u32, Coverage>,
}

impl Probes {
    /// Sets the breakpoints in a server that the tap watches with `plan` and the program of this
    /// number. Where that cannot be done, the coverage says why.
    pub(crate) fn attach(&mut self, programs: &Programs, plan: &Plan, pid: u32, program: u32) {
        let coverage = match load(programs, plan, pid, program) {
            Ok((loaded, coverage)) => {
                self.loaded.insert(pid, loaded);
                coverage
            }
            Err(error) => Coverage::absent(&error.to_string()),
        };
        self.coverage.insert(pid, coverage);
    }

    /// Removes the breakpoints from a server.
    pub(crate) fn detach(&mut self, pid: u32) {
        self.coverage.remove(&pid);
        self.loaded.remove(&pid);
    }

    /// What is captured of a server; `None` where it is not attached.
    pub(crate) fn coverage(&self, pid: u32) -> Option<&Coverage> {
        self.coverage.get(&pid)
    }

    /// How often a statement ended here and how long the programs at both of its ends ran.
    pub(crate) fn run_time(&self) -> RunTime {
        let mut sum = RunTime::default();
        for loaded in self.loaded.values() {
            for programs in Kind::ALL.map(Kind::programs) {
                let [begin, end] = programs.map(|name| run_time_of_program(&loaded.object, name));
                sum.runs += end.runs;
                sum.time += begin.time + end.time;
            }
        }
        sum
    }
}

fn load(
    programs: &Programs,
    plan: &Plan,
    pid: u32,
    program: u32,
) -> Result<(Loaded, Coverage), TapError> {
    let path = PathBuf::from(format!("/proc/{pid}/exe"));
    let elf = Elf::open(&path)
        .map_err(|error| TapError::Kernel { what: "nested statements", why: error.to_string() })?;
    // Libbpf wants the bytes aligned, which a fresh allocation is.
    let aligned = skeleton::OBJECT.to_vec();
    let mut open = ObjectBuilder::default()
        .open_memory(&aligned)
        .map_err(kernel_error("the programs for nested statements"))?;
    let mut plan = Nested::plan(plan);
    plan.config.instruction_text = place::instruction_text(&elf).unwrap_or(0);
    programs.set_maps(&mut open, &plan, program)?;
    let object = open.load().map_err(kernel_error("loading the programs for nested statements"))?;
    let mut links = Vec::new();
    let [routines, applied] = Kind::ALL.map(|kind| match place::find(&elf, kind) {
        Reading::Absent(why) => Reading::Absent(why),
        Reading::Value(place) => match attach_pair(&object, kind, place, pid, &path) {
            Ok(pair) => {
                links.extend(pair);
                Reading::Value(kind.function())
            }
            Err(error) => Reading::Absent(error.to_string()),
        },
    });
    Ok((Loaded { object, _links: links }, Coverage { routines, applied }))
}

/// The end is attached first: a statement that is seen to begin is then seen to end.
fn attach_pair(
    object: &Object,
    kind: Kind,
    place: Place,
    pid: u32,
    path: &Path,
) -> Result<[Link; 2], TapError> {
    let attach = |name: &'static str, retprobe| {
        let program = object.progs_mut().find(|program| program.name() == name);
        let program =
            program.ok_or(TapError::Kernel { what: name, why: "no such program".into() })?;
        let func_name = Some(place.symbol.to_owned());
        let options = UprobeOpts { func_name, retprobe, ..Default::default() };
        program
            .attach_uprobe_with_opts(pid as i32, path, place.skip, options)
            .map_err(kernel_error(kind.function()))
    };
    let [begin, end] = kind.programs();
    let end = attach(end, true)?;
    Ok([attach(begin, false)?, end])
}
