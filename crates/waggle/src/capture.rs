//! Every server of the host, found, attached and read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use waggle_model::{Losses, RunningStatement, Server, Statement};
use waggle_probes::nested::Coverage;
use waggle_probes::sessions::{Limits, Sampler, Sessions, TEXT_LIMIT, fits};
use waggle_probes::tap::{Event, Hook, RunTime, Tap, TapError, TapOptions};
use waggle_probes::target::Instance;
use waggle_probes::target::discover::{Change, Found, Watcher};
use waggle_probes::target::layout::Layout;
use waggle_probes::target::recognise::{Builds, Recognised};

/// Records of the rings that are taken in one turn, so that a flood cannot hold up the rest.
const RECORDS_PER_TURN: usize = 20_000;
/// Looks at a server that refuses to be watched before it is left alone: one that starts is not
/// ready at first.
const TRIES_MAX: u32 = 30;

/// How the capture is to work.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaptureOptions {
    /// Only this server.
    pub(crate) pid: Option<u32>,
    /// Of the tap.
    pub(crate) tap: TapOptions,
}

/// A server that is watched.
pub(crate) struct Watched {
    /// Who it is.
    pub(crate) server: Server,
    /// Its build.
    pub(crate) layout: Arc<Layout>,
    /// The rung of the ladder on which it is watched.
    pub(crate) hook: Hook,
    /// Whether the layout was seen to fit a running statement of this server.
    pub(crate) checked: bool,
    /// What did not fit at the last look. A session can end while it is read.
    misfit: Option<Layout>,
    instance: Instance,
    sessions: Result<Sessions, String>,
}

struct Refused {
    found: Found,
    why: String,
    tries: u32,
}

/// What became of a server.
pub(crate) enum News {
    /// It is watched from now on.
    Attached(u32),
    /// It cannot be watched.
    Refused(u32, String),
    /// It ended. All that it ran was handed over.
    Gone(Server),
}

/// What runs now in one server.
pub(crate) type Running = Result<Vec<RunningStatement>, String>;

/// The capture of every server of this host, or of one.
pub(crate) struct Capture {
    tap: Tap,
    sampler: Result<Sampler, String>,
    watcher: Watcher,
    builds: Builds,
    watched: BTreeMap<u32, Watched>,
    refused: BTreeMap<u32, Refused>,
    /// What is no longer watched, and has not been told.
    dropped: Vec<News>,
}

impl Capture {
    /// Loads what every server shares; nothing is attached yet.
    pub(crate) fn new(options: CaptureOptions) -> Result<Capture, TapError> {
        let mut watcher = Watcher::new(Path::new("/proc"));
        if let Some(pid) = options.pid {
            watcher.watch_only(pid);
        }
        Ok(Capture {
            tap: Tap::new(options.tap)?,
            sampler: Sampler::load().map_err(|error| error.to_string()),
            watcher,
            builds: Builds::default(),
            watched: BTreeMap::new(),
            refused: BTreeMap::new(),
            dropped: Vec::new(),
        })
    }

    /// The servers that are watched, by pid.
    pub(crate) fn watched(&self) -> &BTreeMap<u32, Watched> {
        &self.watched
    }

    /// Looks for servers that came or went, and attaches to the new ones. Statements of those that
    /// ended are handed over.
    pub(crate) fn look(&mut self, consume: &mut dyn FnMut(&Statement<'_>)) -> Vec<News> {
        let mut news = std::mem::take(&mut self.dropped);
        for change in self.watcher.changes() {
            match change {
                Change::Started(now) => self.attach(now, 0, &mut news),
                Change::Gone(before) => self.forget(before.pid, &mut news, consume),
                Change::Restarted { before, now } => {
                    self.forget(before.pid, &mut news, consume);
                    self.attach(now, 0, &mut news);
                }
            }
        }
        let again: Vec<u32> = self.refused.keys().copied().collect();
        for pid in again {
            if let Some(Refused { found, tries, .. }) = self.refused.remove(&pid) {
                self.attach(found, tries, &mut news);
            }
        }
        news
    }

    fn attach(&mut self, found: Found, tries: u32, news: &mut Vec<News>) {
        if tries > TRIES_MAX {
            return;
        }
        match self.try_attach(&found) {
            Ok(watched) => {
                news.push(News::Attached(found.pid));
                self.watched.insert(found.pid, watched);
            }
            Err(why) => {
                if tries == 0 {
                    news.push(News::Refused(found.pid, why.clone()));
                }
                self.refused.insert(found.pid, Refused { found, why, tries: tries + 1 });
            }
        }
    }

    fn try_attach(&mut self, found: &Found) -> Result<Watched, String> {
        let Recognised { server, layout, instance } =
            self.builds.recognise(found).map_err(|error| error.to_string())?;
        let hook = self.tap.attach(&instance, &layout).map_err(|error| error.to_string())?;
        let sessions = Sessions::of(&layout).map_err(|error| error.to_string());
        Ok(Watched { server, layout, hook, checked: false, misfit: None, instance, sessions })
    }

    fn forget(&mut self, pid: u32, news: &mut Vec<News>, consume: &mut dyn FnMut(&Statement<'_>)) {
        self.refused.remove(&pid);
        if let Some(watched) = self.watched.remove(&pid) {
            while self.drain(&mut *consume) {}
            self.tap.settle(pid, &[], monotonic_ns(), consume);
            self.tap.detach(pid);
            news.push(News::Gone(watched.server));
        }
    }

    /// Ends the watch over every server but one.
    pub(crate) fn keep_only(&mut self, pid: u32) {
        for other in self.watched.keys().filter(|other| **other != pid) {
            self.tap.detach(*other);
        }
        self.watched.retain(|watched, _| *watched == pid);
    }

    /// Why servers are not watched, by pid.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (u32, &str)> {
        self.refused.iter().map(|(pid, refused)| (*pid, refused.why.as_str()))
    }

    /// Hands over the statements that ended since the last call. Returns whether more are waiting.
    pub(crate) fn drain(&mut self, consume: impl FnMut(&Statement<'_>)) -> bool {
        self.tap.drain(RECORDS_PER_TURN, consume) == RECORDS_PER_TURN
    }

    /// The same with all that the tap has to tell.
    pub(crate) fn drain_events(&mut self, consume: impl FnMut(Event<'_>)) -> bool {
        self.tap.drain_events(RECORDS_PER_TURN, consume) == RECORDS_PER_TURN
    }

    /// Reads what runs now in every server.
    pub(crate) fn sample(&mut self) -> BTreeMap<u32, Running> {
        let Capture { tap, sampler, watched, .. } = self;
        let sample = |watched: &mut Watched| -> Running {
            let sampler = sampler.as_ref().map_err(Clone::clone)?;
            let sessions = watched.sessions.as_mut().map_err(|why| why.clone())?;
            let clock = watched.layout.clock;
            let limits = Limits {
                text: TEXT_LIMIT,
                start_to_monotonic: &|start_us| {
                    tap.clocks().start_ns(clock, start_us, monotonic_ns())
                },
            };
            let sample = sampler.sample(&watched.instance, sessions, limits);
            sample.map(|sample| sample.running).map_err(|error| error.to_string())
        };
        let mut samples: BTreeMap<u32, Running> =
            watched.iter_mut().map(|(pid, watched)| (*pid, sample(watched))).collect();
        for (pid, running) in &mut samples {
            for statement in running.iter_mut().flatten() {
                statement.settings = self.tap.settings(*pid, statement);
            }
        }
        for (pid, running) in &samples {
            self.check(*pid, running.as_deref().unwrap_or_default());
        }
        samples
    }

    /// Checks the layout of a server once, on a statement that runs: a field that does not fit at two
    /// looks, one after the other, is absent from then on.
    fn check(&mut self, pid: u32, running: &[RunningStatement]) {
        let Some(watched) = self.watched.get_mut(&pid).filter(|watched| !watched.checked) else {
            return;
        };
        // Not a session that logs in or leaves: it is not whole.
        let fitting = running
            .iter()
            .filter(|running| running.command.is_statement())
            .find_map(|running| fits(&watched.layout, &watched.instance, running));
        let Some(fitting) = fitting else { return };
        if is_same(&fitting, &watched.layout) {
            watched.checked = true;
            return;
        }
        if !watched.misfit.as_ref().is_some_and(|before| is_same(before, &fitting)) {
            watched.misfit = Some(fitting);
            return;
        }
        watched.checked = true;
        watched.sessions = Sessions::of(&fitting).map_err(|error| error.to_string());
        watched.layout = Arc::new(fitting);
        if let Err(error) = self.tap.narrow(pid, &watched.layout) {
            self.tap.detach(pid);
            self.watched.remove(&pid);
            self.dropped.push(News::Refused(pid, error.to_string()));
        }
    }

    /// Hands over the statements whose end became certain by looking at the sessions.
    pub(crate) fn settle(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        consume: impl FnMut(&Statement<'_>),
    ) {
        self.tap.settle(pid, running, looked_ns, consume);
    }

    /// What was lost of a server since it was first watched.
    pub(crate) fn losses(&self, pid: u32) -> Losses {
        self.tap.losses(pid)
    }

    /// What of the nested statements of a server is seen; `None` while that was not asked for.
    pub(crate) fn nested(&self, pid: u32) -> Option<&Coverage> {
        self.tap.nested(pid)
    }

    /// The kernel's statistics of the programs: runs at sends, and the time of all.
    pub(crate) fn run_time(&self) -> RunTime {
        let RunTime { runs, time } = self.tap.run_time();
        RunTime { runs, time: time + self.tap.nested_run_time().time }
    }
}

/// Whether two layouts of one build show the same.
fn is_same(one: &Layout, other: &Layout) -> bool {
    one.fields == other.fields && one.clock == other.clock
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32).as_nanos() as u64
}
