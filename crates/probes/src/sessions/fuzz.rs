//! Sessions in our own memory, with pointers and lengths that lead anywhere.

use waggle_fuzz_frame::{Counts, Random, edge, put};
use waggle_host::{monotonic_ns, wall_ns};

use super::*;
use crate::servers::CurrentThdAt;
use crate::servers::breakpoint::Breakpoints;
use crate::servers::layout::Base;
use crate::servers::waiting::Waiting;

/// Sessions of an input at most, and the bytes of each with what it points to.
const SESSIONS: usize = 4;
const SESSION: usize = 40 * 1024;
/// Where the objects lie that a session points to.
const AREA: usize = 32 * 1024;
const CONTEXT: usize = 34 * 1024;
const TEXT: usize = 36 * 1024;
/// Where a thread keeps the pointer to its session.
const POINTER: usize = 39 * 1024;
/// Bytes of a text, and of all together.
const LIMITS: (u32, u64) = (512, 1024);

/// What the reader of sessions is given.
pub(crate) struct Look {
    memory: Vec<u8>,
    threads: Vec<Thread>,
    rows: Vec<u8>,
}

impl Look {
    pub(crate) fn new() -> Look {
        Look { memory: vec![0; SESSIONS * SESSION], threads: Vec::new(), rows: Vec::new() }
    }

    /// Bytes that are filled.
    pub(crate) fn len(&self) -> usize {
        self.threads.len() * SESSION
    }

    /// The addresses of its sessions, and of some that are none.
    pub(crate) fn sessions(&self) -> [u64; 6] {
        let base = self.memory.as_ptr() as u64;
        let session = |at: usize| base + (at * SESSION) as u64;
        [session(0), session(0), session(1), session(2), 0x1000, u64::MAX - 7]
    }

    pub(crate) fn make(&mut self, layout: &Layout, random: &mut Random) {
        self.threads.clear();
        self.rows.clear();
        let base = self.memory.as_ptr() as u64;
        let count = random.below(SESSIONS + 1);
        for (at, session) in self.memory.chunks_exact_mut(SESSION).take(count).enumerate() {
            let address = base + (at * SESSION) as u64;
            session.fill(0);
            fill(session, address, layout, random);
            let wild = random.below(12) == 0;
            put(session, POINTER, 8, if wild { edge(random) } else { address });
            let wild = random.below(30) == 0;
            self.threads.push(Thread {
                pointer: if wild { edge(random) } else { address + POINTER as u64 },
                switches: random.below(3) as u64,
                started: 1,
                tid: at as u32 + 1,
                tgid: 1,
                asleep: random.coin(),
            });
        }
        self.rows.extend((0..random.below(100)).map(|_| random.below(256) as u8));
    }

    pub(crate) fn check(&mut self, layout: &Layout, counts: &mut Counts) {
        threads::decode(&self.rows)
            .for_each(|thread| counts.add_to("rows", u64::from(thread.asleep)));
        let Ok(mut sessions) = Sessions::of(layout) else { return };
        let pid = std::process::id();
        let mut memory = ProcessMemory::of(pid);
        let current_thd = CurrentThdAt::ThreadLocal { offset: 0 };
        let limits = Limits {
            text: LIMITS.0,
            texts: LIMITS.1,
            start_to_monotonic: &|start| start.checked_mul(1000),
        };
        let mut seen = Vec::new();
        // The second look meets threads of the first.
        for _ in 0..2 {
            let Split { mut kept, ran, .. } = Split::of(self.threads.clone(), seen);
            let read =
                sessions.reader.read(&mut memory, current_thd, ran, &mut kept, &limits).unwrap();
            seen = kept;
            seen.extend(read);
            seen.sort_by_key(|seen| seen.thread.tid);
        }
        let sample = count(&seen, monotonic_ns());
        counts.add_to("running", sample.running.len() as u64);
        counts.add_to("idle_sessions", (sample.sessions - sample.running.len()) as u64);
        counts.add_to("unreadable_sessions", sample.unreadable as u64);
        let texts = sample.running.iter().filter_map(|one| one.text.as_ref());
        assert!(texts.map(|text| text.len() as u64).sum::<u64>() <= LIMITS.1);
        let program = "program".into();
        let instance = Instance {
            pid,
            start_ticks: 1,
            program,
            load_bias: 0,
            current_thd,
            breakpoints: Breakpoints::none(),
            waiting: Waiting::none(),
            monotonic_ahead_ns: Some(0),
        };
        for running in &sample.running {
            let fitting = fits(layout, &instance, running);
            let is_fitting = fitting.is_some_and(|it| it.offset(Field::Command).is_some());
            counts.add_to("fitting", u64::from(is_fitting));
        }
    }
}

/// A session of a layout, as far as its fields lie within its bytes.
fn fill(session: &mut [u8], address: u64, layout: &Layout, random: &mut Random) {
    for field in Field::ALL {
        let Some(offset) = layout.offset(field) else { continue };
        let of_base = match field.base() {
            Base::Session => 0,
            Base::Diagnostics => AREA,
            Base::SecurityContext => CONTEXT,
        };
        let text = address + TEXT as u64 + random.below(64) as u64;
        let usual = match field {
            Field::QueryText | Field::Database | Field::State => text,
            Field::User | Field::Host | Field::Address => text,
            Field::QueryLength | Field::DatabaseLength => random.below(1000) as u64,
            Field::ConnectionId => 1 + random.below(3) as u64,
            Field::Command => [3, 3, 3, 0, 11, 29][random.below(6)],
            Field::StartTime => [monotonic_ns(), wall_ns()][random.below(2)] / 1000,
            Field::Charset => text & !7,
            Field::Diagnostics => address + AREA as u64,
            Field::SecurityContext => address + CONTEXT as u64,
            _ => random.below(2) as u64,
        };
        let number = if random.below(15) == 0 { edge(random) } else { usual };
        put(session, of_base + offset as usize, field.width() as usize, number);
        if field.base() == Base::SecurityContext {
            let length = if random.below(15) == 0 { edge(random) } else { 5 };
            put(session, of_base + offset as usize + 8, 8, length);
        }
    }
    session[TEXT..TEXT + 1024].fill(b't');
}
