//! The real sysbench 1.0 against a private server.
//!
//! Debian's sysbench is linked with libmariadb, which logs in everywhere, also by
//! caching_sha2_password (an account without a password needs no key for it).

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use waggle_sysbench::{Running as Process, Sysbench as Program, SysbenchError, Tables};

use crate::{Account, Error, Result, Server, Transport, Version, launch, tls};

/// The names of the files that sysbench 1.0 looks for in its working directory when TLS is on
/// (`src/drivers/mysql/drv_mysql.c`), in the order of [`tls::FILES`].
const TLS_NAMES: [&str; 3] = ["cacert.pem", "client-cert.pem", "client-key.pem"];

/// Lets OpenSSL 3 talk to the yaSSL of MySQL 5.7: see `Transport::Tls`.
const OLD_TLS: &str = "\
openssl_conf = all
[all]
ssl_conf = libssl
[libssl]
system_default = old
[old]
MinProtocol = TLSv1.1
CipherString = DEFAULT@SECLEVEL=0
Options = UnsafeLegacyServerConnect
";

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this time, in whole seconds.
    Time(Duration),
    /// After this number of events (transactions) of all threads together.
    Events(u64),
}

/// What sysbench is to do. It uses the database `test`.
#[derive(Clone, Debug)]
pub struct Sysbench {
    /// The built-in script, such as `oltp_point_select` or `oltp_read_write`.
    pub script: String,
    /// Number of tables.
    pub tables: u32,
    /// Rows per table.
    pub table_size: u32,
    /// Sessions at work at once.
    pub threads: u32,
    /// Whether the binary protocol with prepared statements is used, else text.
    pub ps_mode: bool,
    /// When the run ends.
    pub length: Length,
    /// How it reaches the server.
    pub transport: Transport,
    /// As whom.
    pub account: Account,
    /// More options, as on its command line.
    pub arguments: Vec<String>,
}

impl Sysbench {
    /// A small run of a script: 2 tables of 1,000 rows, 4 threads, 1,000 events, text, unix
    /// socket.
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            tables: 2,
            table_size: 1000,
            threads: 4,
            ps_mode: false,
            length: Length::Events(1000),
            transport: Transport::Unix,
            account: Account::APP,
            arguments: Vec::new(),
        }
    }

    /// The same without an end.
    pub fn endless(script: impl Into<String>) -> Self {
        // For sysbench, zero seconds and no number of events is without end.
        Self { length: Length::Time(Duration::ZERO), ..Self::new(script) }
    }

    /// Creates and fills the tables.
    pub fn prepare(&self, server: &Server) -> Result<()> {
        self.spawn(server, "prepare")?.output().map(drop)
    }

    /// Runs the script to its end.
    pub fn run(&self, server: &Server) -> Result<Report> {
        self.start(server)?.wait()
    }

    /// Starts the script and returns at once.
    pub fn start(&self, server: &Server) -> Result<Running> {
        self.spawn(server, "run")
    }

    /// Drops the tables.
    pub fn cleanup(&self, server: &Server) -> Result<()> {
        self.spawn(server, "cleanup")?.output().map(drop)
    }

    fn spawn(&self, server: &Server, action: &'static str) -> Result<Running> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = server.home().join(format!("sysbench-{number}"));
        fs::create_dir(&dir).map_err(Error::io("create", &dir))?;
        let (program, script) = (Program::find(Path::new("sysbench"))?, self.script.clone());
        let tables = Tables { tables: self.tables, rows: self.table_size };
        let launcher = launch::launcher();
        let mut command = program.command(&launcher, Path::new(&script), self.threads, tables);
        command.args(self.options(server)).arg(action).current_dir(&dir);
        if matches!(self.transport, Transport::Tls | Transport::TlsCompressed) {
            prepare_tls(server, &dir).map_err(Error::io("write", &dir))?;
            if server.version() == Version::Mysql57 {
                command.env("OPENSSL_CONF", dir.join("openssl.cnf"));
            }
        }
        let start = move || Process::start(command, Stdio::null(), &dir, &script);
        Ok(Running(launch::spawn(start)??))
    }

    fn options(&self, server: &Server) -> Vec<String> {
        let on = |yes: bool| if yes { "on" } else { "off" };
        let tls = matches!(self.transport, Transport::Tls | Transport::TlsCompressed);
        let compressed = matches!(self.transport, Transport::Compressed | Transport::TlsCompressed);
        let (seconds, events) = match self.length {
            Length::Time(time) => (time.as_secs(), 0),
            Length::Events(events) => (0, events),
        };
        let mut options = vec![
            "--mysql-db=test".to_owned(),
            format!("--mysql-user={}", self.account.user),
            format!("--mysql-password={}", self.account.password),
            format!("--mysql-ssl={}", on(tls)),
            format!("--mysql-compression={}", on(compressed)),
            format!("--db-ps-mode={}", if self.ps_mode { "auto" } else { "disable" }),
            format!("--time={seconds}"),
            format!("--events={events}"),
            // The same in every run.
            "--rand-seed=7".to_owned(),
        ];
        options.extend(match self.transport {
            Transport::Unix => vec![format!("--mysql-socket={}", server.socket().display())],
            _ => {
                vec!["--mysql-host=127.0.0.1".to_owned(), format!("--mysql-port={}", server.port())]
            }
        });
        options.extend(self.arguments.iter().cloned());
        options
    }
}

fn prepare_tls(server: &Server, dir: &Path) -> io::Result<()> {
    for (name, file) in TLS_NAMES.into_iter().zip(tls::FILES) {
        symlink(server.home().join(file), dir.join(name))?;
    }
    fs::write(dir.join("openssl.cnf"), OLD_TLS)
}

/// A sysbench at work; dropping it kills it.
#[derive(Debug)]
pub struct Running(Process);

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Waits for its end and reads its report.
    pub fn wait(self) -> Result<Report> {
        let script = self.0.script().to_owned();
        let said = self.output()?;
        let how = "its report cannot be read".to_owned();
        Report::parse(&said).ok_or(SysbenchError::Failed { script, how, said }.into())
    }

    fn output(self) -> Result<String> {
        Ok(self.0.wait("it did not come to its end")?)
    }
}

/// What sysbench counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Statements that read.
    pub read: u64,
    /// All statements that succeeded.
    pub total: u64,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Errors that made it start a transaction again, such as deadlocks: each is one more
    /// statement that the server has executed.
    pub ignored_errors: u64,
    /// How long transactions took on average, as the client sees it, ms.
    pub latency_mean_ms: f64,
    /// The longest one, ms.
    pub latency_max_ms: f64,
}

impl Report {
    /// Reads the report at the end of sysbench's output.
    pub fn parse(output: &str) -> Option<Self> {
        fn find<T: FromStr>(output: &str, label: &str) -> Option<T> {
            let mut lines = output.lines().map(str::trim_start);
            let rest = lines.find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
            rest.split_whitespace().next()?.parse().ok()
        }
        let count = |label| find::<u64>(output, label);
        Some(Self {
            read: count("read")?,
            total: count("total")?,
            transactions: count("transactions")?,
            ignored_errors: count("ignored errors")?,
            latency_mean_ms: find(output, "avg")?,
            latency_max_ms: find(output, "max")?,
        })
    }
}
