//! The commands of the client protocol, all of them in one table.

use std::fmt;

use CommandKind::{BlindSpot, NoStatement, Statement};
use Counts::{AsQuestion, Not};

/// A command of the client protocol, by its number
/// (`enum_server_command` in `include/my_command.h` of MySQL, `include/mysql_com.h` of MariaDB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Command(pub u8);

/// What a command is to the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// It runs SQL and sends a reply: the tap captures it.
    Statement,
    /// It runs no SQL.
    NoStatement,
    /// It runs SQL that the tap does not see.
    BlindSpot,
}

/// One line of the table.
struct Known {
    number: u8,
    kind: CommandKind,
    counts: Counts,
    /// As Performance Schema (`statement/com/NAME`) and the process list call it. The first is ours.
    names: &'static [&'static str],
}

/// Whether the server counts a command in `Questions` (it does not if it has `CF_SKIP_QUESTIONS` in
/// `sql/sql_parse.cc`; tried on all five servers).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    AsQuestion,
    Not,
}

const fn line(
    number: u8,
    kind: CommandKind,
    counts: Counts,
    names: &'static [&'static str],
) -> Known {
    Known { number, kind, counts, names }
}

/// Every command that a supported server knows. The numbers up to 31 mean the same in both families,
/// 32 and 33 are MySQL's, 250 and more are MariaDB's. What is not here is unknown, and `waggle verify`
/// counts it as missing.
const TABLE: &[Known] = &[
    line(0, NoStatement, Not, &["Sleep"]),
    line(1, NoStatement, AsQuestion, &["Quit"]),
    line(2, NoStatement, AsQuestion, &["Init DB"]),
    line(3, Statement, AsQuestion, &["Query"]),
    line(4, NoStatement, AsQuestion, &["Field List"]),
    // The servers of today refuse both.
    line(5, NoStatement, AsQuestion, &["Create DB"]),
    line(6, NoStatement, AsQuestion, &["Drop DB"]),
    line(7, NoStatement, AsQuestion, &["Refresh"]),
    line(8, NoStatement, AsQuestion, &["Shutdown"]),
    line(9, NoStatement, Not, &["Statistics"]),
    line(10, NoStatement, AsQuestion, &["Processlist"]),
    line(11, NoStatement, Not, &["Connect"]),
    line(12, NoStatement, AsQuestion, &["Kill"]),
    line(13, NoStatement, AsQuestion, &["Debug"]),
    line(14, NoStatement, Not, &["Ping"]),
    line(15, NoStatement, AsQuestion, &["Time"]),
    line(16, NoStatement, AsQuestion, &["Delayed insert"]),
    line(17, NoStatement, AsQuestion, &["Change user"]),
    line(18, NoStatement, AsQuestion, &["Binlog Dump"]),
    line(19, NoStatement, AsQuestion, &["Table Dump"]),
    line(20, NoStatement, AsQuestion, &["Connect Out"]),
    line(21, NoStatement, AsQuestion, &["Register Replica", "Register Slave"]),
    line(22, NoStatement, Not, &["Prepare"]),
    line(23, Statement, AsQuestion, &["Execute"]),
    line(24, NoStatement, AsQuestion, &["Long Data"]),
    line(25, NoStatement, Not, &["Close stmt"]),
    line(26, NoStatement, Not, &["Reset stmt"]),
    line(27, NoStatement, AsQuestion, &["Set option"]),
    line(28, NoStatement, AsQuestion, &["Fetch"]),
    line(29, NoStatement, Not, &["Daemon"]),
    line(30, NoStatement, AsQuestion, &["Binlog Dump GTID", "Unimpl get tid"]),
    line(31, NoStatement, AsQuestion, &["Reset Connection"]),
    line(32, NoStatement, AsQuestion, &["Clone"]),
    line(33, NoStatement, AsQuestion, &["Group Replication Data Stream subscription"]),
    // One statement with an array of values for each of its parameters.
    line(250, Statement, AsQuestion, &["Bulk_execute"]),
    // Threads of a replica, in the process list only.
    line(251, NoStatement, Not, &["Slave_worker"]),
    line(252, NoStatement, Not, &["Slave_IO"]),
    line(253, NoStatement, Not, &["Slave_SQL"]),
    // COM_MULTI, several commands in a packet: in early releases of MariaDB 10.2 to 10.4, and no
    // client sends it.
    line(254, BlindSpot, AsQuestion, &["Com_multi", "Reserved"]),
    // A number that the server does not know.
    line(255, NoStatement, AsQuestion, &["Error"]),
];

/// The line of each number, plus one; 0 for none.
const LINES: [u8; 256] = {
    let mut lines = [0; 256];
    let mut at = 0;
    while at < TABLE.len() {
        lines[TABLE[at].number as usize] = at as u8 + 1;
        at += 1;
    }
    lines
};

impl Command {
    /// No command: the session waits for its client.
    pub const SLEEP: Command = Command(0);
    /// The end of a session.
    pub const QUIT: Command = Command(1);
    /// A statement in text form.
    pub const QUERY: Command = Command(3);
    /// The login.
    pub const CONNECT: Command = Command(11);
    /// Another user takes the session over.
    pub const CHANGE_USER: Command = Command(17);
    /// A statement is prepared.
    pub const PREPARE: Command = Command(22);
    /// A prepared statement is executed.
    pub const EXECUTE: Command = Command(23);
    /// Rows are fetched from a cursor.
    pub const FETCH: Command = Command(28);
    /// A thread of the server itself.
    pub const DAEMON: Command = Command(29);
    /// The session gets its first settings back.
    pub const RESET_CONNECTION: Command = Command(31);
    /// A prepared statement is executed with arrays of values (MariaDB).
    pub const BULK_EXECUTE: Command = Command(250);

    /// Every command that runs a statement.
    pub fn statements() -> impl Iterator<Item = Command> {
        let statements = TABLE.iter().filter(|known| known.kind == CommandKind::Statement);
        statements.map(|known| Command(known.number))
    }

    /// The command that Performance Schema calls `statement/com/NAME`; the servers do not agree
    /// about capital letters.
    pub fn of_name(name: &str) -> Option<Command> {
        let is_named =
            |known: &&Known| known.names.iter().any(|one| one.eq_ignore_ascii_case(name));
        TABLE.iter().find(is_named).map(|known| Command(known.number))
    }

    /// What it is to the capture; `None` if no supported server knows such a command.
    pub fn kind(self) -> Option<CommandKind> {
        self.known().map(|known| known.kind)
    }

    /// Whether this command runs a statement that the tap captures.
    pub fn is_statement(self) -> bool {
        self.kind() == Some(CommandKind::Statement)
    }

    /// Whether it runs a statement that was prepared before, by the binary protocol.
    pub fn is_prepared(self) -> bool {
        self.is_statement() && self != Command::QUERY
    }

    /// Whether a session that replies to it with success has the text of a statement; `None` where that depends.
    pub fn has_text(self) -> Option<bool> {
        match self.0 {
            3 => Some(true),
            // Old forms of statements, and what works with a prepared one.
            2 | 4..=6 | 22..=24 | 26 | 28 | 250 => None,
            // The server itself runs something for them.
            18 | 30 | 32 | 33 | 251..=254 => None,
            _ => Some(false),
        }
    }

    /// Whether the server counts it in `Questions`; false if the command is not known.
    pub fn is_question(self) -> bool {
        self.known().is_some_and(|known| known.counts == Counts::AsQuestion)
    }

    fn known(self) -> Option<&'static Known> {
        TABLE.get(usize::from(LINES[usize::from(self.0)]).checked_sub(1)?)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(known) => out.write_str(known.names[0]),
            None => write!(out, "Command {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_at_most_one_line_and_every_name_leads_to_it() {
        for known in TABLE {
            let same = TABLE.iter().filter(|other| other.number == known.number);
            assert_eq!(same.count(), 1, "{}", known.number);
            for name in known.names {
                assert_eq!(Command::of_name(name), Some(Command(known.number)), "{name}");
            }
        }
    }

    #[test]
    fn text_prepared_and_bulk_execution_are_the_statements() {
        let statements: Vec<_> = Command::statements().collect();
        assert_eq!(statements, [Command::QUERY, Command::EXECUTE, Command::BULK_EXECUTE]);
        let prepared = statements.iter().map(|command| command.is_prepared());
        assert_eq!(prepared.collect::<Vec<_>>(), [false, true, true]);
        assert!(!Command::PREPARE.is_prepared());
    }

    #[test]
    fn only_what_runs_or_prepares_a_statement_can_have_a_text() {
        assert_eq!(Command::QUERY.has_text(), Some(true));
        for without in [Command::SLEEP, Command::QUIT, Command::CONNECT, Command(14), Command(200)]
        {
            assert_eq!(without.has_text(), Some(false), "{without}");
        }
        for either in [Command::PREPARE, Command::EXECUTE, Command::BULK_EXECUTE, Command::FETCH] {
            assert_eq!(either.has_text(), None, "{either}");
        }
    }

    #[test]
    fn a_number_without_a_line_is_of_no_kind() {
        assert_eq!(Command(200).kind(), None);
        assert!(!Command(200).is_statement() && !Command(200).is_question());
        assert_eq!(Command(200).to_string(), "Command 200");
        assert_eq!(Command::BULK_EXECUTE.to_string(), "Bulk_execute");
    }
}
