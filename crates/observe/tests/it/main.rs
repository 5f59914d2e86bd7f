//! The observer with real servers. Needs root.
#![cfg(test)]

mod places;

use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use waggle_account::Grouping;
use waggle_model::{Losses, Record, Statement};
use waggle_observe::{
    Capture, CaptureOptions, Ended, News, Observer, ObserverOptions, Queue, RecordSink, Room,
    Sinks, Size, StatementSink, Trouble,
};
use waggle_probes::servers::layout::Field;
use waggle_testkit::sysbench::{Length, Sysbench};
use waggle_testkit::{Killed, PATIENCE, Server, Version};

const SENT: u64 = 20_000;

fn observer(options: CaptureOptions, interval: Duration) -> Observer {
    let mut capture = Capture::new(options).unwrap();
    capture.look(&mut |_| {});
    let grouping = Grouping::Digest;
    Observer::begin(capture, ObserverOptions { interval, grouping, looks_for_servers: true })
}

fn only(server: &Server) -> CaptureOptions {
    CaptureOptions { pid: Some(server.pid()), ..CaptureOptions::default() }
}

/// Passes on how many statements came in each turn.
struct Batches {
    queue: Queue<u64>,
    seen: u64,
    refused: u64,
    batch: u64,
}

impl Batches {
    fn start(write: impl FnMut(u64) -> io::Result<()> + Send + 'static) -> Batches {
        let room = Room { parcels: 4, bytes: 1 << 20 };
        let queue = Queue::start("batches", room, write).unwrap();
        Batches { queue, seen: 0, refused: 0, batch: 0 }
    }
}

impl StatementSink for Batches {
    fn ended(&mut self, statement: &Statement<'_>) {
        let is_statement = statement.command.is_none_or(|command| command.is_statement());
        self.batch += u64::from(is_statement);
    }

    fn turn(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if batch > 0 {
            self.seen += batch;
            let is_taken = self.queue.offer(batch, Size { count: batch, bytes: 8 });
            self.refused += if is_taken { 0 } else { batch };
        }
    }
}

/// Keeps records.
#[derive(Default)]
struct Records {
    records: Vec<Arc<Record>>,
}

impl RecordSink for Records {
    fn take(&mut self, records: &[Arc<Record>]) {
        self.records.extend_from_slice(records);
    }
}

/// A sink whose disk is full after some statements, one that is stuck, one that takes everything.
#[test]
fn a_sink_that_is_stuck_or_fails_counts_what_it_loses_and_costs_no_other_anything() {
    let server = Server::start(Version::Mariadb114).unwrap();
    let mut load = Sysbench::new("oltp_point_select");
    load.length = Length::Events(SENT);
    load.prepare(&server).unwrap();
    let mut observer = observer(only(&server), Duration::from_millis(200));

    let (open, gate) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let mut whole = Batches::start(move |batch| tell.send(batch).map_err(io::Error::other));
    let mut stuck = Batches::start(move |_| gate.recv().map_err(io::Error::other));
    let fitted = Arc::<AtomicU64>::default();
    let on_disk = fitted.clone();
    let mut full = Batches::start(move |batch| {
        match on_disk.load(Ordering::Relaxed) + batch <= SENT / 4 {
            true => drop(on_disk.fetch_add(batch, Ordering::Relaxed)),
            false => return Err(io::ErrorKind::StorageFull.into()),
        }
        Ok(())
    });
    let mut records = Records::default();
    let is_done = AtomicBool::new(false);
    scope(|threads| {
        threads.spawn(|| {
            load.run(&server).unwrap();
            is_done.store(true, Ordering::Relaxed);
        });
        let statements: Vec<&mut dyn StatementSink> = vec![&mut whole, &mut stuck, &mut full];
        let mut sinks = Sinks { statements, records: vec![&mut records], ..Sinks::default() };
        observer.run(&mut sinks, &mut || is_done.load(Ordering::Relaxed));
    });

    assert_eq!(observer.summary().losses, Losses::default());
    let of_records: u64 = records.records.iter().map(|record| record.interval.statements).sum();
    assert_eq!((of_records, observer.summary().captured), (SENT, SENT));
    for batches in [&whole, &stuck, &full] {
        assert_eq!(batches.seen, SENT, "every sink sees everything");
    }
    let Ended { unwritten, failure } = whole.queue.close(PATIENCE);
    assert!(unwritten == 0 && failure.is_none() && whole.refused == 0, "{unwritten} {failure:?}");
    assert_eq!(told.iter().sum::<u64>(), SENT);
    let Ended { unwritten, failure } = full.queue.close(PATIENCE);
    assert_eq!(failure.unwrap().kind(), io::ErrorKind::StorageFull);
    assert_eq!(unwritten, SENT - fitted.load(Ordering::Relaxed));
    // It has one batch, there is room for four, and it has written none.
    assert_eq!(stuck.queue.unwritten(), SENT);
    let lost = stuck.refused;
    assert_eq!(stuck.queue.trouble(), Some(Trouble::Lost { now: lost, all: lost }));
    (0..5).for_each(|_| open.send(()).unwrap());
    assert_eq!(stuck.queue.close(PATIENCE).unwritten, lost);
    assert!(lost > 0);
}

/// Says when a server has been watched, and keeps what its first statements were.
struct FirstHeard {
    begun: Sender<u32>,
    texts: BTreeMap<u32, String>,
    statements: BTreeMap<u32, u64>,
}

impl StatementSink for FirstHeard {
    fn begin(&mut self, server: &waggle_model::Server) {
        let _ = self.begun.send(server.pid);
    }

    fn ended(&mut self, statement: &Statement<'_>) {
        let is_statement = statement.command.is_none_or(|command| command.is_statement());
        *self.statements.entry(statement.pid).or_default() += u64::from(is_statement);
        let Some(text) = statement.text else { return };
        let text = || String::from_utf8_lossy(text.bytes).into_owned();
        self.texts.entry(statement.pid).or_insert_with(text);
    }
}

#[test]
fn a_server_that_starts_later_is_watched_and_has_the_identity_that_it_had_before() {
    let mut observer = observer(CaptureOptions::default(), Duration::from_secs(1));
    let (begun, told) = mpsc::channel();
    let (texts, statements) = (BTreeMap::new(), BTreeMap::new());
    let mut first = FirstHeard { begun, texts, statements };
    let mut records = Records::default();
    let is_done = AtomicBool::new(false);
    let (lives, waited) = scope(|threads| {
        let is_done = &is_done;
        let comings = threads.spawn(move || {
            let _done = SetAtEnd(is_done);
            let mut server = Server::start(Version::Mariadb1011).unwrap();
            let begin = Instant::now();
            while told.recv_timeout(PATIENCE).unwrap() != server.pid() {}
            let waited = begin.elapsed();
            server.root().unwrap().run("SELECT 'first'").unwrap();
            let mut lives = vec![server.pid()];
            server.restart().unwrap();
            lives.push(server.pid());
            while told.recv_timeout(PATIENCE).unwrap() != server.pid() {}
            server.root().unwrap().run("SELECT 'second'").unwrap();
            sleep(Duration::from_secs(1));
            (lives, waited)
        });
        let mut sinks =
            Sinks { statements: vec![&mut first], records: vec![&mut records], ..Sinks::default() };
        observer.run(&mut sinks, &mut || is_done.load(Ordering::Relaxed));
        comings.join().unwrap()
    });
    eprintln!("watched {waited:?} after it took connections");
    let texts: Vec<&str> = lives.iter().map(|pid| first.texts[pid].as_str()).collect();
    assert_eq!(texts, ["SELECT 'first'", "SELECT 'second'"]);
    let of = |pid: u32| records.records.iter().filter(move |record| record.server.pid == pid);
    let first_life = lives[0];
    let identities: Vec<u64> = lives.iter().map(|pid| of(*pid).next().unwrap().identity).collect();
    assert_eq!(identities[0], identities[1]);
    let last = of(lives[0]).next_back().unwrap();
    assert!(last.ended.is_some());
    assert_eq!(last.running.why(), Some("the server has ended"));
    assert_eq!((last.logins.why(), last.unread.why()), (last.running.why(), last.running.why()));
    for life in lives {
        let counted: u64 = of(life).map(|record| record.interval.statements).sum();
        assert_eq!(counted, first.statements[&life], "a statement is in one record");
        let times = of(life).map(|record| (record.interval.start_ns, record.interval.end_ns));
        let times: Vec<(u64, u64)> = times.collect();
        assert!(times.windows(2).all(|pair| pair[0].1 == pair[1].0), "{times:?}");
    }
    // The wall clock may be set.
    let wall = of(first_life).map(|record| (record.begin_wall_ns, record.end_wall_ns));
    let wall: Vec<(u64, u64)> = wall.collect();
    assert!(wall.windows(2).all(|pair| pair[0].1.abs_diff(pair[1].0) < 1_000_000_000), "{wall:?}");
}

/// Counts statements, and keeps what it is told.
#[derive(Default)]
struct Told {
    statements: u64,
    news: Vec<String>,
}

impl StatementSink for Told {
    fn ended(&mut self, statement: &Statement<'_>) {
        self.statements +=
            u64::from(statement.command.is_none_or(|command| command.is_statement()));
    }

    fn news(&mut self, news: &News) {
        self.news.push(news.to_string());
    }
}

#[test]
fn a_server_that_cannot_be_watched_any_more_hands_on_its_last_statements_with_the_reason() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    // The one without the other tells when a statement ends; without both, nothing does.
    let options = CaptureOptions {
        hide: Some(Field::StartTime),
        misfit: Some(Field::DiagnosticsStatus),
        ..only(&server)
    };
    let mut observer = observer(options, Duration::from_millis(200));
    let (mut told, mut records) = (Told::default(), Records::default());
    let is_done = AtomicBool::new(false);
    scope(|threads| {
        let (is_done, server) = (&is_done, &server);
        let sends = threads.spawn(move || {
            let _done = SetAtEnd(is_done);
            let mut client = server.root().unwrap();
            client.run("SELECT 'before'").unwrap();
            // It runs at two looks, and goes on when the watch ends.
            client.run("SELECT SLEEP(2)").unwrap();
            client.run("SELECT 'after'").unwrap();
            sleep(Duration::from_millis(500));
        });
        let mut sinks =
            Sinks { statements: vec![&mut told], records: vec![&mut records], ..Sinks::default() };
        observer.run(&mut sinks, &mut || is_done.load(Ordering::Relaxed));
        sends.join().unwrap();
    });
    let why = "not watched any more: ";
    let [news] = &*told.news else { panic!("{:?}", told.news) };
    assert!(news.starts_with(&format!("pid {}: {why}", server.pid())), "{news}");
    assert!(news.contains("nothing tells when a statement ends"), "{news}");
    let counted = |records: &[Arc<Record>]| -> u64 {
        records.iter().map(|record| record.interval.statements).sum()
    };
    assert_eq!((counted(&records.records), told.statements), (1, 1), "what ended before");
    let [.., last] = &*records.records else { panic!("no records") };
    assert!(last.ended.is_some() && last.running.why().unwrap().starts_with(why), "{last:?}");
    let ended = records.records.iter().filter(|record| record.ended.is_some()).count();
    assert_eq!((ended, observer.summary().losses), (1, Losses::default()));
    assert!(observer.capture().watched().is_empty());
}

/// What an observer did, in its order.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    ReadRings,
    /// It took a server, or told why not.
    Judged(u32),
}

/// Keeps what was done, and counts which of some processes were told.
struct Order<'a> {
    did: Vec<Did>,
    awaited: &'a [Killed],
    told: &'a AtomicU64,
}

impl StatementSink for Order<'_> {
    fn ended(&mut self, _: &Statement<'_>) {}

    fn turn(&mut self) {
        self.did.push(Did::ReadRings);
    }

    fn news(&mut self, news: &News) {
        let (News::Attached(pid) | News::Refused(pid, _)) = news else { return };
        self.did.push(Did::Judged(*pid));
        let is_awaited = self.awaited.iter().any(|process| process.id() == *pid);
        self.told.fetch_add(u64::from(is_awaited), Ordering::Relaxed);
    }
}

#[test]
fn the_rings_are_read_between_any_two_servers_that_come_at_once() {
    let mut observer = observer(CaptureOptions::default(), Duration::from_secs(1));
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("mysqld");
    // Not by us: who forks meanwhile would hold the file open for writing, and nobody could run it.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
    // What is learned of the file by the first answers for all others at once.
    let start = |_| Killed(Command::new(&program).arg("600").spawn().unwrap());
    let processes: Vec<Killed> = (0..20).map(start).collect();
    let told = AtomicU64::new(0);
    let mut order = Order { did: Vec::new(), awaited: &processes, told: &told };
    let begin = Instant::now();
    let mut sinks = Sinks { statements: vec![&mut order], ..Sinks::default() };
    observer.run(&mut sinks, &mut || {
        told.load(Ordering::Relaxed) == processes.len() as u64 || begin.elapsed() > PATIENCE
    });
    assert_eq!(told.load(Ordering::Relaxed), processes.len() as u64, "{:?}", order.did);
    let in_a_row = order.did.windows(2).find(|did| !did.contains(&Did::ReadRings));
    assert_eq!(in_a_row, None, "{:?}", order.did);
}

/// However a thread ends.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
