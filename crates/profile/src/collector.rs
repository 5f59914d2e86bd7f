//! Samples and statements while they come.

use std::collections::HashMap;
use std::sync::Arc;

use waggle_model::{DigestKey, DigestName, StatementKey, TimeClass};

use crate::profile::{Chain, Counts, Function, Owner, Profile, Stack, Work};
use crate::table::Table;

/// Most stacks that are told apart; a server that was tried has some thousand.
const STACKS_MAX: usize = 200_000;
/// Most addresses that are told apart.
const ADDRESSES_MAX: usize = 400_000;
/// Most digests and threads.
const OWNERS_MAX: usize = 20_000;
/// Most samples that wait for the end of their statement.
const WAITING_MAX: usize = 2_000_000;
/// Most sessions whose last statement is remembered.
const SESSIONS_MAX: usize = 100_000;

/// A sample as it was taken. Addresses are those of functions, the innermost first; all but the first are those to which
/// the functions return.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The server.
    pub pid: u32,
    /// What its session runs or ran last; `None` for a thread of the server itself.
    pub statement: Option<StatementKey>,
    /// Whether the session runs a statement now.
    pub runs: bool,
    /// The name of the thread.
    pub thread: &'a str,
    /// In the server.
    pub user: &'a [u64],
    /// In the kernel.
    pub kernel: &'a [u64],
    /// There were more functions than were kept.
    pub is_cut: bool,
    /// Why the thread was off the processor, and for how long, µs; `None` where it ran.
    pub waited: Option<(TimeClass, u64)>,
}

/// A stack of one server by its addresses, the innermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Addresses {
    pid: u32,
    user: Box<[u64]>,
    kernel: Box<[u64]>,
    is_cut: bool,
    waits_for: Option<TimeClass>,
}

/// What waits for the end of a statement.
#[derive(Clone, Debug)]
struct Waiting {
    stack: u32,
    /// How much it counts.
    weight: u64,
    /// To whom it belongs if the statement is never seen to end.
    or_else: u32,
}

/// Takes samples and statements.
pub struct Collector {
    owners: Table<Owner>,
    stacks: Table<Addresses>,
    counts: HashMap<(u32, u32), u64>,
    waiting: HashMap<(u32, StatementKey), Vec<Waiting>>,
    waiting_count: usize,
    /// The last statement of each session, by server and session.
    last: HashMap<(u32, u64), (StatementKey, u32)>,
    addresses: Table<(u32, u64)>,
    /// Addresses that nobody was asked about.
    new: Vec<(u32, u64)>,
    named: HashMap<(u32, u64), Option<Function>>,
    samples: u64,
    left_out: u64,
    /// What samples count: that of the last.
    counted: Counts,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            owners: Table::with_room(OWNERS_MAX),
            stacks: Table::with_room(STACKS_MAX),
            counts: HashMap::new(),
            waiting: HashMap::new(),
            waiting_count: 0,
            last: HashMap::new(),
            addresses: Table::with_room(ADDRESSES_MAX),
            new: Vec::new(),
            named: HashMap::new(),
            samples: 0,
            left_out: 0,
            counted: Counts::default(),
        }
    }
}

impl Collector {
    /// Takes a sample.
    pub fn sample(&mut self, taken: &Taken<'_>) {
        self.samples += 1;
        let weight = taken.waited.map_or(1, |(_, us)| us);
        self.counted = if taken.waited.is_some() { Counts::Waits } else { Counts::Ticks };
        let Some((stack, thread)) = self.place(taken) else {
            self.left_out += 1;
            return;
        };
        let Some(statement) = taken.statement else {
            return self.count(thread, stack, weight);
        };
        let last = self.last.get(&(taken.pid, statement.thd));
        if let Some((_, digest)) = last.filter(|(last, _)| *last == statement) {
            // After its reply, or between two of them.
            let digest = *digest;
            return self.count(digest, stack, weight);
        }
        if self.waiting_count >= WAITING_MAX {
            self.left_out += 1;
            return;
        }
        let or_else =
            if taken.runs { self.owner(taken.pid, Work::Unmatched) } else { Some(thread) };
        let Some(or_else) = or_else else { return self.left_out += 1 };
        self.waiting_count += 1;
        let waiting = self.waiting.entry((taken.pid, statement)).or_default();
        waiting.push(Waiting { stack, weight, or_else });
    }

    /// A statement ended, or runs at the end. `name` is called where its digest is new.
    pub fn ended(
        &mut self,
        pid: u32,
        statement: StatementKey,
        key: DigestKey,
        name: impl FnOnce() -> DigestName,
    ) {
        let digest = Owner { pid, work: Work::Digest { key, name: None } };
        let owner = match self.owners.has(&digest) {
            true => self.owners.number(digest),
            false => {
                let work = Work::Digest { key, name: Some(Arc::new(name())) };
                self.owner(pid, work)
            }
        };
        let Some(owner) = owner else { return };
        for one in self.waiting.remove(&(pid, statement)).into_iter().flatten() {
            self.waiting_count = self.waiting_count.saturating_sub(1);
            self.count(owner, one.stack, one.weight);
        }
        if self.last.len() >= SESSIONS_MAX {
            self.last.clear();
        }
        self.last.insert((pid, statement.thd), (statement, owner));
    }

    /// Whether samples wait for the end of a statement.
    pub fn awaits(&self, pid: u32, statement: StatementKey) -> bool {
        self.waiting.contains_key(&(pid, statement))
    }

    /// Addresses of a server that nobody was asked about, no more than `most`.
    pub fn take_new(&mut self, most: usize) -> Option<(u32, Vec<u64>)> {
        let (pid, _) = *self.new.first()?;
        let mut taken = Vec::new();
        self.new.retain(|(of, address)| {
            let is_taken = *of == pid && taken.len() < most;
            if is_taken {
                taken.push(*address);
            }
            !is_taken
        });
        Some((pid, taken))
    }

    /// Whether there are addresses that nobody was asked about.
    pub fn new_addresses(&self) -> usize {
        self.new.len()
    }

    /// Takes what an address of a server is; `None` where it is in no file.
    pub fn name(&mut self, pid: u32, address: u64, function: Option<Function>) {
        if self.addresses.has(&(pid, address)) {
            self.named.insert((pid, address), function);
        }
    }

    /// Samples so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// What it has become. `kernel` names the functions of the kernel.
    pub fn finish(mut self, kernel: &dyn Fn(u64) -> Option<String>) -> Profile {
        for one in std::mem::take(&mut self.waiting).into_values().flatten() {
            self.count(one.or_else, one.stack, one.weight);
        }
        let Collector { owners, stacks, counts, named, counted, .. } = self;
        let mut functions = Table::with_room(usize::MAX);
        let stacks: Vec<(Vec<u32>, Chain)> = stacks
            .into_things()
            .iter()
            .map(|stack| resolved(stack, &named, kernel, &mut functions))
            .collect();
        let mut merged: HashMap<(u32, &[u32], Chain), u64> = HashMap::new();
        for ((owner, stack), count) in counts {
            let Some((frames, chain)) = stacks.get(stack as usize) else { continue };
            *merged.entry((owner, frames, *chain)).or_default() += count;
        }
        let whole = |((owner, frames, chain), count): ((u32, &[u32], Chain), u64)| Stack {
            owner: owner as usize,
            functions: frames.iter().map(|function| *function as usize).collect(),
            chain,
            count,
        };
        let mut stacks: Vec<Stack> = merged.into_iter().map(whole).collect();
        stacks.sort_by(|one, other| {
            let key = |stack: &Stack| (std::cmp::Reverse(stack.count), stack.owner);
            key(one).cmp(&key(other)).then_with(|| one.functions.cmp(&other.functions))
        });
        Profile {
            counts: counted,
            owners: owners.into_things(),
            functions: functions.into_things(),
            stacks,
            left_out: self.left_out,
        }
    }

    fn owner(&mut self, pid: u32, work: Work) -> Option<u32> {
        self.owners.number(Owner { pid, work })
    }

    fn count(&mut self, owner: u32, stack: u32, weight: u64) {
        // Not more than there are stacks and owners of samples.
        let count = self.counts.entry((owner, stack)).or_default();
        *count = count.saturating_add(weight);
    }

    /// The numbers of the stack and of the thread of a sample.
    fn place(&mut self, taken: &Taken<'_>) -> Option<(u32, u32)> {
        let thread = self.owner(taken.pid, Work::Thread(taken.thread.into()))?;
        let stack = Addresses {
            pid: taken.pid,
            user: called_from(taken.user),
            kernel: called_from(taken.kernel),
            is_cut: taken.is_cut,
            waits_for: taken.waited.map(|(class, _)| class),
        };
        for address in &stack.user {
            let place = (taken.pid, *address);
            if !self.addresses.has(&place) && self.addresses.number(place).is_some() {
                self.new.push(place);
            }
        }
        Some((self.stacks.number(stack)?, thread))
    }
}

/// Addresses within the functions: a call can be the last instruction of one, so that it returns to the next.
fn called_from(addresses: &[u64]) -> Box<[u64]> {
    let within = |(at, address): (usize, &u64)| address.saturating_sub(u64::from(at > 0));
    addresses.iter().enumerate().map(within).collect()
}

/// A stack by its functions, the outermost first.
fn resolved(
    stack: &Addresses,
    named: &HashMap<(u32, u64), Option<Function>>,
    kernel: &dyn Fn(u64) -> Option<String>,
    functions: &mut Table<Function>,
) -> (Vec<u32>, Chain) {
    let mut frames = Vec::new();
    frames.extend(stack.waits_for.and_then(|class| functions.number(Function::of_wait(class))));
    for address in &stack.kernel {
        frames.extend(functions.number(Function::of_kernel(kernel(*address))));
    }
    let mut outermost = None;
    let mut is_broken = stack.user.is_empty();
    for (at, address) in stack.user.iter().enumerate() {
        let function = match named.get(&(stack.pid, *address)) {
            Some(Some(function)) => function.clone(),
            // What was innermost ran there; what looks like a caller and is in no file is none.
            Some(None) if at > 0 => {
                is_broken = true;
                break;
            }
            _ => Function::unknown(*address),
        };
        outermost = Some((at, function.clone()));
        frames.extend(functions.number(function));
    }
    let is_whole = outermost.is_some_and(|(at, function)| at > 0 && function.begins_threads());
    let chain = match (is_broken, stack.is_cut, is_whole) {
        (false, false, true) => Chain::Whole,
        (_, true, _) => Chain::Cut,
        _ => Chain::Broken,
    };
    frames.reverse();
    (frames, chain)
}
