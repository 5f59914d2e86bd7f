//! What runs now, read from real servers.

use waggle_host::{monotonic_ns, wall_ns};
use waggle_model::{Clock, Command, RunningStatement};
use waggle_probes::servers::Instance;
use waggle_probes::servers::recognise::Recognised;
use waggle_probes::sessions::{Limits, Sample, Sampler, Sessions, TEXT_LIMIT, TEXTS_LIMIT};
use waggle_testkit::client::{Client, Command as Send, Transport};
use waggle_testkit::{Account, Server, Version, wait_showing};

use crate::recognised;

/// A server that is looked at.
struct Watched {
    sampler: Sampler,
    instance: Instance,
    clock: Clock,
    sessions: Sessions,
}

impl Watched {
    fn of(server: &Server) -> Self {
        let Recognised { instance, layout, .. } = recognised(server);
        Self {
            sampler: Sampler::load().unwrap(),
            instance,
            clock: layout.clock,
            sessions: Sessions::of(&layout).unwrap(),
        }
    }

    fn sample(&mut self, text: u32) -> Sample {
        let clock = self.clock;
        let start_to_monotonic = &move |start_us: u64| match clock {
            Clock::Monotonic => start_us.checked_mul(1000),
            Clock::Wall => (start_us * 1000).checked_sub(wall_ns() - monotonic_ns()),
        };
        let limits = Limits { text, texts: TEXTS_LIMIT, start_to_monotonic };
        self.sampler.sample(&self.instance, &mut self.sessions, limits).unwrap()
    }

    /// Samples until the server is in the state that is waited for.
    fn sample_until(&mut self, what: &str, is_there: impl Fn(&Sample) -> bool) -> Sample {
        wait_showing(what, || {
            let sample = self.sample(TEXT_LIMIT);
            if is_there(&sample) { Ok(sample) } else { Err(format!("{sample:?}")) }
        })
    }
}

fn connect(server: &Server, database: &str) -> Client {
    Client::builder().database(database).connect(server, Transport::Tcp, Account::APP).unwrap()
}

fn of(sample: &Sample, client: &Client) -> Option<RunningStatement> {
    let id = u64::from(client.connection_id());
    sample.running.iter().find(|running| running.connection_id == id).cloned()
}

#[test]
fn running_statements_are_read_with_text_age_user_database_and_state() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut watched = Watched::of(&server);
        let (idle, mut text, mut prepared, mut unselected) = (
            connect(&server, "test"),
            connect(&server, "test"),
            connect(&server, "mysql"),
            server.root().unwrap(),
        );
        let before = monotonic_ns();
        let sql = "select sleep(600) /* é \u{1f41d} \0 end */";
        text.send(Send::Query, sql.as_bytes()).unwrap();
        let statement = prepared.prepare("select sleep(?), 'prepared'").unwrap();
        prepared.send_execute(&statement, &[600i64.into()], false).unwrap();
        unselected.send(Send::Query, b"do sleep(600)").unwrap();
        let sample = watched.sample_until("three statements that sleep", |sample| {
            let asleep = |running: &&RunningStatement| {
                running.state.as_deref().is_some_and(|state| state == b"User sleep")
            };
            sample.running.iter().filter(asleep).count() == 3
        });
        let after = monotonic_ns();

        assert_eq!((sample.sessions, sample.unreadable), (4, 0), "{version}: {sample:?}");
        assert!(of(&sample, &idle).is_none(), "{version}");
        let running = of(&sample, &text).unwrap();
        assert_eq!(running.command, Command::QUERY, "{version}");
        assert_eq!(running.text.as_deref(), Some(sql.as_bytes()), "{version}");
        assert_eq!(running.text_length, sql.len() as u64, "{version}");
        let identity = &running.identity;
        assert_eq!(identity.user.as_deref(), Some(&b"app"[..]), "{version}");
        assert_eq!(identity.database.as_deref(), Some(&b"test"[..]), "{version}");
        let host = String::from_utf8_lossy(identity.host.as_deref().unwrap()).into_owned();
        assert!(host == "localhost" || host == "127.0.0.1", "{version}: {host}");
        // The wall clock and its distance to the other are read one after the other.
        let start = running.start_ns.unwrap();
        let slack = 5_000_000;
        assert!(start + slack >= before && start <= after + slack, "{version}");

        let running = of(&sample, &prepared).unwrap();
        assert_eq!(running.command, Command::EXECUTE, "{version}");
        let text = String::from_utf8(running.text.unwrap()).unwrap();
        assert!(text.starts_with("select sleep(") && text.ends_with("'prepared'"), "{text}");
        assert_eq!(running.identity.database.as_deref(), Some(&b"mysql"[..]), "{version}");

        let running = of(&sample, &unselected).unwrap();
        assert_eq!(running.identity.user.as_deref(), Some(&b"root"[..]), "{version}");
        assert_eq!(running.identity.host.as_deref(), Some(&b"localhost"[..]), "{version}");
        assert_eq!(running.identity.database, None, "{version}");
    }
}

#[test]
fn clients_that_left_are_no_sessions() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut watched = Watched::of(&server);
        let clients: Vec<Client> = (0..10).map(|_| connect(&server, "test")).collect();
        watched.sample_until("10 sessions", |sample| sample.sessions == 10);
        drop(clients);
        // Their threads wait in the thread cache for the next ones.
        let sample = watched.sample_until("no session", |sample| sample.sessions == 0);
        assert!(sample.running.is_empty(), "{version}: {sample:?}");
    }
}

#[test]
fn a_long_text_is_cut_at_the_limit_and_carries_its_length() {
    let server = Server::start(Version::Mysql57).unwrap();
    let mut watched = Watched::of(&server);
    let mut client = connect(&server, "test");
    let sql = format!("select sleep(600), '{}'", "x".repeat(3 << 20));
    client.send(Send::Query, sql.as_bytes()).unwrap();
    watched.sample_until("the long statement", |sample| of(sample, &client).is_some());
    for limit in [0, 1, 1024, 64 * 1024, u32::MAX] {
        // Nothing is kept from a thread that slept through, so another reader starts afresh.
        let mut watched = Watched::of(&server);
        let sample = watched.sample(limit);
        let running = of(&sample, &client).unwrap();
        let read = limit.min(64 * 1024) as usize;
        assert_eq!(running.text.as_deref(), sql.as_bytes().get(..read), "limit {limit}");
        assert_eq!(running.text_length, sql.len() as u64);
    }
}

#[test]
fn threads_that_slept_through_are_not_read_again_and_still_counted() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let mut watched = Watched::of(&server);
    let mut clients: Vec<Client> = (0..50).map(|_| connect(&server, "test")).collect();
    let (running, idle) = clients.split_at_mut(25);
    for client in &mut *running {
        client.send(Send::Query, b"select sleep(600)").unwrap();
    }
    watched.sample_until("25 statements", |sample| sample.running.len() == 25);
    let sample = watched.sample_until("a quiet moment", |sample| sample.read < 10);
    assert_eq!((sample.sessions, sample.running.len()), (50, 25), "{sample:?}");
    assert!(sample.threads > 50);

    // A session that wakes up for an instant is read again.
    idle[0].run("set @a = 1").unwrap();
    idle[1].send(Send::Query, b"select sleep(600) /* new */").unwrap();
    let id = u64::from(idle[1].connection_id());
    watched.sample_until("the new statement", |sample| {
        sample.running.len() == 26
            && sample.running.iter().any(|running| {
                running.connection_id == id
                    && running.text.as_deref() == Some(b"select sleep(600) /* new */")
            })
    });
}

#[test]
fn a_statement_that_waits_for_a_row_sleeps_and_one_that_works_does_not() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let [mut holder, mut waiting, mut working] = [(); 3].map(|()| server.root().unwrap());
        holder.run("CREATE TABLE test.held (id INT PRIMARY KEY, v INT) ENGINE = InnoDB").unwrap();
        holder.run("INSERT INTO test.held VALUES (1, 0)").unwrap();
        holder.run("BEGIN").unwrap();
        holder.run("SELECT id FROM test.held FOR UPDATE").unwrap();
        waiting.send(Send::Query, b"UPDATE test.held SET v = 2").unwrap();
        working.send(Send::Query, b"SELECT BENCHMARK(4000000000, SHA2(RAND(), 256))").unwrap();
        let mut watched = Watched::of(&server);
        let both = |sample: &Sample| Some((of(sample, &waiting)?, of(sample, &working)?));
        let first = watched.sample_until("both", |sample| both(sample).is_some());
        let (waits, works) = both(&first).unwrap();
        assert_eq!((waits.has_slept, works.has_slept), (None, None), "{version}: the first look");
        let told = watched.sample_until("who sleeps", |sample| {
            let told = both(sample).map(|(waits, works)| (waits.has_slept, works.has_slept));
            told == Some((Some(true), Some(false)))
        });
        let state = of(&told, &waiting).unwrap().state.unwrap().to_ascii_lowercase();
        assert_eq!(String::from_utf8_lossy(&state), "updating", "{version}");
    }
}

#[test]
fn sessions_of_a_thread_pool_are_seen_while_they_run() {
    let server = Server::builder(Version::Mariadb1011)
        .arg("--thread-handling=pool-of-threads")
        .arg("--thread-pool-size=2")
        .start()
        .unwrap();
    let mut watched = Watched::of(&server);
    let mut clients: Vec<Client> = (0..4).map(|_| connect(&server, "test")).collect();
    for client in &mut clients[..3] {
        client.send(Send::Query, b"select sleep(600)").unwrap();
    }
    let sample = watched.sample_until("3 statements", |sample| sample.running.len() == 3);
    // No thread serves the idle one, so it is not seen.
    assert_eq!(sample.sessions, 3);
}

#[test]
fn a_server_that_ended_is_an_error_and_the_next_life_starts_over() {
    let mut server = Server::start(Version::Mysql80).unwrap();
    let mut watched = Watched::of(&server);
    let _client = connect(&server, "test");
    watched.sample_until("a session", |sample| sample.sessions == 1);
    server.kill9().unwrap();
    let limits = Limits { text: TEXT_LIMIT, texts: TEXTS_LIMIT, start_to_monotonic: &|_| None };
    let error = watched.sampler.sample(&watched.instance, &mut watched.sessions, limits);
    assert!(error.unwrap_err().to_string().contains("has ended"));
    server.restart().unwrap();
    watched.instance = Watched::of(&server).instance;
    assert_eq!(watched.sample(TEXT_LIMIT).sessions, 0);
}
