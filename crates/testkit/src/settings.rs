//! The settings of a private server, as each version knows them.

use crate::Version;

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
    fn arguments(self) -> Vec<String> {
        let (instruments, kinds): (_, &[&str]) = match self {
            Self::ServerDefault => return Vec::new(),
            Self::Off => return vec!["--performance-schema=OFF".to_owned()],
            Self::Statements => ("statement/%", &["statements"]),
            Self::Everything => ("%", &["statements", "transactions", "stages", "waits"]),
        };
        let places = ["current", "history", "history-long"];
        let events = kinds.iter().flat_map(|kind| places.map(|it| format!("events-{kind}-{it}")));
        let consumers = events.chain(["statements-digest".to_owned()]);
        let own = ["--performance-schema=ON", "--performance-schema-digests-size=10000"];
        own.map(str::to_owned)
            .into_iter()
            .chain([format!("--performance-schema-instrument={instruments}=ON")])
            .chain(consumers.map(|name| format!("--performance-schema-consumer-{name}=ON")))
            .collect()
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

/// What a server gets on top of what every private server is told.
pub(crate) fn chosen(version: Version, choices: &Choices) -> Vec<String> {
    let mut arguments = vec![
        "--bind-address=127.0.0.1".to_owned(),
        "--local-infile=1".to_owned(),
        "--sync-binlog=0".to_owned(),
        "--innodb-buffer-pool-dump-at-shutdown=0".to_owned(),
        "--innodb-buffer-pool-load-at-startup=0".to_owned(),
        // Who waits for a row waits until the test has seen it: by itself that ends after 50 s.
        "--innodb-lock-wait-timeout=3600".to_owned(),
        format!("--max-connections={}", choices.max_connections),
    ];
    // A private server of MariaDB has no TLS.
    arguments.extend(version.is_mariadb().then(|| "--ssl".to_owned()));
    let binlog: &[&str] =
        if choices.binlog { &["--log-bin=binlog", "--server-id=1"] } else { &["--skip-log-bin"] };
    arguments.extend(binlog.iter().map(|&argument| argument.to_owned()));
    arguments.extend(choices.performance_schema.arguments());
    arguments.extend(choices.arguments.iter().cloned());
    arguments
}
