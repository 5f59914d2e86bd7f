//! Finds, attaches and reads every server of the host.

mod arrival;
mod locks;
mod parting;

pub use arrival::{Missing, WhyMissing};
pub(crate) use locks::LockQuestion;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use waggle_host::monotonic_ns;
use waggle_model::{Logins, Losses, Reading, RunningStatement, Server, Statement};
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_probes::carrier::RunTime;
use waggle_probes::coin::Tosses;
use waggle_probes::nested::Coverage;
use waggle_probes::servers::Instance;
use waggle_probes::servers::digest_length::DigestLength;
use waggle_probes::servers::discover::{Change, Found, Watcher};
use waggle_probes::servers::layout::{Field, Layout};
use waggle_probes::servers::owner::Owner;
use waggle_probes::servers::recognise::{Answered, Builds, RecogniseError, Recognised};
use waggle_probes::servers::shift::Shift;
use waggle_probes::servers::x_protocol::XProtocol;
use waggle_probes::sessions::{
    Limits, LockReader, Sampler, Sessions, TEXT_LIMIT, TEXTS_LIMIT, fits,
};
use waggle_probes::tap::{Event, Hook, ServerClock, TapError};
use waggle_probes::waits::Waits;

use crate::cost::KernelTime;
use crate::news::{ENDED, News, Parted};
use crate::places::{Place, refusal};
use crate::refused::{RefusedServers, Told};

/// How the capture is to work.
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    /// Only this server.
    pub pid: Option<u32>,
    /// Of the tap.
    pub tap: TapOptions,
    /// A field that no build shows. Only for tests.
    pub hide: Option<Field>,
    /// A field that fits no running statement. Only for tests.
    pub misfit: Option<Field>,
    /// A place that is read wrongly. Only for tests.
    pub shift: Option<Shift>,
}

/// A server that is watched.
pub struct Watched {
    /// Who it is.
    pub server: Server,
    /// Its build.
    pub layout: Arc<Layout>,
    /// The rung of the ladder on which it is watched.
    pub hook: Hook,
    /// Who runs it.
    pub owner: Owner,
    /// Whether the layout was seen to fit a running statement of this server.
    pub checked: bool,
    /// What did not fit at the last look. A session can end while it is read.
    misfit: Option<Layout>,
    /// Why nothing is left by which to watch it. It is let go at the end of the look.
    unfit: Option<String>,
    found: Found,
    instance: Instance,
    digest_length: DigestLength,
    x_protocol: XProtocol,
    sessions: Result<Sessions, String>,
    locks: Option<LockReader>,
    /// At the last look.
    logins: Reading<Logins>,
}

impl Watched {
    /// Whether a pool of threads serves its sessions.
    pub fn is_pooled(&self) -> bool {
        self.instance.waiting.is_pooled
    }

    /// Its process.
    pub fn found(&self) -> &Found {
        &self.found
    }
}

/// What runs now in one server.
pub type Running = Result<Vec<RunningStatement>, String>;

/// The capture of every server of this host, or of one.
pub struct Capture {
    tap: Tap,
    sampler: Result<Sampler, String>,
    watcher: Watcher,
    builds: Builds,
    /// The one server that is asked for.
    pid: Option<u32>,
    /// Whether it is measured where the time of statements goes.
    waits: bool,
    hide: Option<Field>,
    misfit: Option<Field>,
    shift: Option<Shift>,
    watched: BTreeMap<u32, Watched>,
    refused: RefusedServers,
    /// Bytes of text that are captured of a statement.
    text_limit: u32,
}

/// How much is read of the texts that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningTexts {
    /// As much as is shown of a text.
    Shown,
    /// As much as is captured at the end of a statement, so that both give one digest.
    AsCaptured,
}

impl Capture {
    /// Loads what every server shares; nothing is attached yet.
    pub fn new(options: CaptureOptions) -> Result<Capture, TapError> {
        let mut watcher = Watcher::new(Path::new("/proc"));
        if let Some(pid) = options.pid {
            watcher.watch_only(pid);
        }
        let text_limit = options.tap.text_limit;
        let waits = options.tap.waits;
        let builds = match waits {
            true => Builds::default().with_waits(),
            false => Builds::default(),
        };
        Ok(Capture {
            tap: Tap::new(options.tap)?,
            sampler: Sampler::load().map_err(|error| error.to_string()),
            watcher,
            builds,
            pid: options.pid,
            waits,
            hide: options.hide,
            misfit: options.misfit,
            shift: options.shift,
            watched: BTreeMap::new(),
            refused: RefusedServers::default(),
            text_limit,
        })
    }

    /// The servers that are watched, by pid.
    pub fn watched(&self) -> &BTreeMap<u32, Watched> {
        &self.watched
    }

    /// What of a server is not measured, and why, one line each.
    pub fn absences(&self, pid: u32) -> Vec<String> {
        let of_layout = self.watched.get(&pid).map(|watched| watched.layout.absences());
        let already = self.waits(pid).filter(|waits| waits.parts.why().is_none());
        let already = already.and_then(|waits| waits.already.why());
        let already = already.map(|why| {
            format!("where the time of statements goes that run already is not known: {why}")
        });
        let end = self.tap.death_refusal(pid);
        let end = end.map(|why| format!("how it ends, should it end, is not told: {why}"));
        let absences = of_layout.into_iter().flatten();
        absences.chain(already).chain(end).map(|absent| format!("pid {pid}: {absent}")).collect()
    }

    /// Looks for servers that started or ended, and attaches to the new ones, one by one, as soon as their programs are
    /// read ([`Capture::take_answer`]). Hands over the statements of ended servers.
    pub fn look(&mut self, consume: &mut dyn FnMut(&Statement<'_>)) -> Vec<News> {
        let mut news = Vec::new();
        for (pid, watched) in &mut self.watched {
            // A server that starts has not read its options yet.
            if let length @ Reading::Value(_) = watched.digest_length.read(*pid) {
                watched.server.max_digest_length = length;
            }
            self.tap.expect_x_protocol(*pid, &watched.x_protocol.read(*pid));
        }
        self.ask_for_new(&mut news, consume);
        for found in self.refused.due() {
            self.builds.ask(found);
        }
        news.extend(self.take_answer(consume));
        news
    }

    fn ask_for_new(&mut self, news: &mut Vec<News>, consume: &mut dyn FnMut(&Statement<'_>)) {
        for change in self.watcher.changes() {
            match change {
                Change::Started(now) => self.builds.ask(now),
                Change::Gone(before) => self.forget(before.pid, news, consume),
                Change::Restarted { before, now } => {
                    self.forget(before.pid, news, consume);
                    self.builds.ask(now);
                }
            }
        }
    }

    /// Attaches to a server whose program has been read. It waits for none.
    ///
    /// That takes a while, in which the rings fill: they are to be emptied before the next one.
    pub fn take_answer(&mut self, consume: &mut dyn FnMut(&Statement<'_>)) -> Vec<News> {
        let mut news = Vec::new();
        // Those whose users come first find the places free.
        if let Some(answered) = self.builds.next_answer() {
            self.attach(answered, &mut news, consume);
        }
        news
    }

    fn attach(
        &mut self,
        answered: Answered,
        news: &mut Vec<News>,
        consume: &mut dyn FnMut(&Statement<'_>),
    ) {
        let Answered { found, owner, outcome } = answered;
        let pid = found.pid;
        // What is new may not have mapped its libraries yet.
        let is_starting = outcome.as_ref().is_err_and(|error| {
            error.is_starting() || error.is_of_process() && arrival::is_new(pid)
        });
        let is_none = outcome.as_ref().is_err_and(RecogniseError::is_no_server) && !found.is_named;
        let tried = match outcome {
            Ok(recognised) => self.try_attach(&found, recognised, owner, news, consume),
            Err(error) => Err(error.to_string()),
        };
        match tried {
            Ok(watched) => {
                news.push(News::Attached(pid));
                self.refused.forget(pid);
                self.watched.insert(pid, watched);
            }
            Err(_) if found.has_ended() => self.refused.forget(pid),
            Err(_) if is_none => self.refused.note_none(found, owner),
            Err(why) => match self.refused.add(found, owner, why.clone(), is_starting) {
                Told::Alone => news.push(News::Refused(pid, why)),
                Told::Counted(count) => news.push(News::RefusedMany(owner, count)),
                Told::Not => {}
            },
        }
    }

    fn try_attach(
        &mut self,
        found: &Found,
        recognised: Recognised,
        owner: Owner,
        news: &mut Vec<News>,
        consume: &mut dyn FnMut(&Statement<'_>),
    ) -> Result<Watched, String> {
        let Recognised { server, mut layout, mut instance, digest_length, x_protocol } = recognised;
        if let Some(field) = self.hide {
            layout = Arc::new(layout.without(field));
        }
        if let Some(shift) = self.shift {
            shift.apply(&mut instance, &mut layout);
        }
        let places = self.watched.values().map(|watched| Place {
            owner: watched.owner,
            layout: &watched.layout,
            current_thd: watched.instance.current_thd,
        });
        let asked = Place { owner, layout: &layout, current_thd: instance.current_thd };
        if let Some(why) = refusal(places, &asked) {
            return Err(why);
        }
        if owner.is_trusted() {
            self.make_room(instance.pid, news, consume);
        }
        let hook = self.tap.attach(&instance, &layout).map_err(|error| error.to_string())?;
        self.tap.expect_x_protocol(instance.pid, &x_protocol.read(instance.pid));
        let sessions = Sessions::of(&layout).map_err(|error| error.to_string());
        Ok(Watched {
            server,
            layout,
            hook,
            owner,
            checked: false,
            misfit: None,
            unfit: None,
            found: found.clone(),
            instance,
            digest_length,
            x_protocol,
            sessions,
            locks: None,
            logins: Reading::absent("nobody has looked yet"),
        })
    }

    /// Lets a server of another user go where none of the places is free in which the kernel looks for this one.
    fn make_room(
        &mut self,
        pid: u32,
        news: &mut Vec<News>,
        consume: &mut dyn FnMut(&Statement<'_>),
    ) {
        let is_others = |other: &u32| {
            self.watched.get(other).is_some_and(|watched| !watched.owner.is_trusted())
        };
        let Some(other) = self.tap.in_the_way(pid).into_iter().find(is_others) else { return };
        let why = "its place is needed by a server of root, mysql or the user of waggle".to_owned();
        self.tap.drain(Amount::UpToNow, &mut *consume);
        self.tap.settle(other, &[], monotonic_ns(), consume);
        if let Some(Watched { found, owner, .. }) = self.watched.get(&other) {
            // Its end is told; it is tried again, for a place may be free then.
            self.refused.add(found.clone(), *owner, why.clone(), false);
        }
        news.extend(self.let_go(other, Parted::RunsOn { why }).map(News::Gone));
    }

    /// Ends the watch over every server but one, and looks for no other.
    pub fn keep_only(&mut self, pid: u32) {
        for other in self.watched.keys().filter(|other| **other != pid) {
            self.tap.detach(*other);
        }
        self.watched.retain(|watched, _| *watched == pid);
        self.watcher.watch_only(pid);
    }

    /// Why servers are not watched, by pid.
    pub fn refused(&self) -> impl Iterator<Item = (u32, &str)> {
        self.refused.all()
    }

    /// Hands over the statements that ended since the last call, those of one turn. Returns whether more are waiting.
    pub fn drain(&mut self, consume: impl FnMut(&Statement<'_>)) -> bool {
        self.tap.drain(Amount::Turn, consume)
    }

    /// How full the fullest ring was when it was last drained, 0 to 1.
    pub(crate) fn filled(&self) -> f64 {
        self.tap.filled()
    }

    /// Hands over all that the tap has to tell. Returns whether more than a turn is waiting.
    pub fn drain_events(&mut self, amount: Amount, consume: impl FnMut(Event<'_>)) -> bool {
        self.tap.drain_events(amount, consume)
    }

    /// The logins under way in a server when its sessions were last read.
    pub fn logins(&self, pid: u32) -> Reading<Logins> {
        let none = || Reading::absent("the server is not watched any more");
        self.watched.get(&pid).map_or_else(none, |watched| watched.logins.clone())
    }

    /// Reads what runs now in every server.
    pub fn sample(&mut self, texts: RunningTexts) -> BTreeMap<u32, Running> {
        let pids: Vec<u32> = self.watched.keys().copied().collect();
        let sample = |pid| Some((pid, self.sample_one(pid, texts)?));
        let mut samples: BTreeMap<u32, Running> = pids.into_iter().filter_map(sample).collect();
        for (pid, running) in &mut samples {
            if let Ok(running) = running {
                self.tap.note_waits(*pid, running);
            }
            for statement in running.iter_mut().flatten() {
                statement.settings = self.tap.settings(*pid, statement);
            }
        }
        for (pid, running) in &samples {
            self.check(*pid, running.as_deref().unwrap_or_default());
        }
        samples
    }

    /// Reads what runs now in one server. All servers together share the room for texts.
    fn sample_one(&mut self, pid: u32, texts: RunningTexts) -> Option<Running> {
        let texts_of_each = TEXTS_LIMIT / self.watched.len().max(1) as u64;
        let Capture { tap, sampler, watched, text_limit, .. } = self;
        let Watched { found, layout, instance, sessions, logins, .. } = watched.get_mut(&pid)?;
        let text = match texts {
            RunningTexts::Shown => TEXT_LIMIT,
            RunningTexts::AsCaptured => TEXT_LIMIT.max(*text_limit),
        };
        let clock = ServerClock::of(layout, instance);
        let limits = Limits {
            text,
            texts: texts_of_each,
            start_to_monotonic: &|start_us| tap.clocks().start_ns(clock, start_us, monotonic_ns()),
        };
        let (sampler, sessions) = match (sampler, sessions) {
            (Ok(sampler), Ok(sessions)) => (sampler, sessions),
            (Err(why), _) | (_, Err(why)) => {
                *logins = Reading::absent(&**why);
                return Some(Err(why.clone()));
            }
        };
        let sample = sampler.sample(instance, sessions, limits);
        // Of a process that has ended nothing runs, which is not what a reader wants to know.
        let sample = match found.has_ended() {
            true => Err(ENDED.to_owned()),
            false => sample.map_err(|error| error.to_string()),
        };
        *logins = match &sample {
            Ok(sample) => sample.logins.clone(),
            Err(why) => Reading::absent(&**why),
        };
        Some(sample.map(|sample| sample.running))
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
        let Some(mut fitting) = fitting else { return };
        if let Some(field) = self.misfit {
            fitting = fitting.without(field);
        }
        if is_same(&fitting, &watched.layout) {
            watched.checked = true;
            return;
        }
        if !watched.misfit.as_ref().is_some_and(|before| is_same(before, &fitting)) {
            watched.misfit = Some(fitting);
            return;
        }
        watched.checked = true;
        if let Err(error) = self.tap.narrow(&watched.instance, &fitting) {
            // Up to its end the watch goes on as before.
            watched.unfit = Some(error.to_string());
            return;
        }
        watched.sessions = Sessions::of(&fitting).map_err(|error| error.to_string());
        watched.locks = None;
        watched.layout = Arc::new(fitting);
    }

    /// Hands over the statements whose end became certain by looking at the sessions.
    pub fn settle(
        &mut self,
        pid: u32,
        running: &[RunningStatement],
        looked_ns: u64,
        consume: impl FnMut(&Statement<'_>),
    ) {
        self.tap.settle(pid, running, looked_ns, consume);
    }

    /// What was lost of a server that is watched, since it was attached.
    pub fn losses(&self, pid: u32) -> Losses {
        self.tap.losses(pid)
    }

    /// What the trial counts, where one was asked for and a server is watched.
    pub fn tosses(&self) -> Option<Tosses> {
        self.tap.tosses()
    }

    /// What of the nested statements of a server is seen; `None` while that was not asked for.
    pub fn nested(&self, pid: u32) -> Option<&Coverage> {
        self.tap.nested(pid)
    }

    /// What is known of the waits of a server; `None` while they were not asked for.
    pub fn waits(&self, pid: u32) -> Option<&Waits> {
        self.tap.waits(pid)
    }

    /// Whether it is measured where the time of the server's statements goes.
    pub fn parts(&self, pid: u32) -> Reading<()> {
        let off = || Reading::absent("waits are not measured (--no-waits)");
        self.waits(pid).map_or_else(off, |waits| waits.parts.clone())
    }

    /// Why the processor time of a server is not sampled, where that was asked for.
    pub fn profile_refusal(&self, pid: u32) -> Option<&str> {
        self.tap.profile_refusal(pid)
    }

    /// The kernel's statistics of the programs.
    pub fn kernel_time(&self) -> KernelTime {
        let RunTime { runs, time } = self.tap.run_time();
        let statements = RunTime { runs, time: time + self.tap.nested_run_time().time };
        let switches = self.waits.then(|| self.tap.waits_run_time().time);
        KernelTime { statements, switches }
    }
}

/// Whether two layouts of one build show the same.
fn is_same(one: &Layout, other: &Layout) -> bool {
    one.fields == other.fields && one.clock == other.clock
}
