//! The circumstances of a run: what the report says beside the windows.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::window::Cell;

/// The circumstances of a run. What could not be found out is absent, and the report says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run itself.
    pub run: Run,
    /// The computer of the first part of the run.
    pub host: Host,
    /// The computers of its later parts, in their order. A part that an earlier waggle made is not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_up: Vec<TakenUp>,
    /// The server under test.
    pub server: Server,
    /// What it was loaded with.
    pub load: LoadInfo,
    /// What was not run, and why.
    pub not_run: Vec<NotRun>,
    /// What a reader has to know before trusting a number, one sentence each.
    pub caveats: Vec<String>,
}

impl RunInfo {
    /// The computer that measured a part of the run; `None` where it was not stored.
    pub fn host_of(&self, part: u32) -> Option<&Host> {
        if part == 0 {
            return Some(&self.host);
        }
        self.later(part).map(|one| &one.host)
    }

    /// The version of waggle that measured a part of the run; `None` where it was not stored.
    pub fn waggle_of(&self, part: u32) -> Option<&str> {
        if part == 0 {
            return Some(&self.run.waggle_version);
        }
        self.later(part)?.waggle_version.as_deref()
    }

    fn later(&self, part: u32) -> Option<&TakenUp> {
        self.taken_up.iter().find(|one| one.part == part)
    }
}

/// The run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The command as it was given.
    pub command: String,
    /// Version of waggle, and the commit that it was built from where that is known.
    pub waggle_version: String,
    /// When the command was started.
    #[schemars(with = "String")]
    pub begin: Timestamp,
    /// When the last window ended; absent while windows of the schedule are missing.
    #[schemars(with = "Option<String>")]
    pub end: Option<Timestamp>,
    /// From which the order of the windows follows.
    pub seed: u64,
    /// `tiny`, `small` or `full`.
    pub scale: String,
    /// The time that was allowed, s; absent where none was set.
    pub budget_s: Option<f64>,
    /// Cells, scenarios or workloads to which it was confined; empty where it was not.
    pub only: Vec<String>,
    /// How often each arm is measured in each cell by the schedule.
    pub blocks: u32,
    /// Windows of the whole schedule.
    pub windows_planned: u32,
    /// Length of a window, s.
    pub window_s: f64,
    /// Time under load before each window that does not count, shared among its turns, s.
    pub settle_s: f64,
    /// A window in which the hypervisor took more than this share of the processors is void, 0 to 1.
    pub steal_limit: f64,
    /// How often it was interrupted and taken up again.
    pub resumed: u32,
}

/// The computer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Name and version of the operating system.
    pub system: Option<String>,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the processor.
    pub cpu_model: Option<String>,
    /// Processors that are online.
    pub processors: u32,
    /// Memory, bytes; absent where the system does not say.
    pub memory_bytes: Option<u64>,
    /// The hypervisor under which it runs; absent where none is known.
    pub hypervisor: Option<String>,
    /// Who had which processors; absent where nothing was pinned.
    pub pinned: Option<Pinned>,
}

/// On what a run was taken up again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenUp {
    /// Which part of the run began then, as windows have it ([`Window::part`](crate::Window::part)).
    pub part: u32,
    /// The computer.
    pub host: Host,
    /// Version of the waggle that went on; absent where an earlier one did, which did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waggle_version: Option<String>,
}

/// Who had which processors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pinned {
    /// Those of the server.
    pub server: Vec<u32>,
    /// Those of the load.
    pub load: Vec<u32>,
}

/// The server under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// What it says of its version, with the comment of its build.
    pub version: String,
    /// The program, from the directory in which the run was begun where it lies below that; absent where somebody else had
    /// started it.
    pub program: Option<String>,
    /// Options with which every arm was started, as on a command line.
    pub options: Vec<String>,
    /// Whether it was a server of somebody else (`--dsn`), in which only dynamic arms are measured.
    pub is_foreign: bool,
    /// Size of its data before the first window, bytes.
    pub data_bytes: Option<u64>,
    /// Size of its buffer pool, bytes.
    pub buffer_pool_bytes: Option<u64>,
}

/// The load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadInfo {
    /// What sysbench says of its version; absent where the load was that of others.
    pub sysbench_version: Option<String>,
    /// Tables; absent where the load was that of others.
    pub tables: Option<u32>,
    /// Rows of each table; likewise.
    pub rows_per_table: Option<u64>,
}

/// What was not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotRun {
    /// The cell.
    pub cell: Cell,
    /// The scenario; absent for all of them.
    pub scenario: Option<String>,
    /// Why, in a few words, as in `not run: budget`.
    pub why: String,
}

impl NotRun {
    /// There was no time for it.
    pub const BUDGET: &str = "budget";
    /// It was left out by `--only`.
    pub const NOT_ASKED: &str = "not asked";
    /// Its sessions would take more memory than there was.
    pub const MEMORY: &str = "too little memory for so many sessions";
}
