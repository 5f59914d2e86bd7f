//! What every probe shares, and no probe owns: the rings of records, the list of watched servers,
//! what the kernel keeps of a session, and how a program is loaded with the layout of a server.
//!
//! The carrier knows no probe. A probe is a folder beside it, with a `Probe` that attaches its
//! programs to a server, and reads the records of its kind. [`crate::capture`] puts them together.

mod complaint;
mod iterator;
mod loader;
mod mapped;
mod parts;
mod plan;
mod programs;
mod record;
mod ring;
mod skeleton;
mod statistics;
mod targets;

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;

use libbpf_rs::btf::Btf;
use libbpf_rs::{MapHandle, OpenObject};
use thiserror::Error;
use waggle_host::{Need, monotonic_ns};
use waggle_model::Losses;

use crate::servers::x_protocol::XEndpoint;

pub(crate) use iterator::walk_threads;
pub(crate) use loader::{attach_breakpoint, kernel_error, map, open, program, run_time_of};
pub(crate) use parts::split_of;
pub(crate) use plan::Plan;
pub(crate) use programs::Programs;
pub(crate) use record::{
    Meaning, RECORD_DYING, RECORD_FATAL, RECORD_IDENTITY, RECORD_LEFT, RECORD_NESTED, RECORD_READY,
    RECORD_RESTS, RECORD_SAMPLE, RECORD_STATEMENT, RECORD_WAIT, Session, SessionData, Target,
    head_of, identity_of, name_of, read_struct,
};
pub(crate) use skeleton::types;
pub use statistics::{RunTime, RunTimeStatistics};

pub(crate) use mapped::Mapped;
use ring::{Rings, Shape};
pub(crate) use targets::PartsPlaces;
use targets::Targets;

/// Records of the rings in one turn.
const TURN_RECORDS: usize = 20_000;
/// No turn begins to read more after so long: servers may write faster than waggle reads.
const TURN_NS: u64 = 50_000_000;

/// How much of what the rings hold is handed out at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// What a flood cannot make longer: 20,000 records, or those of 50 ms.
    Turn,
    /// All that ended before. That is not more than the rings hold.
    UpToNow,
}

/// For messages.
const RINGS: &str = "the rings of records";

/// Why a program cannot be given to the kernel.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// The layout lacks every sign of the end of a statement.
    #[error(
        "build {build}: neither {field} nor start_time is known, so nothing tells when a statement \
         ends: {why}; see `waggle doctor`"
    )]
    Layout {
        /// The build.
        build: String,
        /// The field.
        field: &'static str,
        /// Why it is not known.
        why: String,
    },
    /// A map or a program failed.
    #[error("{what}: {why}")]
    Kernel {
        /// What was attempted.
        what: &'static str,
        /// What the kernel said, with the remedy where one is known.
        why: String,
    },
}

/// What every probe shares in the kernel.
pub(crate) struct Carrier {
    /// The maps that every program is given.
    maps: Vec<(&'static str, MapHandle)>,
    shape: Shape,
    rings: Rings,
    targets: Targets,
    /// What was lost of each server by programs that another has taken over from.
    lost_before: HashMap<u32, Losses>,
}

impl Carrier {
    /// Makes the maps that every program shares.
    ///
    /// # Errors
    ///
    /// No right to use BPF, or a kernel without it.
    pub(crate) fn new() -> Result<Carrier, CarrierError> {
        complaint::listen();
        let failed =
            |error: io::Error| CarrierError::Kernel { what: RINGS, why: error.to_string() };
        let maps_of = "BPF maps cannot be made";
        // No program can be loaded without: this says so before a server is looked at.
        let refused = loader::kernel_refuses(maps_of, Need::Watch);
        Btf::from_vmlinux().map_err(&refused)?;
        let shape = Shape::of_host().map_err(failed)?;
        let mut open = loader::open(skeleton::OBJECT, maps_of)?;
        for mut map in open.maps_mut() {
            if map.name() == "rings" {
                loader::set_shape(&mut map, shape).map_err(kernel_error(RINGS))?;
            }
        }
        let object = open.load().map_err(refused)?;
        let map = |name: &'static str| {
            MapHandle::try_from(&map(&object, name)?).map_err(kernel_error("a BPF map"))
        };
        let (ring_map, target_map) = (map("rings")?, map("targets")?);
        let rings = Rings::new(ring_map.as_fd(), shape).map_err(failed)?;
        let targets = Targets::new(target_map.as_fd()).map_err(|error| CarrierError::Kernel {
            what: "the list of watched servers",
            why: error.to_string(),
        })?;
        let maps =
            vec![("rings", ring_map), ("targets", target_map), ("sessions", map("sessions")?)];
        Ok(Carrier { maps, shape, rings, targets, lost_before: HashMap::new() })
    }

    /// Puts a server on the list, for the programs of this number.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub(crate) fn admit(&mut self, pid: u32, program: u32) -> Result<(), CarrierError> {
        // Where it changes its program, its counters begin anew.
        let lost = self.targets.losses(pid);
        if self.targets.admit(pid, program) {
            let before = self.lost_before.entry(pid).or_default();
            *before = before.plus(&lost);
            return Ok(());
        }
        let why =
            "all places for its process id are taken by watched servers; choose this one with \
                   --pid"
                .to_owned();
        Err(CarrierError::Kernel { what: "the list of watched servers", why })
    }

    /// Says where a server on the list accepts clients of the X protocol.
    pub(crate) fn expect_x_protocol(&mut self, pid: u32, endpoint: &XEndpoint) {
        self.targets.expect_x_protocol(pid, endpoint);
    }

    /// Says of a server on the list which program accounts the time of its threads.
    pub(crate) fn tell_parts(&mut self, pid: u32, places: &PartsPlaces) {
        self.targets.tell_parts(pid, places);
    }

    /// The processes on the list in every place for this one; none where it has or finds a free one.
    pub(crate) fn in_the_way(&self, pid: u32) -> Vec<u32> {
        self.targets.in_the_way(pid)
    }

    /// Takes a server off the list, and says what the programs lost of it. Another server may have its
    /// pid one day, so nothing is remembered of it.
    pub(crate) fn dismiss(&mut self, pid: u32) -> Losses {
        let before = self.lost_before.remove(&pid).unwrap_or_default();
        before.plus(&self.targets.dismiss(pid))
    }

    /// From now on every program is given these maps, too: they are those of a trial.
    pub(crate) fn share(&mut self, maps: impl IntoIterator<Item = (&'static str, MapHandle)>) {
        self.maps.extend(maps);
    }

    /// Gives an object the maps that every program shares, the layout and the number of its programs.
    ///
    /// # Errors
    ///
    /// If the object has a map of another shape, or no place for the layout.
    pub(crate) fn prepare(
        &self,
        open: &mut OpenObject,
        plan: &Plan,
        number: u32,
    ) -> Result<(), CarrierError> {
        let config = types::config {
            ring_bytes: self.shape.ring_bytes as u64,
            rings: self.shape.rings as u32,
            program: number,
            ..plan.config
        };
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == "rings" {
                loader::set_shape(&mut map, self.shape).map_err(kernel_error(RINGS))?;
            }
            if let Some((_, shared)) = self.maps.iter().find(|(shared, _)| *shared == name) {
                map.reuse_fd(shared.as_fd()).map_err(kernel_error("a shared map"))?;
            } else if !plan.needs(&name) {
                map.set_autocreate(false).map_err(kernel_error("the maps of a trial"))?;
            }
            if name.ends_with(".rodata") {
                loader::set_config(&mut map, &config)?;
            }
        }
        Ok(())
    }

    /// Hands records of all probes to `consume`, in the order of time. Returns whether more are waiting
    /// than one turn takes.
    pub(crate) fn drain(&mut self, amount: Amount, consume: &mut dyn FnMut(&[u8])) -> bool {
        let begin = monotonic_ns();
        let left = |now: u64| Some(now).filter(|now| now.saturating_sub(begin) <= TURN_NS);
        match amount {
            Amount::Turn => {
                let drained = self.rings.drain(|| left(monotonic_ns()), TURN_RECORDS, consume);
                drained >= TURN_RECORDS || left(monotonic_ns()).is_none()
            }
            Amount::UpToNow => {
                self.rings.drain(|| Some(begin), usize::MAX, consume);
                false
            }
        }
    }

    /// How full the fullest ring was when the last [`Carrier::drain`] began, 0 to 1.
    pub(crate) fn filled(&self) -> f64 {
        self.rings.filled()
    }

    /// Sessions of a server that its end has reached and that could not be told.
    pub(crate) fn untold(&self, pid: u32) -> u32 {
        self.targets.untold(pid)
    }

    /// What the programs have lost of a server that is on the list.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        let before = self.lost_before.get(&pid).copied().unwrap_or_default();
        before.plus(&self.targets.losses(pid))
    }
}
