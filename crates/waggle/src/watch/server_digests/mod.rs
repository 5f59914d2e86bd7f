//! The hash under which each server files a digest. waggle asks the server once per digest, with
//! `STATEMENT_DIGEST()` of a captured statement.
//!
//! Each server has its own thread and a connection that provably leads to it. The output leaves out
//! our own statements and counts them.

mod answers;
mod asker;
mod own;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use waggle_host::{Endpoint, Process};
use waggle_model::{DigestKey, Interval, RunningStatement, Server, Statement};
use waggle_mysql::{Options, why_no_digests};
use waggle_observe::Companion;
use waggle_probes::servers::file_at;

use answers::Answers;
use asker::{Asker, Question};
use own::OwnConnections;

/// Questions that may wait; each holds a text of at most 64 KiB.
const WAITING_MAX: usize = 100;
/// How long the connections may take to be closed when the watch ends.
const END_AWAITED: Duration = Duration::from_millis(500);

/// The servers that are asked.
pub(crate) struct ServerDigests {
    options: Options,
    own: Arc<OwnConnections>,
    servers: BTreeMap<u32, Asked>,
    news: (Sender<String>, Receiver<String>),
}

/// One server.
struct Asked {
    answers: Arc<Answers>,
    /// `None` if this server cannot answer at all.
    thread: Option<(SyncSender<Question>, JoinHandle<()>)>,
}

impl ServerDigests {
    /// Nobody is asked yet. `options` say as whom.
    pub(crate) fn new(options: Options) -> ServerDigests {
        ServerDigests {
            options,
            own: Arc::default(),
            servers: BTreeMap::new(),
            news: mpsc::channel(),
        }
    }

    fn start(
        &self,
        server: &Server,
        answers: Arc<Answers>,
    ) -> std::io::Result<(SyncSender<Question>, JoinHandle<()>)> {
        let (to, questions) = mpsc::sync_channel(WAITING_MAX);
        let mut options = self.options.clone();
        // What the option file names, and nothing else. Where it names nothing, each server has a socket of its own; any
        // process can look like a server, so it gets a password only if its user may have it.
        if !options.names_endpoint() {
            options.socket = socket_of(server.pid);
        }
        let asker = Asker {
            server: server.clone(),
            options,
            own: self.own.clone(),
            answers,
            news: self.news.0.clone(),
            questions,
        };
        let name = "server digests".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || asker.run())?;
        Ok((to, thread))
    }
}

impl Companion for ServerDigests {
    fn begin(&mut self, server: &Server) {
        if self.servers.contains_key(&server.pid) {
            return;
        }
        let answers = Arc::<Answers>::default();
        let thread = match why_no_digests(server.flavour, &server.version) {
            Some(why) => Err(why.to_owned()),
            None => self.start(server, answers.clone()).map_err(|error| error.to_string()),
        };
        if let Err(why) = &thread {
            answers.refuse(Some(why.clone()));
            // Both ends are ours.
            let _ = self.news.0.send(format!("pid {}: no server digests: {why}", server.pid));
        }
        self.servers.insert(server.pid, Asked { answers, thread: thread.ok() });
    }

    fn end(&mut self, pid: u32) {
        self.servers.remove(&pid);
    }

    fn sent(&self, statement: &Statement<'_>) -> bool {
        self.own.sent(statement)
    }

    fn runs(&self, pid: u32, running: &RunningStatement) -> bool {
        self.own.runs(pid, running)
    }

    /// It is asked for, if it is not known.
    fn meet(&self, key: DigestKey, statement: &Statement<'_>) {
        let Some(Asked { answers, thread: Some((to, _)) }) = self.servers.get(&statement.pid)
        else {
            return;
        };
        if !answers.lack(key.text) {
            return;
        }
        match question(key, statement) {
            Ok(Some(question)) => {
                answers.wait_for(key.text);
                if to.try_send(question).is_err() {
                    answers.forget(key.text);
                }
            }
            // Another statement of it may do.
            Ok(None) => {}
            Err(why) => answers.put_off(key.text, why),
        }
    }

    fn complete(&self, pid: u32, interval: &mut Interval) {
        let Some(Asked { answers, .. }) = self.servers.get(&pid) else { return };
        for (key, totals) in &mut interval.digests {
            totals.server_digest = Some(answers.of(key.text));
        }
        if let Some(nested) = &mut interval.nested {
            self.complete(pid, nested);
        }
    }

    fn max_digest_length(&self, pid: u32) -> Option<u64> {
        self.servers.get(&pid)?.answers.length()
    }

    fn news(&self) -> Vec<String> {
        self.news.1.try_iter().collect()
    }
}

impl Drop for ServerDigests {
    /// Lets the threads say goodbye to their servers; one that waits for an answer is not waited for.
    fn drop(&mut self) {
        let threads: Vec<JoinHandle<()>> = std::mem::take(&mut self.servers)
            .into_values()
            .filter_map(|asked| asked.thread.map(|(_, thread)| thread))
            .collect();
        let begin = Instant::now();
        while begin.elapsed() < END_AWAITED && !threads.iter().all(JoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What to ask of a statement; `None` if its session was gone before its settings were read.
///
/// # Errors
///
/// Why this statement cannot be asked about.
fn question(key: DigestKey, statement: &Statement<'_>) -> Result<Option<Question>, String> {
    let text = statement.text.ok_or("the text was not captured")?;
    if text.is_truncated() {
        let read = text.bytes.len();
        return Err(format!(
            "the text was cut after {read} bytes, so that the server cannot parse it; \
             --text-limit reads more"
        ));
    }
    let Some(settings) = statement.settings else { return Ok(None) };
    // As the server does before it parses (`alloc_query` in `sql/sql_parse.cc`).
    let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
    let length = text.bytes.iter().rposition(|byte| !is_end(byte)).map_or(0, |at| at + 1);
    let text = text.bytes.get(..length).unwrap_or_default().to_vec();
    Ok(Some(Question { digest: key.text, text, settings }))
}

/// The longest path of a socket (`sun_path` of unix(7)), less its end.
const SOCKET_PATH_MAX: usize = 107;

/// A socket of a server as we can reach it, also in a container.
fn socket_of(pid: u32) -> Option<PathBuf> {
    let listens = Process::of(pid).listens();
    let paths = listens.value()?.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Unix(path) => Some(path),
        Endpoint::Tcp(_) => None,
    });
    // Those of the X protocol (`mysqlx_socket`) are for other clients.
    let mut classic = paths.filter(|path| !path.to_string_lossy().contains("mysqlx"));
    classic.find_map(|path| {
        let seen_from = if path.is_absolute() { "root" } else { "cwd" };
        let inside = PathBuf::from(format!("/proc/{pid}/{seen_from}"))
            .join(path.strip_prefix("/").unwrap_or(path));
        let file = |path: &Path| file_at(pid, path);
        let is_same = path.is_absolute() && file(path).is_some() && file(path) == file(&inside);
        let reached = if is_same { path.clone() } else { inside };
        (reached.as_os_str().len() <= SOCKET_PATH_MAX && file(&reached).is_some())
            .then_some(reached)
    })
}
