//! The programs in the kernel: one for each layout, all writing to the same rings.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::btf::{Btf, types};
use libbpf_rs::libbpf_sys;
use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder, OpenObject, UprobeOpts};
use waggle_model::Losses;

use super::complaint;
use super::fires;
use super::hook::Hook;
use super::plan::{Plan, bytes_of};
use super::ring::{Rings, Shape};
use super::skeleton::OBJECT;
use super::skeleton::types::config as Config;
use super::targets::Targets;
use super::{RunTime, TapError};

/// Tells when a session waits for its next request; see [`super::TapOptions::ready`].
const ON_RECEIVE: &str = "on_receive";

/// Where the kernel tells its types.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";
/// For messages.
const RINGS: &str = "the rings of records";

struct Loaded {
    /// By which the list of servers says that this one serves them.
    number: u32,
    plan: Plan,
    hook: Hook,
    object: Object,
    _link: Link,
    /// Of the program that tells when a session is ready, where that was asked for.
    _ready: Option<Link>,
    /// The servers that this program serves.
    pids: HashSet<u32>,
}

pub(crate) struct Programs {
    /// The maps that every program shares.
    shared: [(&'static str, MapHandle); 3],
    loaded: Vec<Loaded>,
    shape: Shape,
    rings: Rings,
    targets: Targets,
    /// How many programs were loaded.
    numbers: u32,
    /// Whether a session tells when it waits for its next request, where the kernel can say so.
    ready: bool,
    /// What was lost of each server before it was let go.
    lost_before: HashMap<u32, Losses>,
}

pub(crate) fn kernel_error(what: &'static str) -> impl Fn(libbpf_rs::Error) -> TapError {
    move |error| {
        let mut why = format!("{error:#}");
        if !Path::new(KERNEL_TYPES).exists() {
            why = format!(
                "the kernel does not tell its types (BTF): {KERNEL_TYPES} is missing; use a kernel \
                 built with CONFIG_DEBUG_INFO_BTF"
            );
        } else if let Some(verifier) = complaint::last() {
            why = format!("the kernel's verifier refuses it: {verifier}");
        } else if error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            why.push_str(&match crate::kernel::rights_missing() {
                Some(rights) => format!("; run as root, or with {rights}: not held here"),
                None => "; this kernel refuses the program, whatever rights we hold".to_owned(),
            });
        }
        TapError::Kernel { what, why }
    }
}

fn open() -> Result<OpenObject, TapError> {
    // Libbpf wants the bytes aligned, which a fresh allocation is.
    let aligned = OBJECT.to_vec();
    ObjectBuilder::default().open_memory(&aligned).map_err(kernel_error("the programs of the tap"))
}

impl Programs {
    /// Makes the maps that every program shares.
    pub(super) fn new(ready: bool) -> Result<Programs, TapError> {
        complaint::listen();
        let failed = |error: io::Error| TapError::Kernel { what: RINGS, why: error.to_string() };
        let shape = Shape::of_host().map_err(failed)?;
        let mut open = open()?;
        for mut program in open.progs_mut() {
            program.set_autoload(false);
        }
        for mut map in open.maps_mut() {
            if map.name() == "rings" {
                set_shape(&mut map, shape).map_err(kernel_error(RINGS))?;
            }
        }
        let object = open.load().map_err(kernel_error("the maps of the tap"))?;
        let map = |name: &'static str| {
            let map = object.maps().find(|map| map.name() == name);
            let map = map.ok_or(TapError::Kernel { what: name, why: "no such map".into() })?;
            MapHandle::try_from(&map).map_err(kernel_error("a map of the tap"))
        };
        let (ring_map, target_map) = (map("rings")?, map("targets")?);
        let rings = Rings::new(ring_map.as_fd(), shape).map_err(failed)?;
        let targets = Targets::new(target_map.as_fd()).map_err(|error| TapError::Kernel {
            what: "the list of watched servers",
            why: error.to_string(),
        })?;
        Ok(Programs {
            shared: [("rings", ring_map), ("targets", target_map), ("sessions", map("sessions")?)],
            loaded: Vec::new(),
            shape,
            rings,
            targets,
            numbers: 0,
            ready,
            lost_before: HashMap::new(),
        })
    }

    /// Attaches a program for one server on the first rung that works, or on `only`; gives the rung
    /// and the number of the program.
    pub(super) fn attach(
        &mut self,
        plan: &Plan,
        pid: u32,
        only: Option<Hook>,
    ) -> Result<(Hook, u32), TapError> {
        let serves = |loaded: &Loaded| {
            loaded.plan.is_same_program(plan)
                && loaded.hook != Hook::Uprobe
                && only.is_none_or(|hook| hook == loaded.hook)
        };
        if let Some(at) = self.loaded.iter().position(serves) {
            let Loaded { hook, number, .. } = self.loaded[at];
            self.admit(pid, number)?;
            self.loaded[at].pids.insert(pid);
            return Ok((hook, number));
        }
        let rungs = Hook::LADDER.into_iter().filter(|hook| only.is_none_or(|only| only == *hook));
        let mut refused = Vec::new();
        for hook in rungs {
            match self.load(plan, hook, pid) {
                Ok(loaded) => {
                    let number = loaded.number;
                    self.admit(pid, number)?;
                    self.loaded.push(loaded);
                    return Ok((hook, number));
                }
                Err(error) => refused.push((hook, format!("{error:#}"))),
            }
        }
        Err(TapError::NoHook(refused))
    }

    fn admit(&mut self, pid: u32, program: u32) -> Result<(), TapError> {
        if self.targets.admit(pid, program) {
            return Ok(());
        }
        let why = "too many servers are watched already; choose one with --pid".to_owned();
        Err(TapError::Kernel { what: "the list of watched servers", why })
    }

    /// Gives an object the maps that every program shares, the layout and the number of the program.
    pub(crate) fn set_maps(
        &self,
        open: &mut OpenObject,
        plan: &Plan,
        program: u32,
    ) -> Result<(), TapError> {
        let config = Config {
            ring_bytes: self.shape.ring_bytes as u64,
            tells_ready: u8::from(self.ready),
            program,
            ..plan.config
        };
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name == "rings" {
                set_shape(&mut map, self.shape).map_err(kernel_error(RINGS))?;
            }
            if let Some((_, shared)) = self.shared.iter().find(|(shared, _)| *shared == name) {
                map.reuse_fd(shared.as_fd()).map_err(kernel_error("a shared map"))?;
            }
            if name.ends_with(".rodata") {
                set_config(&mut map, &config)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, plan: &Plan, hook: Hook, pid: u32) -> Result<Loaded, TapError> {
        let mut open = open()?;
        // Both tracepoints came with the same kernel.
        let ready = self.ready && hook == Hook::Send;
        for mut program in open.progs_mut() {
            let is_chosen = program.name() == hook.program();
            program.set_autoload(is_chosen || (ready && program.name() == ON_RECEIVE));
            if is_chosen && hook == Hook::Fentry {
                let function = send_function()?;
                program
                    .set_attach_target(0, Some(function.into()))
                    .map_err(kernel_error("the function that sends"))?;
            }
        }
        self.numbers += 1;
        let number = self.numbers;
        self.set_maps(&mut open, plan, number)?;
        let object = open.load().map_err(kernel_error("loading the program"))?;
        let _link = attach_program(&object, hook, pid)?;
        let receive = object.progs_mut().find(|program| ready && program.name() == ON_RECEIVE);
        let ready = receive.map(|program| program.attach()).transpose();
        let _ready = ready.map_err(kernel_error("tracepoint sock:sock_recv_length"))?;
        if hook != Hook::Uprobe {
            fires::on_every_send(|| run_time_of(&object, hook).runs)
                .map_err(|why| TapError::Kernel { what: hook.place(), why })?;
        }
        let pids = HashSet::from([pid]);
        Ok(Loaded { number, plan: plan.clone(), hook, object, _link, _ready, pids })
    }

    /// Ends the watch over one server; a program that serves no other is unloaded.
    pub(super) fn detach(&mut self, pid: u32) {
        let lost = self.targets.dismiss(pid);
        let before = self.lost_before.entry(pid).or_default();
        *before = before.plus(&lost);
        for loaded in &mut self.loaded {
            loaded.pids.remove(&pid);
        }
        self.loaded.retain(|loaded| !loaded.pids.is_empty());
    }

    pub(super) fn drain(&mut self, limit: usize, consume: &mut dyn FnMut(&[u8])) -> usize {
        self.rings.drain(super::monotonic_ns, limit, consume)
    }

    /// What the programs lost of a server.
    pub(super) fn losses(&self, pid: u32) -> Losses {
        let before = self.lost_before.get(&pid).copied().unwrap_or_default();
        before.plus(&self.targets.losses(pid))
    }

    pub(super) fn run_time(&self) -> RunTime {
        let mut sum = RunTime::default();
        for loaded in &self.loaded {
            let one = run_time_of(&loaded.object, loaded.hook);
            sum.runs += one.runs;
            sum.time += one.time;
        }
        sum
    }
}

fn run_time_of(object: &Object, hook: Hook) -> RunTime {
    run_time_of_program(object, hook.program())
}

/// The kernel's statistics of one program.
pub(crate) fn run_time_of_program(object: &Object, name: &str) -> RunTime {
    let program = object.progs_mut().find(|program| program.name() == name);
    let info = program.and_then(|program| info_of(program.as_fd().as_raw_fd()));
    info.map_or(RunTime::default(), |info| RunTime {
        runs: info.run_cnt,
        time: Duration::from_nanos(info.run_time_ns),
    })
}

/// The kernel function that every send call of a program passes through. `sock_sendmsg` was split
/// (86a7e0b69bd5, "net: prevent rewrite of msg_name in sock_sendmsg()", backported to the stable
/// series of October 2023): where `__sock_sendmsg` exists, the old name serves the kernel alone.
fn send_function() -> Result<&'static str, TapError> {
    let btf = Btf::from_vmlinux().map_err(kernel_error("the type information of the kernel"))?;
    ["__sock_sendmsg", "sock_sendmsg"]
        .into_iter()
        .find(|name| btf.type_by_name::<types::Func<'_>>(name).is_some())
        .ok_or(TapError::Kernel {
            what: "the function that sends",
            why: "the kernel has neither __sock_sendmsg nor sock_sendmsg".into(),
        })
}

fn set_shape(map: &mut libbpf_rs::OpenMapMut<'_>, shape: Shape) -> libbpf_rs::Result<()> {
    map.set_max_entries(shape.rings as u32)?;
    map.set_value_size(shape.value_bytes as u32)
}

fn set_config(map: &mut libbpf_rs::OpenMapMut<'_>, config: &Config) -> Result<(), TapError> {
    let config = bytes_of(config);
    let whole = map.initial_value_mut().ok_or(TapError::Kernel {
        what: "the layout of the program",
        why: "the object has no constants".into(),
    })?;
    // `cfg` is the only constant of the object.
    whole[..config.len()].copy_from_slice(config);
    Ok(())
}

fn attach_program(object: &Object, hook: Hook, pid: u32) -> Result<Link, TapError> {
    let program = object.progs_mut().find(|program| program.name() == hook.program());
    let program =
        program.ok_or(TapError::Kernel { what: hook.program(), why: "no such program".into() })?;
    let attached = if hook == Hook::Uprobe {
        let symbol = "_Z18log_slow_statementP3THD".to_owned();
        let options = UprobeOpts { func_name: Some(symbol), ..Default::default() };
        program.attach_uprobe_with_opts(pid as i32, format!("/proc/{pid}/exe"), 0, options)
    } else {
        program.attach()
    };
    attached.map_err(kernel_error(hook.place()))
}

fn info_of(program: i32) -> Option<libbpf_sys::bpf_prog_info> {
    // SAFETY: the structure consists of integers: zero is a value of it.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = std::mem::size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `length` bytes to `info`.
    let failed = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(
            program,
            std::ptr::from_mut(&mut info).cast(),
            &mut length,
        )
    };
    (failed == 0).then_some(info)
}
