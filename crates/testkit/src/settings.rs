//! The settings of a private server, as each version knows them.

use std::path::Path;

use crate::Version;
use crate::install::Installation;

/// What Performance Schema records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PerformanceSchema {
    /// What the version does by itself: on with statements on MySQL, off on MariaDB.
    #[default]
    ServerDefault,
    /// Off.
    Off,
    /// Statements with their histories and digests; room for 10,000 digests.
    Statements,
    /// Every instrument and every consumer.
    Everything,
}

impl PerformanceSchema {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::ServerDefault => &[],
            Self::Off => &["--performance-schema=OFF"],
            Self::Statements => &[
                "--performance-schema=ON",
                "--performance-schema-digests-size=10000",
                "--performance-schema-instrument=statement/%=ON",
                "--performance-schema-consumer-events-statements-current=ON",
                "--performance-schema-consumer-events-statements-history=ON",
                "--performance-schema-consumer-events-statements-history-long=ON",
                "--performance-schema-consumer-statements-digest=ON",
            ],
            Self::Everything => &[
                "--performance-schema=ON",
                "--performance-schema-digests-size=10000",
                "--performance-schema-instrument=%=ON",
                "--performance-schema-consumer-events-statements-current=ON",
                "--performance-schema-consumer-events-statements-history=ON",
                "--performance-schema-consumer-events-statements-history-long=ON",
                "--performance-schema-consumer-events-transactions-current=ON",
                "--performance-schema-consumer-events-transactions-history=ON",
                "--performance-schema-consumer-events-transactions-history-long=ON",
                "--performance-schema-consumer-events-stages-current=ON",
                "--performance-schema-consumer-events-stages-history=ON",
                "--performance-schema-consumer-events-stages-history-long=ON",
                "--performance-schema-consumer-events-waits-current=ON",
                "--performance-schema-consumer-events-waits-history=ON",
                "--performance-schema-consumer-events-waits-history-long=ON",
                "--performance-schema-consumer-statements-digest=ON",
            ],
        }
    }
}

/// What the user of the kit chose.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) performance_schema: PerformanceSchema,
    pub(crate) binlog: bool,
    pub(crate) max_connections: u32,
    /// Passed last, so that they win over the kit's.
    pub(crate) arguments: Vec<String>,
}

/// What every start of a version needs, also the one that makes the system tables. `data` is the
/// data directory seen from outside. `--no-defaults` must come first.
pub(crate) fn basic(installation: &Installation, data: &Path) -> Vec<String> {
    let seen = |path: &Path| installation.inside(path).display().to_string();
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        "--user=root".to_owned(),
        format!("--basedir={}", seen(&installation.base)),
        format!("--lc-messages-dir={}", seen(&installation.share)),
        format!("--datadir={}", seen(data)),
        // MariaDB removes temporary tables of others from a shared one when it starts.
        format!("--tmpdir={}", seen(data.parent().unwrap_or(data))),
    ];
    // 2 writes the log at each commit and does not wait for the disk: quick, and a commit survives
    // a kill -9 of the server.
    let quick = [
        "--innodb-buffer-pool-size=64M",
        "--innodb-buffer-pool-dump-at-shutdown=0",
        "--innodb-buffer-pool-load-at-startup=0",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    arguments.extend(quick.map(str::to_owned));
    let own: &[&str] = match installation.version {
        Version::Mysql57 => &["--innodb-log-file-size=16M", "--secure-file-priv="],
        Version::Mysql80 => &["--innodb-log-file-size=16M", "--secure-file-priv=", "--mysqlx=0"],
        Version::Mysql9 => &["--innodb-redo-log-capacity=32M", "--secure-file-priv=", "--mysqlx=0"],
        Version::Mariadb1011 | Version::Mariadb114 => &["--innodb-log-file-size=32M"],
    };
    arguments.extend(own.iter().map(|&argument| argument.to_owned()));
    arguments
}

/// What a server in use gets on top of [`basic`].
pub(crate) fn chosen(choices: &Choices) -> Vec<String> {
    let mut arguments = vec![
        "--bind-address=127.0.0.1".to_owned(),
        "--local-infile=1".to_owned(),
        "--sync-binlog=0".to_owned(),
        format!("--max-connections={}", choices.max_connections),
    ];
    let binlog: &[&str] =
        if choices.binlog { &["--log-bin=binlog", "--server-id=1"] } else { &["--skip-log-bin"] };
    let lists = binlog.iter().chain(choices.performance_schema.arguments());
    arguments.extend(lists.map(|&argument| argument.to_owned()));
    arguments.extend(choices.arguments.iter().cloned());
    arguments
}
