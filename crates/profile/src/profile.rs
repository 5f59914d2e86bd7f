//! What came of the samples.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use waggle_model::{DigestKey, DigestName, TimeClass};

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, or its file and begin where it has none.
    pub name: Arc<str>,
    /// Its file, without folders.
    pub file: Arc<str>,
    /// Whether the file has a name of it.
    pub is_named: bool,
    /// Whether it is one of the kernel.
    pub is_kernel: bool,
}

/// Functions of the C library in which threads and programs begin, and what the servers wrap around those. Where the
/// library has no names, any function of it is one: nothing else calls into a server.
const BEGINS: [&str; 10] = [
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "pfs_spawn_thread",
    "thread_start",
];
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-2.", "libpthread", "libstdc++", "ld-"];

/// In place of the file of a function that stands for a wait.
const WAIT: &str = "[wait]";

impl Function {
    /// One of the kernel.
    pub(crate) fn of_kernel(name: Option<String>) -> Function {
        Function {
            is_named: name.is_some(),
            name: name.map_or_else(|| "[kernel]".into(), Into::into),
            file: "[kernel]".into(),
            is_kernel: true,
        }
    }

    /// What stands for a wait, below the functions that wait.
    pub(crate) fn of_wait(class: TimeClass) -> Function {
        Function {
            name: format!("[{}]", class.name()).into(),
            file: WAIT.into(),
            is_named: true,
            is_kernel: false,
        }
    }

    /// Whether it stands for a wait.
    pub fn is_wait(&self) -> bool {
        &*self.file == WAIT
    }

    /// One that nobody knows.
    pub(crate) fn unknown(address: u64) -> Function {
        let name = format!("[unknown]+{:#x}", address & !0xfff).into();
        Function { name, file: "[unknown]".into(), is_named: false, is_kernel: false }
    }

    /// Whether a thread begins there, so that it has no caller.
    pub(crate) fn begins_threads(&self) -> bool {
        let is_begin = self.is_named && BEGINS.contains(&self.base_name());
        is_begin || self.is_of_c_library()
    }

    /// Whether it lies in the C library or what comes with it.
    pub(crate) fn is_of_c_library(&self) -> bool {
        C_LIBRARIES.iter().any(|library| self.file.starts_with(library))
    }

    /// Its name without its arguments.
    pub(crate) fn base_name(&self) -> &str {
        match self.is_named {
            true => self.name.split('(').next().unwrap_or_default().trim_end(),
            false => "",
        }
    }
}

/// For whom a thread worked.
#[derive(Clone, Debug)]
pub enum Work {
    /// For statements of this digest.
    Digest {
        /// The digest.
        key: DigestKey,
        /// Its name. Digests are told apart without.
        name: Option<Arc<DigestName>>,
    },
    /// For the server itself: the thread of this name.
    Thread(Arc<str>),
    /// For a statement that was not seen to end, and did not run at the end.
    Unmatched,
}

impl PartialEq for Work {
    fn eq(&self, other: &Work) -> bool {
        match (self, other) {
            (Work::Digest { key, .. }, Work::Digest { key: other, .. }) => key == other,
            (Work::Thread(name), Work::Thread(other)) => name == other,
            (one, other) => discriminant(one) == discriminant(other),
        }
    }
}

impl Eq for Work {}

impl Hash for Work {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Work::Digest { key, .. } => key.hash(state),
            Work::Thread(name) => name.hash(state),
            Work::Unmatched => {}
        }
    }
}

/// For whom a thread of a server worked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The server.
    pub pid: u32,
    /// What for.
    pub work: Work,
}

impl Owner {
    /// In words.
    pub fn title(&self) -> &str {
        match &self.work {
            Work::Digest { name: Some(name), .. } => &name.text,
            Work::Digest { name: None, .. } => "(digest)",
            Work::Thread(name) => name,
            Work::Unmatched => "(a statement that was not seen to end)",
        }
    }
}

/// Whether the callers of a function are known up to where its thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Chain {
    /// They are.
    Whole,
    /// A function in between keeps no frame pointer.
    Broken,
    /// There are more than were kept.
    Cut,
}

/// Samples with the same stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// For whom: an index into [`Profile::owners`].
    pub owner: usize,
    /// Indices into [`Profile::functions`], the outermost first.
    pub functions: Vec<usize>,
    /// Whether that is all.
    pub chain: Chain,
    /// How many samples, or how long they were.
    pub count: u64,
}

/// What samples count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Ticks of the clocks of processors at which a thread ran.
    #[default]
    Ticks,
    /// Time off the processor, µs.
    Waits,
}

/// What came of the samples.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What they count.
    pub counts: Counts,
    /// For whom threads worked; some of them may have no samples.
    pub owners: Vec<Owner>,
    /// Every function.
    pub functions: Vec<Function>,
    /// Every stack, the most frequent first.
    pub stacks: Vec<Stack>,
    /// Samples for which there was no room in a table.
    pub left_out: u64,
}

impl Profile {
    /// Samples in it, or their time.
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.count).sum()
    }

    /// Samples whose chain of callers is as this.
    pub fn with_chain(&self, chain: Chain) -> u64 {
        let of_chain = self.stacks.iter().filter(|stack| stack.chain == chain);
        of_chain.map(|stack| stack.count).sum()
    }

    /// Samples in the kernel.
    pub fn in_kernel(&self) -> u64 {
        self.within(|function| function.is_kernel)
    }

    /// Samples in functions of the server and of libraries that their file has no name of.
    pub fn without_name(&self) -> u64 {
        self.within(|function| !function.is_named && !function.is_kernel)
    }

    /// Samples whose innermost function is so.
    fn within(&self, is_so: impl Fn(&Function) -> bool) -> u64 {
        let innermost = |stack: &&Stack| {
            let function = stack.functions.last().and_then(|at| self.functions.get(*at));
            function.is_some_and(&is_so)
        };
        self.stacks.iter().filter(innermost).map(|stack| stack.count).sum()
    }

    /// Samples of each owner, the most first.
    pub fn by_owner(&self) -> Vec<(&Owner, u64)> {
        let mut sums: HashMap<usize, u64> = HashMap::new();
        for stack in &self.stacks {
            *sums.entry(stack.owner).or_default() += stack.count;
        }
        let mut sums: Vec<(usize, u64)> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|(owner, count)| (std::cmp::Reverse(*count), *owner));
        let owner = |(owner, count)| Some((self.owners.get(owner)?, count));
        sums.into_iter().filter_map(owner).collect()
    }

    /// Only the samples of some owners.
    pub fn only(mut self, is_wanted: impl Fn(&Owner) -> bool) -> Profile {
        let owners = &self.owners;
        self.stacks.retain(|stack| owners.get(stack.owner).is_some_and(&is_wanted));
        self
    }
}
