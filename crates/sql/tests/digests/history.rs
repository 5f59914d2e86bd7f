//! Digests of servers that have no function for them: a session runs the statements, Performance
//! Schema tells their digests.

use waggle_sql::SessionSettings;
use waggle_testkit::{Client, PerformanceSchema, Server, Version};

use crate::server;
use crate::server::{Answer, Reply};

/// Errors of the parser: ER_PARSE_ERROR, and ER_TOO_LONG_IDENT, after which MariaDB shows the digest
/// of an earlier statement.
const PARSER: [&[u8]; 2] = [b"1064", b"1059"];
/// Beginnings of statements that would end the session or the server, stop it from answering, or
/// change what the next statement is. `SHOW EVENTS` ends both MariaDB by SIGSEGV after some events
/// that the statements make.
const DANGEROUS: [&str; 23] = [
    "SHOW EVENTS",
    "KILL",
    "SHUTDOWN",
    "RESTART",
    "FLUSH",
    "LOCK",
    "CLONE",
    "DO ",
    "STOP",
    "START",
    "CHANGE",
    "SET",
    "XA",
    "BINLOG",
    "PURGE",
    "RESET",
    "INSTALL",
    "UNINSTALL",
    "COMMIT",
    "ROLLBACK",
    "USE",
    "DROP USER",
    "{UNLOCK}",
];
/// Words of statements that would write a file or change the account of the session.
const WORDS: [&str; 7] =
    ["OUTFILE", "DUMPFILE", "DATAFILE", "UNDOFILE", "DIRECTORY", "CURRENT_USER", "USER()"];

/// Whether statements by this template may run.
pub(crate) fn is_safe(template: &str) -> bool {
    !DANGEROUS.iter().any(|word| template.starts_with(word))
}

pub(crate) fn start(version: Version) -> Server {
    let builder = Server::builder(version).performance_schema(PerformanceSchema::Statements);
    builder.start().unwrap()
}

pub(crate) struct History {
    settings: SessionSettings,
    session: Client,
    watcher: Client,
    thread: String,
    /// Number of the last statement; a comment before its text carries it.
    last: u64,
}

impl History {
    pub(crate) fn open(server: &Server, settings: SessionSettings) -> Self {
        let session = server::session(server, settings);
        let mut watcher = server.root().unwrap();
        watcher.run("SET character_set_results = NULL").unwrap();
        let mut history = History { settings, session, watcher, thread: String::new(), last: 0 };
        history.find_thread();
        history
    }

    fn find_thread(&mut self) {
        self.session.set_option_multi_statements(false).unwrap();
        let id = self.session.connection_id();
        let threads = "SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID";
        let found = self.watcher.run(format!("{threads} = {id}")).unwrap();
        self.thread = found[0].text(0, 0).unwrap();
    }

    /// The row of the last statement: text, digest and error. The server writes it after the reply,
    /// and it can be read half written, so the session must have been answered once more.
    fn row(&mut self) -> Option<[Vec<u8>; 3]> {
        let found = self.watcher.run(format!(
            "SELECT DIGEST_TEXT, DIGEST, MYSQL_ERRNO \
             FROM performance_schema.events_statements_history WHERE THREAD_ID = {} \
             AND SQL_TEXT LIKE '/* {} */%'",
            self.thread, self.last
        ));
        let row = found.unwrap().remove(0).rows.pop()?;
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        Some([values.next()?, values.next()?, values.next()?])
    }

    /// Runs a statement and tells its digest.
    pub(crate) fn ask(&mut self, server: &Server, statement: &[u8]) -> Reply {
        let upper = statement.to_ascii_uppercase();
        if WORDS.iter().any(|word| memchr::memmem::find(&upper, word.as_bytes()).is_some()) {
            return Reply::Refused("not run".to_owned());
        }
        self.last += 1;
        let text = [format!("/* {} */ ", self.last).as_bytes(), statement].concat();
        if self.session.query(text).is_err() || self.session.ping().is_err() {
            // It may have ended the session, or the server.
            let Ok(_) = server.root() else {
                return Reply::Lost;
            };
            self.session = server::session(server, self.settings);
            self.find_thread();
            return Reply::Refused("the session ended".to_owned());
        }
        self.row().map_or_else(|| Reply::Refused("not in the history".to_owned()), reply)
    }
}

fn reply([mut text, hash, error]: [Vec<u8>; 3]) -> Reply {
    // These servers put a blank after every token.
    if text.last() == Some(&b' ') {
        text.pop();
    }
    if PARSER.contains(&error.as_slice()) || hash.is_empty() {
        return Reply::Refused(String::from_utf8_lossy(&error).into_owned());
    }
    Reply::Answer(Answer { text, hash, failed: error != b"0" })
}
