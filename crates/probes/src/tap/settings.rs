//! What sessions have set that changes how the server reads their statements.
//!
//! It is read from outside, where a session is met first and after each statement that may change
//! it, so that the programs in the kernel pay nothing for it. A session that changes a setting and
//! changes it back before its records are drained is taken for one that never did.

use std::collections::HashMap;

use waggle_model::{CharsetName, Command, SessionSettings};

use super::fold::Session;
use super::record::Reply;
use crate::target::layout::{Field, Layout};
use crate::target::{Batch, Place, ProcessMemory};

/// Sessions whose settings are remembered; beyond, all are read again.
const SESSIONS_MAX: usize = 32 * 1024;

/// Where `struct CHARSET_INFO` has the pointer to its name, behind four numbers of 4 bytes, in every
/// family (`include/m_ctype.h`).
const NAME_OF_CHARSET: u64 = 16;
/// `MY_CS_NAME_SIZE`.
const NAME_LIMIT: u32 = 32;

/// Commands that give a session its first settings back (`include/my_command.h`).
const CHANGE_USER: Command = Command(17);
const RESET_CONNECTION: Command = Command(31);

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
    connection_id: u32,
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

    /// The settings under which a statement that ended was read; `None` where they are not known.
    pub(super) fn of(&mut self, reply: &Reply<'_>) -> Option<SessionSettings> {
        let session = Session { tgid: reply.head.tgid, thd: reply.head.thd };
        let settings = self.of_session(session, reply.get(Field::ConnectionId)?);
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
        let settings = self.servers.get_mut(&session.tgid)?.read(session.thd, connection_id);
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
            connection_id: layout.offset(Field::ConnectionId)?,
            sql_mode: layout.offset(Field::SqlMode)?,
            charset: layout.offset(Field::Charset)?,
            charsets: HashMap::new(),
            batch: Batch::default(),
        })
    }

    /// Reads one session; `None` where it is gone, or serves another connection by now.
    fn read(&mut self, thd: u64, connection_id: u64) -> Option<SessionSettings> {
        self.batch.clear();
        let widths = [Field::ConnectionId, Field::SqlMode, Field::Charset].map(Field::width);
        for (offset, width) in [self.connection_id, self.sql_mode, self.charset].iter().zip(widths)
        {
            self.batch.add(Place::new(thd.wrapping_add(u64::from(*offset)), width.into()));
        }
        self.memory.read(&mut self.batch).ok()?;
        if number(self.batch.get(0)?) != connection_id {
            return None;
        }
        let (sql_mode, charset) = (number(self.batch.get(1)?), number(self.batch.get(2)?));
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

fn may_change_settings(reply: &Reply<'_>) -> bool {
    let command = reply.get(Field::Command).map(|number| Command(number as u8));
    matches!(command, Some(CHANGE_USER | RESET_CONNECTION)) || sets(reply.text)
}

/// Whether the first word is `SET`, or `EXECUTE`, behind which may be one; also in a comment that is
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
