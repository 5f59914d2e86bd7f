//! The programs of the tap in the kernel: one per layout, on one rung of the ladder.

use std::collections::HashSet;

use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{Link, Object};
use waggle_model::Reading;

use super::TapError;
use super::fires;
use super::hook::Hook;
use crate::carrier::{self, Carrier, CarrierError, Plan, RunTime, kernel_error, run_time_of};
use crate::servers::Instance;
use crate::servers::breakpoint::Function;
use crate::servers::layout::Field;

/// The compiled programs.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tap.bpf.o"));

/// The program that looks at receives, and its place, where a rung has one of its own.
fn receiver(hook: Hook) -> Option<(&'static str, &'static str)> {
    match hook {
        Hook::Send => Some(("on_receive", "tracepoint sock:sock_recv_length")),
        Hook::Fentry => Some(("on_recvmsg", "return of sock_recvmsg")),
        // Its program sees every system call; a breakpoint sees none.
        Hook::Syscall | Hook::Uprobe => None,
    }
}

struct Loaded {
    /// By which the list of servers says that this one serves them.
    number: u32,
    plan: Plan,
    hook: Hook,
    object: Object,
    _link: Link,
    /// Of the program that looks at receives, where that is needed or was asked for.
    _receives: Option<Link>,
    /// The servers that this program serves.
    pids: HashSet<u32>,
}

#[derive(Default)]
pub(super) struct Programs {
    loaded: Vec<Loaded>,
    /// How many programs were loaded.
    numbers: u32,
}

impl Programs {
    /// Attaches a program for one server on the first rung that works, or on `only`; gives the rung
    /// and the number of the program.
    pub(super) fn attach(
        &mut self,
        carrier: &mut Carrier,
        plan: &Plan,
        instance: &Instance,
        only: Option<Hook>,
    ) -> Result<(Hook, u32), TapError> {
        let pid = instance.pid;
        let serves = |loaded: &Loaded| {
            loaded.plan.is_same_program(plan)
                && loaded.hook != Hook::Uprobe
                && only.is_none_or(|hook| hook == loaded.hook)
        };
        if let Some(at) = self.loaded.iter().position(serves) {
            let Loaded { hook, number, .. } = self.loaded[at];
            carrier.admit(pid, number)?;
            for (index, loaded) in self.loaded.iter_mut().enumerate() {
                if index == at {
                    loaded.pids.insert(pid);
                } else {
                    loaded.pids.remove(&pid);
                }
            }
            self.loaded.retain(|loaded| !loaded.pids.is_empty());
            return Ok((hook, number));
        }
        let rungs = Hook::LADDER.into_iter().filter(|hook| only.is_none_or(|only| only == *hook));
        let mut refused = Vec::new();
        for hook in rungs {
            if hook == Hook::Uprobe && plan.has_trial() {
                let why =
                    "a breakpoint does not tell when a request comes, and the coin is tossed then";
                refused.push((hook, why.to_owned()));
                continue;
            }
            if hook == Hook::Uprobe && plan.at(Field::StartTime).is_none() {
                let why = "start_time is not known, and a breakpoint does not tell it either";
                refused.push((hook, why.to_owned()));
                continue;
            }
            match self.load(carrier, plan, hook, instance) {
                Ok(loaded) => {
                    let number = loaded.number;
                    carrier.admit(pid, number)?;
                    self.release(pid);
                    self.loaded.push(loaded);
                    return Ok((hook, number));
                }
                Err(error) => refused.push((hook, format!("{error:#}"))),
            }
        }
        Err(TapError::NoHook(refused))
    }

    fn load(
        &mut self,
        carrier: &Carrier,
        plan: &Plan,
        hook: Hook,
        instance: &Instance,
    ) -> Result<Loaded, CarrierError> {
        let mut open = carrier::open(OBJECT, "the BPF programs")?;
        let is_asked_for = plan.tells_ready() && hook == Hook::Send;
        let is_needed = plan.follows_requests() || plan.has_trial();
        let receiver = receiver(hook).filter(|_| is_needed || is_asked_for);
        for mut program in open.progs_mut() {
            let is_chosen = program.name() == hook.program();
            let receives = receiver.is_some_and(|(name, _)| program.name() == name);
            program.set_autoload(is_chosen || receives);
            if is_chosen && hook == Hook::Fentry {
                let function = send_function()?;
                program
                    .set_attach_target(0, Some(function.into()))
                    .map_err(kernel_error("the function that sends"))?;
            }
        }
        self.numbers += 1;
        let number = self.numbers;
        carrier.prepare(&mut open, plan, number)?;
        let object = open.load().map_err(kernel_error("loading the program"))?;
        let _link = attach_program(&object, hook, instance)?;
        let mut _receives = None;
        if let Some((name, place)) = receiver
            && let Some(program) = object.progs_mut().find(|program| program.name() == name)
        {
            _receives = Some(program.attach().map_err(kernel_error(place))?);
        }
        if hook != Hook::Uprobe {
            fires::on_every_send(|| run_time_of(&object, hook.program()).runs)
                .map_err(|why| CarrierError::Kernel { what: hook.place(), why })?;
        }
        let pids = HashSet::from([instance.pid]);
        Ok(Loaded { number, plan: plan.clone(), hook, object, _link, _receives, pids })
    }

    /// Unloads the programs that served this server and no other.
    pub(super) fn release(&mut self, pid: u32) {
        for loaded in &mut self.loaded {
            loaded.pids.remove(&pid);
        }
        self.loaded.retain(|loaded| !loaded.pids.is_empty());
    }

    pub(super) fn run_time(&self) -> RunTime {
        let mut sum = RunTime::default();
        for loaded in &self.loaded {
            let one = run_time_of(&loaded.object, loaded.hook.program());
            sum.runs += one.runs;
            sum.time += one.time;
        }
        sum
    }
}

/// The kernel function that every send call of a program passes through. `sock_sendmsg` was split
/// (86a7e0b69bd5, "net: prevent rewrite of msg_name in sock_sendmsg()", backported to the stable
/// series of October 2023): where `__sock_sendmsg` exists, the old name serves the kernel alone.
fn send_function() -> Result<&'static str, CarrierError> {
    let btf = Btf::from_vmlinux().map_err(kernel_error("the type information of the kernel"))?;
    ["__sock_sendmsg", "sock_sendmsg"]
        .into_iter()
        .find(|name| btf.type_by_name::<types::Func<'_>>(name).is_some())
        .ok_or(CarrierError::Kernel {
            what: "the function that sends",
            why: "the kernel has neither __sock_sendmsg nor sock_sendmsg".into(),
        })
}

fn attach_program(object: &Object, hook: Hook, instance: &Instance) -> Result<Link, CarrierError> {
    let program = carrier::program(object, hook.program())?;
    if hook != Hook::Uprobe {
        return program.attach().map_err(kernel_error(hook.place()));
    }
    match instance.breakpoints.at(Function::SlowLog) {
        Reading::Value(place) => {
            carrier::attach_breakpoint(&program, hook.place(), instance, *place, false)
        }
        Reading::Absent(why) => Err(CarrierError::Kernel { what: hook.place(), why: why.clone() }),
    }
}
