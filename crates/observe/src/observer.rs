//! The loop of every command that watches.

mod ending;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use waggle_account::{Books, Grouping};
use waggle_host::{Process, ProcessorTimes, monotonic_ns};
use waggle_model::{
    Identity, Logins, Loss, Losses, Reading, Record, RunningStatement, SeenLocks, Server,
    Statement, Unread,
};
use waggle_probes::capture::Amount;
use waggle_probes::tap::Event;
use waggle_probes::urgent::Urgent;

use crate::Clocks;
use crate::account::Account;
use crate::blockers::Blockers;
use crate::capture::{Capture, Running, RunningTexts};
use crate::cost::Meter;
use crate::lock_waits::{Unanswered, shorten};
use crate::lost::LostBefore;
use crate::news::News;
use crate::pace::Pace;
use crate::remembered::Remembered;
use crate::silence;
use crate::sink::Sinks;

/// How often servers that started or ended are looked for.
const SERVERS_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether the programs of new ones have been read.
const ANSWERS_EVERY: Duration = Duration::from_millis(50);

/// How to observe.
#[derive(Clone, Copy, Debug)]
pub struct ObserverOptions {
    /// Length of an interval. The sessions are looked at when it ends.
    pub interval: Duration,
    /// By what statements are grouped in records.
    pub grouping: Grouping,
    /// Whether servers that start or end are looked for.
    pub looks_for_servers: bool,
}

/// What was seen in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Statements in records.
    pub captured: u64,
    /// What was lost.
    pub losses: Losses,
    /// Statements of waggle's own, which are in no record.
    pub own: u64,
}

/// Watches servers, and feeds sinks.
pub struct Observer {
    capture: Capture,
    options: ObserverOptions,
    accounts: Accounts,
    meter: Meter,
    lost_before: LostBefore,
    summary: Summary,
    pace: Pace,
    clocks: Clocks,
    blockers: Blockers,
}

/// What is so when an interval ends.
struct Present {
    running: Reading<Vec<RunningStatement>>,
    logins: Reading<Logins>,
    unread: Reading<Unread>,
}

/// By the pid of the server.
type Accounts = BTreeMap<u32, Account>;

impl Observer {
    /// Begins with a capture that may be attached already.
    pub fn begin(capture: Capture, options: ObserverOptions) -> Observer {
        let meter = Meter::start(capture.kernel_time());
        Observer {
            capture,
            options,
            accounts: Accounts::new(),
            meter,
            lost_before: LostBefore::default(),
            summary: Summary::default(),
            pace: Pace::begin(),
            clocks: Clocks::look(),
            blockers: Blockers::default(),
        }
    }

    /// The capture.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Reads who waits for whose lock in every server that is watched.
    pub fn locks(&mut self) -> BTreeMap<u32, Result<SeenLocks, String>> {
        self.capture.locks()
    }

    /// What was lost of a server that is watched, since it was attached.
    pub fn losses(&self, pid: u32) -> Losses {
        let mut lost = self.counted_losses(pid);
        let account = self.accounts.get(&pid);
        lost.add(Loss::ReadWrongly, account.map_or(0, |account| account.silence.wrong()));
        lost
    }

    /// The same without the losses that are judged, not counted.
    fn counted_losses(&self, pid: u32) -> Losses {
        let mut lost = self.capture.losses(pid);
        lost.add(Loss::LockWait, self.blockers.lost_waits(pid));
        lost
    }

    /// What the sessions of all servers ran.
    pub fn remembered(&self) -> &Remembered {
        self.blockers.remembered()
    }

    /// What was seen so far.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Observes until `is_over`, or until a sink that ends all has ended. What was captured by then is handed over.
    pub fn run(&mut self, sinks: &mut Sinks<'_>, is_over: &mut dyn FnMut() -> bool) {
        self.welcome(sinks);
        self.blockers.are_wanted = !sinks.are_none();
        let (mut closed_at, mut looked_for_at) = (Instant::now(), Instant::now());
        let mut answered_at = Instant::now();
        let mut urgent = Urgent::begin().ok();
        loop {
            let is_last = is_over() || sinks.are_over();
            let is_due = closed_at.elapsed() >= self.options.interval;
            let is_look_due = looked_for_at.elapsed() >= SERVERS_EVERY;
            // A look takes an answer, too. Between two of them the rings are emptied: attaching takes its time.
            let is_answer_due = !is_look_due
                && self.options.looks_for_servers
                && (self.capture.has_answer()
                    || self.capture.is_asking() && answered_at.elapsed() >= ANSWERS_EVERY);
            if is_last || is_due || is_look_due || is_answer_due {
                // What follows may take a while, and must take nothing from the servers.
                urgent.take();
                if is_last || is_due {
                    let length = closed_at.elapsed();
                    closed_at = Instant::now();
                    self.close_interval(length, sinks);
                }
                if is_look_due && !is_last && self.options.looks_for_servers {
                    self.look_for_servers(sinks);
                }
                if is_answer_due && !is_last {
                    answered_at = Instant::now();
                    self.take_answer(sinks);
                }
                looked_for_at = if is_look_due { Instant::now() } else { looked_for_at };
                urgent = Urgent::begin().ok();
            }
            if is_last {
                return;
            }
            self.blockers.turn(&mut self.capture);
            let drained_at = Instant::now();
            if self.drain(Amount::Turn, sinks) {
                // More than a turn is waiting: an urgent thread takes half of a processor at most.
                thread::sleep(drained_at.elapsed());
            } else {
                let left = self.options.interval.saturating_sub(closed_at.elapsed());
                thread::sleep(self.pause().min(left));
            }
        }
    }

    /// How long to leave the rings alone.
    fn pause(&self) -> Duration {
        match self.options.looks_for_servers && self.capture.has_answer() {
            true => Duration::ZERO,
            false => self.pace.pause(),
        }
    }

    /// Hands over what the rings hold. Returns whether more than a turn is waiting.
    pub fn drain(&mut self, amount: Amount, sinks: &mut Sinks<'_>) -> bool {
        let Observer { capture, accounts, blockers, pace, .. } = self;
        let begun_ns = monotonic_ns();
        let is_more = capture.drain_events(amount, |event| match event {
            Event::Ended(statement) => {
                pace.heard();
                count(accounts, blockers, sinks, statement);
            }
            Event::Waits(news) => blockers.hear(news),
            Event::Ready(ready) => sinks.statements.iter_mut().for_each(|sink| sink.ready(ready)),
            Event::Sampled(sample) => {
                sinks.statements.iter_mut().for_each(|sink| sink.sampled(sample));
            }
        });
        if amount == Amount::UpToNow || !is_more {
            blockers.heard(begun_ns);
        }
        pace.drained(capture.filled());
        sinks.statements.iter_mut().for_each(|sink| sink.turn());
        is_more
    }

    /// Begins with the servers that are watched and have no account yet, and takes over what is newly known of
    /// the others.
    fn welcome(&mut self, sinks: &mut Sinks<'_>) {
        for (pid, watched) in self.capture.watched() {
            let told = sinks.companion.as_ref().and_then(|one| one.max_digest_length(*pid));
            let mut server = watched.server.clone();
            server.max_digest_length = told.map_or(server.max_digest_length, Reading::Value);
            let server = &server;
            if let Some(account) = self.accounts.get_mut(pid) {
                account.books.iter_mut().for_each(|books| books.follow(server));
                continue;
            }
            sinks.companion.iter_mut().for_each(|companion| companion.begin(server));
            sinks.statements.iter_mut().for_each(|sink| sink.begin(server));
            let open = || Books::open(server, self.options.grouping, monotonic_ns());
            let books = (!sinks.records.is_empty()).then(open);
            let parts = self.capture.parts(*pid);
            self.accounts.insert(*pid, Account::open(watched, books, parts));
        }
    }

    fn look_for_servers(&mut self, sinks: &mut Sinks<'_>) {
        let Observer { capture, accounts, blockers, .. } = self;
        let news = capture.look(&mut |statement| count(accounts, blockers, sinks, statement));
        self.take_news(news, sinks);
        self.welcome(sinks);
        sinks.complaints().iter().for_each(|words| sinks.tell(words));
    }

    /// Begins with a server whose program has been read.
    fn take_answer(&mut self, sinks: &mut Sinks<'_>) {
        let Observer { capture, accounts, blockers, .. } = self;
        let news =
            capture.take_answer(&mut |statement| count(accounts, blockers, sinks, statement));
        if !news.is_empty() {
            self.take_news(news, sinks);
            self.welcome(sinks);
        }
    }

    fn take_news(&mut self, news: Vec<News>, sinks: &mut Sinks<'_>) {
        for news in news {
            if let News::Gone(gone) = &news {
                self.close_last(gone, sinks);
            }
            sinks.news(&news);
            if let News::Attached(pid) = news {
                let absences = self.capture.absences(pid);
                absences.iter().for_each(|absent| sinks.tell(absent));
            }
        }
    }

    /// Looks at what runs, and closes the interval of every server.
    fn close_interval(&mut self, length: Duration, sinks: &mut Sinks<'_>) {
        self.let_ended_go(sinks);
        let looked_ns = monotonic_ns();
        self.clocks = Clocks::look();
        let are_wanted = sinks.statements.iter().any(|sink| sink.wants_whole_texts());
        let texts = match are_wanted || !sinks.records.is_empty() {
            true => RunningTexts::AsCaptured,
            false => RunningTexts::Shown,
        };
        let mut samples = self.capture.sample(texts);
        if let Some(companion) = &sinks.companion {
            for (pid, running) in &mut samples {
                running.iter_mut().for_each(|all| all.retain(|one| !companion.runs(*pid, one)));
            }
        }
        let mut known = samples.values().flatten().flatten();
        self.pace.looked(known.any(|running| running.command.is_statement()));
        let servers: Vec<Server> =
            self.capture.watched().values().map(|watched| watched.server.clone()).collect();
        self.settle(&servers, &samples, looked_ns, sinks);
        // What holders ran before the look was heard of by now.
        self.blockers.note(&self.capture, &mut samples);
        let times = ProcessorTimes::read();
        let mut records = Vec::new();
        for server in &servers {
            let losses = self.counted_losses(server.pid);
            let losses = self.lost_before.since(server.pid, losses);
            let losses = self.judge(server, losses, sinks);
            self.tell_losses(server, losses, sinks);
            let Some(mut account) = self.accounts.remove(&server.pid) else { continue };
            account.processors.look(&times);
            // Where nobody wants records, nobody is asked.
            if account.books.is_some() {
                let present = Present {
                    running: reading(samples.remove(&server.pid)),
                    logins: self.capture.logins(server.pid),
                    unread: account.unread.read(),
                };
                let record = self.close(server, &mut account, present, losses, sinks);
                if let Some(running) = record.as_ref().and_then(|record| record.running.value()) {
                    account.looked = Some((looked_ns, running.clone()));
                }
                records.extend(record);
            }
            self.accounts.insert(server.pid, account);
        }
        let statements = records.iter().map(|record| record.interval.statements).sum();
        let cost = self.meter.read(self.capture.kernel_time(), statements, length);
        let with_cost = |record| Arc::new(Record { cost: Reading::Value(cost), ..record });
        sinks.take(&records.into_iter().map(with_cost).collect::<Vec<_>>());
        let Observer { capture, accounts, blockers, .. } = self;
        let gone =
            capture.let_unfit_go(&mut |statement| count(accounts, blockers, sinks, statement));
        self.take_news(gone.into_iter().map(News::Gone).collect(), sinks);
    }

    /// Hands over what ended before the look, also what only the look makes certain.
    fn settle(
        &mut self,
        servers: &[Server],
        samples: &BTreeMap<u32, Running>,
        looked_ns: u64,
        sinks: &mut Sinks<'_>,
    ) {
        let known = |server: &Server| samples.get(&server.pid)?.as_deref().ok();
        for server in servers {
            let Some(running) = known(server) else { continue };
            sinks.statements.iter_mut().for_each(|sink| sink.look(server, running));
        }
        let books = self.accounts.values_mut().filter_map(|account| account.books.as_mut());
        books.for_each(|books| books.begin_closing(looked_ns));
        self.drain(Amount::UpToNow, sinks);
        for server in servers {
            let Some(running) = known(server) else { continue };
            let Observer { capture, accounts, blockers, .. } = self;
            capture.settle(server.pid, running, looked_ns, |statement| {
                count(accounts, blockers, sinks, statement);
            });
            let mut books = accounts.get_mut(&server.pid).and_then(|it| it.books.as_mut());
            let unanswered = blockers.keep(server.pid, running, looked_ns, &mut |running| {
                books.as_mut().map(|books| books.digest_running(running))
            });
            if let Some(books) = books {
                unanswered.iter().for_each(|one| count_waits(books, server.pid, one, looked_ns));
            }
            sinks.statements.iter_mut().for_each(|sink| sink.looked(server, running));
        }
        sinks.statements.iter_mut().for_each(|sink| sink.turn());
    }

    /// Closes the interval of servers that have ended since it was looked for servers: what they ran is not 0.
    fn let_ended_go(&mut self, sinks: &mut Sinks<'_>) {
        let Observer { capture, accounts, blockers, .. } = self;
        let news =
            capture.let_ended_go(&mut |statement| count(accounts, blockers, sinks, statement));
        self.take_news(news, sinks);
    }

    /// Closes the books of one server, where it has some.
    fn close(
        &mut self,
        server: &Server,
        account: &mut Account,
        present: Present,
        losses: Losses,
        sinks: &Sinks<'_>,
    ) -> Option<Record> {
        account.identify(server.pid);
        let books = account.books.as_mut()?;
        let Present { mut running, logins, unread } = present;
        let running_now = match &mut running {
            Reading::Value(running) => running.as_mut_slice(),
            Reading::Absent(_) => &mut [],
        };
        let mut interval = books.close(running_now, losses);
        running_now.iter_mut().for_each(shorten);
        if let Some(companion) = &sinks.companion {
            companion.complete(server.pid, &mut interval);
        }
        self.summary.captured += interval.statements;
        self.summary.own += interval.own_statements;
        Some(Record {
            server: server.clone(),
            identity: account.identity,
            begin_wall_ns: self.clocks.wall_ns(interval.start_ns),
            end_wall_ns: self.clocks.wall_ns(interval.end_ns),
            state: Process::of(server.pid).whole_state(),
            processors: account.processors.used(),
            storage: account.storage.read(),
            logins,
            unread,
            interval,
            running,
            starts_known: account.starts_known,
            is_pooled: account.is_pooled,
            parts: account.parts.clone(),
            cost: Reading::absent("it is measured over whole intervals"),
            ended: None,
        })
    }

    /// Adds to what was lost whether the server is read wrongly, and says so the first time.
    fn judge(&mut self, server: &Server, mut lost: Losses, sinks: &mut Sinks<'_>) -> Losses {
        let Some(account) = self.accounts.get_mut(&server.pid) else { return lost };
        let wrong = account.silence.judge(&lost);
        if wrong > 0 && wrong == account.silence.wrong() {
            sinks.tell(&silence::told(server, wrong));
        }
        if let Some(replies) = account.silence.judge_x_protocol(&lost) {
            sinks.tell(&silence::told_of_x(server, replies));
        }
        lost.add(Loss::ReadWrongly, wrong);
        lost
    }

    /// Adds up what was lost, and tells it.
    fn tell_losses(&mut self, server: &Server, losses: Losses, sinks: &mut Sinks<'_>) {
        self.summary.losses = self.summary.losses.plus(&losses);
        self.blockers.note_losses(server.pid, &losses);
        sinks.statements.iter_mut().for_each(|sink| sink.lost(server, &losses));
    }
}

/// What runs, as a record tells it.
fn reading(sample: Option<Running>) -> Reading<Vec<RunningStatement>> {
    match sample {
        Some(Ok(running)) => Reading::Value(running),
        Some(Err(why)) => Reading::Absent(why),
        None => Reading::absent("the server is not watched any more"),
    }
}

/// Counts the waits of a statement that ended without a reply, of which a look may have told.
fn count_waits(books: &mut Books, pid: u32, ended: &Unanswered, end_ns: u64) {
    let nobody = Identity::default();
    let digest = ended.seen.as_ref().and_then(|seen| seen.digest.clone());
    let seen = ended.seen.as_ref().map(|seen| &seen.statement);
    let statement = Statement::unread(end_ns, seen.map_or(&nobody, |seen| &seen.identity));
    let statement = Statement {
        pid,
        thd: seen.map_or(0, |seen| seen.thd),
        connection_id: seen.map(|seen| seen.connection_id),
        command: seen.map(|seen| seen.command),
        text: seen.and_then(RunningStatement::text),
        settings: seen.and_then(|seen| seen.settings),
        lock_waits: &ended.waits,
        ..statement
    };
    books.count_lock_waits(&statement, digest);
}

/// Counts a statement in the account of its server, and hands it to the sinks. Those of waggle itself are left out.
fn count(
    accounts: &mut Accounts,
    blockers: &mut Blockers,
    sinks: &mut Sinks<'_>,
    statement: &Statement<'_>,
) {
    let lock_waits = blockers.take(statement);
    // Nearly none has waited, and a copy costs each of them.
    let with_waits;
    let statement = match lock_waits.is_empty() {
        true => statement,
        false => {
            with_waits = Statement { lock_waits: &lock_waits, ..*statement };
            &with_waits
        }
    };
    let account = accounts.get_mut(&statement.pid);
    let books = account.and_then(|account| {
        account.silence.hear(statement);
        account.books.as_mut()
    });
    if sinks.companion.as_ref().is_some_and(|companion| companion.sent(statement)) {
        books.into_iter().for_each(|books| books.leave_out(statement));
        return;
    }
    let new = books.and_then(|books| books.count(statement));
    if let (Some(key), Some(companion)) = (new, &sinks.companion) {
        companion.meet(key, statement);
    }
    sinks.statements.iter_mut().for_each(|sink| sink.ended(statement));
}
