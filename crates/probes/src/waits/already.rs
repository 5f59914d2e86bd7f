//! Who waits already when waggle comes. The kernel lists the threads and their registers, the memory of the server is read
//! from outside and in a time that is limited, and the kernel notes what was read of each thread that has not moved on since.
//!
//! No program reads that memory: memory that never answers would hold up the kernel, for all programs of the host.

use std::io::Read;
use std::os::fd::AsFd;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, Object};
use thiserror::Error;
use waggle_model::Reading;

use super::skeleton::types::{note, stack_says, thread_row};
use super::unwound::{Code, Walk};
use crate::carrier::{self, CarrierError, kernel_error, read_struct, types, walk_threads};
use crate::servers::{Batch, MemoryError, Place, ProcessMemory};

const THREAD: &str = "on_thread";
const NOTE: &str = "on_note";
const NOTES: &str = "notes";
/// `NOTES_MAX` of `shared.h`.
const NOTES_MAX: usize = 4096;
/// `WANTS_…` of `shared.h`.
const WANTS_POLLED: u32 = 1;
const WANTS_STACK: u32 = 2;
const STATE_BYTES: u64 = 32;

/// How much may be done to note all. Who is not noted has no parts until its next statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// How often threads are looked at that move on while they are read.
    rounds: usize,
    /// How long all that may take, without the time in which nobody gets to run.
    most: Duration,
}

/// When waggle comes.
pub(super) const WHEN_ATTACHED: Effort = Effort { rounds: 4, most: Duration::from_secs(1) };
/// At a look.
pub(super) const AT_LOOK: Effort = Effort { rounds: 1, most: Duration::from_millis(50) };

/// The server, and what is known of it.
pub(super) struct Server<'a> {
    pub(super) pid: u32,
    pub(super) config: &'a types::config,
    pub(super) code: Code<'a>,
}

/// Notes what each thread of a server does now. Where its memory cannot be read, nothing is noted, and it is told why.
///
/// # Errors
///
/// If the kernel refuses.
pub(super) fn note_threads(
    object: &Object,
    server: &Server<'_>,
    effort: Effort,
) -> Result<Reading<()>, CarrierError> {
    let mut reader = Reader {
        server,
        memory: ProcessMemory::of(server.pid),
        batch: Batch::default(),
        most: effort.most,
    };
    for _ in 0..effort.rounds {
        let rows = rows_of(object, server.pid)?;
        let mut is_any = false;
        for rows in rows.chunks(NOTES_MAX) {
            let notes = match reader.read(rows) {
                Ok(notes) => notes,
                Err(why) => {
                    let why = format!("{} threads are not read: {why}", rows.len());
                    return Ok(Reading::Absent(why));
                }
            };
            is_any |= !notes.is_empty();
            put(object, server.pid, &notes)?;
        }
        if !is_any {
            break;
        }
    }
    Ok(Reading::Value(()))
}

/// The threads that nobody has noted yet.
fn rows_of(object: &Object, pid: u32) -> Result<Vec<thread_row>, CarrierError> {
    let rows = walk(object, THREAD, pid)?;
    let rows = rows.chunks_exact(size_of::<thread_row>()).filter_map(read_struct::<thread_row>);
    // Kernels before 6.1 tell of other servers, too.
    Ok(rows.filter(|row| row.tgid == pid).collect())
}

/// Lets the kernel note what was read.
fn put(object: &Object, pid: u32, notes: &[Noted]) -> Result<(), CarrierError> {
    if notes.is_empty() {
        return Ok(());
    }
    let map = carrier::map(object, NOTES)?;
    let keys: Vec<u8> = notes.iter().flat_map(|noted| noted.row.tid.to_ne_bytes()).collect();
    let values: Vec<u8> = notes.iter().flat_map(|noted| bytes_of(&noted.note)).collect();
    let (any, count) = (MapFlags::ANY, notes.len() as u32);
    let failed = kernel_error("noting the threads of a server");
    map.update_batch(&keys, &values, count, any, any).map_err(&failed)?;
    let walked = walk(object, NOTE, pid);
    map.delete_batch(&keys, count, any, any).map_err(&failed)?;
    walked.map(drop)
}

/// A note as the kernel reads it.
fn bytes_of(note: &note) -> Vec<u8> {
    let words = [note.switches, note.thd, note.start, note.polled];
    let words = words.iter().chain(&note.state).flat_map(|word| word.to_ne_bytes());
    let stack_says { part, condition, left_library, unused } = note.says;
    let halves = [part, condition, left_library, unused, note.command, note.is_off];
    words.chain(halves.iter().flat_map(|half| half.to_ne_bytes())).collect()
}

fn walk(object: &Object, name: &'static str, pid: u32) -> Result<Vec<u8>, CarrierError> {
    let program = carrier::program(object, name)?;
    let failed = |error: std::io::Error| CarrierError::Kernel {
        what: "walking the threads of a server",
        why: error.to_string(),
    };
    // The clock of this thread's run queue is that of its last switch.
    std::thread::yield_now();
    let mut rows = Vec::new();
    walk_threads(program.as_fd(), pid)
        .and_then(|mut file| file.read_to_end(&mut rows))
        .map_err(failed)?;
    Ok(rows)
}

/// A thread and what was read of it.
struct Noted {
    row: thread_row,
    note: note,
}

impl Noted {
    fn of((row, thd): (&thread_row, Option<u64>)) -> Option<Noted> {
        let thd = thd.filter(|thd| *thd != 0)?;
        let note = note { switches: row.switches, thd, is_off: row.is_off, ..note::default() };
        Some(Noted { row: *row, note })
    }

    fn wants(&self, what: u32) -> bool {
        self.row.wants & what != 0
    }
}

/// Reads the memory of a server.
struct Reader<'a> {
    server: &'a Server<'a>,
    memory: ProcessMemory,
    batch: Batch,
    most: Duration,
}

/// Why threads cannot be read.
#[derive(Debug, Error)]
enum Unread {
    #[error("there is more to read of them than is read at once")]
    TooMuch,
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Reader<'_> {
    /// What those of these threads do that serve a session.
    fn read(&mut self, rows: &[thread_row]) -> Result<Vec<Noted>, Unread> {
        let sessions = self.sessions(rows)?;
        let mut noted: Vec<Noted> = rows.iter().zip(sessions).filter_map(Noted::of).collect();
        self.statements(&mut noted)?;
        self.polled(&mut noted)?;
        self.stacks(&mut noted)?;
        self.states(&mut noted)?;
        Ok(noted)
    }

    /// The session of each thread, as `current_session` of the kernel's half finds it.
    fn sessions(&mut self, rows: &[thread_row]) -> Result<Vec<Option<u64>>, Unread> {
        let config = self.server.config;
        let pointers = rows.iter().map(|row| row.pointer);
        if config.session_by_key == 0 {
            let offset = config.session_offset;
            return self.words(pointers.map(|pointer| pointer.wrapping_add_signed(offset)));
        }
        let blocks = self.words(pointers.map(|pointer| pointer.wrapping_add(config.key_block)))?;
        // A thread that has no value under any key has no block of keys either.
        let slot = |block: Option<u64>| match block.unwrap_or(0) {
            0 => 0,
            block => block.wrapping_add(config.key_slot),
        };
        self.words(blocks.into_iter().map(slot))
    }

    /// Start and command of the sessions whose thread is off the processor. Those of others change.
    fn statements(&mut self, noted: &mut Vec<Noted>) -> Result<(), Unread> {
        let config = self.server.config;
        let off = noted.iter().filter(|noted| noted.note.is_off != 0);
        let places = off.flat_map(|noted| {
            [config.start, config.command].map(|offset| noted.note.thd.wrapping_add(offset.into()))
        });
        let words = self.words(places)?;
        let mut words = words.as_chunks().0.iter();
        noted.retain_mut(|noted| {
            if noted.note.is_off == 0 {
                return true;
            }
            let Some([Some(start), command]) = words.next() else { return false };
            (noted.note.start, noted.note.command) = (*start, command.unwrap_or(0) as u32);
            command.is_some() || config.has_command == 0
        });
        Ok(())
    }

    fn polled(&mut self, noted: &mut [Noted]) -> Result<(), Unread> {
        let mut noted: Vec<&mut Noted> =
            noted.iter_mut().filter(|noted| noted.wants(WANTS_POLLED)).collect();
        let words = self.words(noted.iter().map(|noted| noted.row.first))?;
        for (noted, word) in noted.iter_mut().zip(words) {
            noted.note.polled = word.unwrap_or(0);
        }
        Ok(())
    }

    fn stacks(&mut self, noted: &mut [Noted]) -> Result<(), Unread> {
        let code = self.server.code;
        let wanting = noted.iter_mut().filter(|noted| noted.wants(WANTS_STACK));
        let mut walks: Vec<(Walk<'_>, &mut Noted)> =
            wanting.map(|noted| (Walk::of(&noted.row, code), noted)).collect();
        while !walks.is_empty() {
            let mut wanted = Vec::new();
            walks.retain_mut(|(walk, noted)| {
                let words = walk.wants();
                noted.note.says = walk.says();
                wanted.extend(words.into_iter().flatten());
                words.is_some()
            });
            let words = self.words(wanted.into_iter())?;
            let mut words = words.as_chunks().0.iter();
            walks.retain_mut(|(walk, _)| words.next().is_some_and(|words| walk.step(*words)));
        }
        Ok(())
    }

    fn states(&mut self, noted: &mut [Noted]) -> Result<(), Unread> {
        let config = self.server.config;
        if config.has_state == 0 {
            return Ok(());
        }
        let mut noted: Vec<&mut Noted> =
            noted.iter_mut().filter(|noted| noted.wants(WANTS_STACK)).collect();
        let state = u64::from(config.state);
        let texts = self.words(noted.iter().map(|noted| noted.note.thd.wrapping_add(state)))?;
        self.batch.clear();
        for text in texts {
            let text = text.unwrap_or(0);
            self.batch.add(Place::new(text, if text == 0 { 0 } else { STATE_BYTES }));
        }
        self.fill()?;
        for (at, noted) in noted.iter_mut().enumerate() {
            let text = self.batch.get(at).unwrap_or_default().as_chunks().0;
            for (word, bytes) in noted.note.state.iter_mut().zip(text) {
                *word = u64::from_ne_bytes(*bytes);
            }
        }
        Ok(())
    }

    /// The words at some addresses; none at 0.
    fn words(&mut self, addresses: impl Iterator<Item = u64>) -> Result<Vec<Option<u64>>, Unread> {
        self.batch.clear();
        for address in addresses {
            self.batch.add(Place::new(address, if address == 0 { 0 } else { 8 }));
        }
        self.fill()?;
        let word = |at| Some(u64::from_ne_bytes(self.batch.get(at)?.try_into().ok()?));
        Ok((0..self.batch.len()).map(word).collect())
    }

    fn fill(&mut self) -> Result<(), Unread> {
        if self.memory.spent() >= self.most {
            return Err(Unread::TooMuch);
        }
        Ok(self.memory.read(&mut self.batch)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::PartsPlaces;
    use crate::waits::Tables;

    #[test]
    fn a_note_is_told_as_the_kernel_reads_it() {
        let told = note {
            switches: 1,
            thd: 2,
            start: 3,
            polled: 4,
            state: [5, 6, 7, 8],
            says: stack_says { part: 9, condition: 10, left_library: 11, unused: 0 },
            command: 12,
            is_off: 13,
        };
        let bytes = bytes_of(&told);
        assert_eq!(bytes.len(), size_of::<note>());
        let read: note = read_struct(&bytes).unwrap();
        assert_eq!(
            (read.thd, read.state, read.says.left_library, read.is_off),
            (2, [5, 6, 7, 8], 11, 13)
        );
    }

    #[test]
    fn the_limits_are_those_of_the_kernels_half() {
        let shared = include_str!("shared.h");
        assert!(shared.contains(&format!("#define NOTES_MAX {NOTES_MAX}\n")));
        assert!(shared.contains(&format!("#define STATE_BYTES {STATE_BYTES}\n")));
        assert!(shared.contains(&format!("#define WANTS_POLLED {WANTS_POLLED} ")));
        assert!(shared.contains(&format!("#define WANTS_STACK {WANTS_STACK} ")));
    }

    /// A session in our own memory, and the thread that serves it.
    #[test]
    fn what_the_memory_of_a_thread_says_is_read() {
        let text: &[u8; 32] = b"Waiting for table metadata lock\0";
        let session: [u64; 4] = [0, 77, 3, text.as_ptr() as u64];
        let thread: [u64; 2] = [0, session.as_ptr() as u64];
        let pollfd: u64 = 4 << 32;
        let config = types::config {
            session_offset: 8,
            start: 8,
            command: 16,
            has_command: 1,
            has_state: 1,
            state: 24,
            ..types::config::default()
        };
        let code = Code { tables: &Tables::default(), places: PartsPlaces::default() };
        let server = Server { pid: std::process::id(), config: &config, code };
        let row = thread_row {
            pointer: thread.as_ptr() as u64,
            switches: 9,
            first: std::ptr::from_ref(&pollfd) as u64,
            tid: 5,
            is_off: 1,
            wants: WANTS_POLLED | WANTS_STACK,
            ..thread_row::default()
        };
        let works = thread_row { is_off: 0, wants: 0, ..row };
        // One whose pointer leads nowhere, and one that serves no session.
        let others = [8, session.as_ptr() as u64 - 8].map(|pointer| thread_row { pointer, ..row });
        let most = Duration::from_secs(60);
        let (memory, batch) = (ProcessMemory::of(server.pid), Batch::default());
        let mut reader = Reader { server: &server, memory, batch, most };
        let noted = reader.read(&[row, works, others[0], others[1]]).unwrap();
        let told: Vec<_> = noted.iter().map(|noted| noted.note).collect();
        assert_eq!(told.len(), 2);
        let first = &told[0];
        assert_eq!((first.switches, first.thd, first.is_off), (9, session.as_ptr() as u64, 1));
        assert_eq!((first.start, first.command, first.polled), (77, 3, pollfd));
        assert_eq!(first.state.map(u64::to_ne_bytes).concat(), text);
        let second = &told[1];
        assert_eq!((second.thd, second.start, second.is_off), (first.thd, 0, 0));
        reader.most = Duration::ZERO;
        assert!(matches!(reader.read(&[row]), Err(Unread::TooMuch)));
    }
}
