//! Session settings that change how the server reads statements.
//!
//! waggle reads them from outside: when it meets a session for the first time, and after each
//! statement that can change them. So the programs in the kernel pay nothing for it. If a session
//! changes a setting and changes it back before waggle drains its records, waggle misses both
//! changes.

use foldhash::HashMap;
use waggle_model::{CharsetName, Command, SessionSettings};

use crate::carrier::{Session, SessionData};
use crate::servers::layout::{Field, Layout};
use crate::servers::{Batch, Place, ProcessMemory};

/// Sessions whose settings are remembered; beyond, all are read again.
const SESSIONS_MAX: usize = 32 * 1024;

/// Where `struct CHARSET_INFO` has the pointer to its name, after four numbers of 4 bytes, in every
/// family (`include/m_ctype.h`).
const NAME_OF_CHARSET: u64 = 16;
/// `MY_CS_NAME_SIZE`.
const NAME_LIMIT: u32 = 32;

/// The settings of the sessions of every server that is watched.
#[derive(Default)]
pub(super) struct Settings {
    servers: HashMap<u32, Server>,
    known: HashMap<Session, Known>,
}

/// What was read of one session: nothing, where it could not be.
struct Known {
    connection_id: u64,
    settings: Option<SessionSettings>,
}

/// Where one server keeps them.
struct Server {
    memory: ProcessMemory,
    /// Where the layout has it: it tells whether a session serves another connection by now.
    connection_id: Option<u32>,
    sql_mode: u32,
    charset: u32,
    /// Names of character sets by the address of what describes one: that never moves.
    charsets: HashMap<u64, CharsetName>,
    batch: Batch,
}

impl Settings {
    /// Begins with a server, where its layout shows what is needed.
    pub(super) fn watch(&mut self, pid: u32, layout: &Layout) {
        self.forget(pid);
        if let Some(server) = Server::of(pid, layout) {
            self.servers.insert(pid, server);
        }
    }

    /// Forgets a server.
    pub(super) fn forget(&mut self, pid: u32) {
        self.servers.remove(&pid);
        self.known.retain(|session, _| session.tgid != pid);
    }

    /// The settings under which a statement that ended was read; `None` if they are not known.
    pub(super) fn of(&mut self, reply: &SessionData<'_>) -> Option<SessionSettings> {
        let session = Session::of(&reply.head);
        let settings = self.of_session(session, reply.get(Field::ConnectionId).unwrap_or(0));
        if may_change_settings(reply) {
            self.known.remove(&session);
        }
        settings
    }

    /// The settings of a session now.
    pub(super) fn of_session(
        &mut self,
        session: Session,
        connection_id: u64,
    ) -> Option<SessionSettings> {
        let known = self.known.get(&session).filter(|known| known.connection_id == connection_id);
        if let Some(known) = known {
            return known.settings;
        }
        let server = self.servers.get_mut(&session.tgid)?;
        let settings = server.read(session.thd, connection_id);
        if server.connection_id.is_none() {
            // The next connection at this address would look like this one.
            return settings;
        }
        if self.known.len() >= SESSIONS_MAX {
            self.known.clear();
        }
        self.known.insert(session, Known { connection_id, settings });
        settings
    }
}

impl Server {
    fn of(pid: u32, layout: &Layout) -> Option<Server> {
        Some(Server {
            memory: ProcessMemory::of(pid),
            connection_id: layout.offset(Field::ConnectionId),
            sql_mode: layout.offset(Field::SqlMode)?,
            charset: layout.offset(Field::Charset)?,
            charsets: HashMap::default(),
            batch: Batch::default(),
        })
    }

    /// Reads one session; `None` if it is gone, or serves another connection by now.
    fn read(&mut self, thd: u64, connection_id: u64) -> Option<SessionSettings> {
        self.batch.clear();
        for (offset, field) in [
            (Some(self.sql_mode), Field::SqlMode),
            (Some(self.charset), Field::Charset),
            (self.connection_id, Field::ConnectionId),
        ] {
            let Some(offset) = offset else { continue };
            let address = thd.wrapping_add(u64::from(offset));
            self.batch.add(Place::new(address, field.width().into()));
        }
        self.memory.read(&mut self.batch).ok()?;
        if self.connection_id.is_some() && number(self.batch.get(2)?) != connection_id {
            return None;
        }
        let (sql_mode, charset) = (number(self.batch.get(0)?), number(self.batch.get(1)?));
        Some(SessionSettings { sql_mode, charset: self.charset_at(charset)? })
    }

    /// The name in the description of a character set.
    fn charset_at(&mut self, address: u64) -> Option<CharsetName> {
        if let Some(known) = self.charsets.get(&address) {
            return Some(*known);
        }
        let pointer = address.wrapping_add(NAME_OF_CHARSET);
        let pointer = number(&self.memory.read_one(Place::new(pointer, 8)).ok()??);
        self.batch.clear();
        let [first, second] = Place::zero_ended(pointer, NAME_LIMIT);
        let name = self.batch.add(first);
        self.batch.add(second);
        self.memory.read(&mut self.batch).ok()?;
        let charset = CharsetName::new(self.batch.zero_ended(name)?)?;
        self.charsets.insert(address, charset);
        Some(charset)
    }
}

/// A number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn may_change_settings(reply: &SessionData<'_>) -> bool {
    let Some(number) = reply.get(Field::Command) else {
        return reply.text.is_empty() || sets(reply.text);
    };
    let command = Command(number as u8);
    // These give a session its first settings back. A login is seen as well where the connection id is not: the
    // session may have served another connection.
    let begins = [Command::CONNECT, Command::CHANGE_USER, Command::RESET_CONNECTION];
    begins.contains(&command) || sets(reply.text)
}

/// Whether the first word is `SET`, or `EXECUTE`, after which may be one; also in a comment that is
/// code, as in a dump.
fn sets(mut text: &[u8]) -> bool {
    while let Some(comment) = text.trim_ascii_start().strip_prefix(b"/*") {
        if matches!(comment, [b'!', ..] | [b'M', b'!', ..]) {
            text = comment.strip_prefix(b"M").unwrap_or(comment);
            break;
        }
        let Some(end) = comment.windows(2).position(|pair| pair == b"*/") else { return false };
        text = &comment[end + 2..];
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
    let word = text.iter().position(is_letter).map_or(&[][..], |start| &text[start..]);
    let end = word.iter().position(|byte| !is_letter(byte)).unwrap_or(word.len());
    let word = &word[..end];
    word.eq_ignore_ascii_case(b"set") || word.eq_ignore_ascii_case(b"execute")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_known_by_its_first_word() {
        for text in [
            "EXECUTE s USING @a",
            "execute immediate 'SET NAMES gbk'",
            "SET sql_mode = 'ANSI'",
            "  set\tnames gbk",
            "/* c */ /* d */ Set @@sql_mode=''",
            "/*!40101 SET NAMES utf8 */",
            "/*M!100100 SET sql_mode='' */",
            "set@a=1",
        ] {
            assert!(sets(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT 1",
            "SETTLE",
            "EXECUTED",
            "se",
            "",
            "/* SET a = 1",
            "/* set */ select 1",
            "-- x",
        ] {
            assert!(!sets(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn numbers_are_little_endian() {
        assert_eq!((number(&[1, 2]), number(&[])), (0x201, 0));
    }
}
