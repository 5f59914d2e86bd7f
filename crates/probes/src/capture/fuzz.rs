//! Records as the programs in the kernel write them, by the layouts of real servers, and sessions in memory, both
//! changed.

use waggle_fuzz_frame::{Counts, Fuzzer, Random, edge, mutate, put, run};
use waggle_model::{Command, Loss, Reading};

use super::*;
use crate::carrier::{Meaning, Target};
use crate::servers::CurrentThdAt;
use crate::servers::layout::crafted::layouts;
use crate::servers::layout::{Field, Place};
use crate::sessions::fuzz::Look;

/// Bytes of `struct head` and `struct identity` of `shared.h`, and of `struct nested`.
const HEAD: usize = 80;
const IDENTITY: usize = HEAD + 8 + 16 + 128 + 256 + 256;
const NESTED: usize = 32 + 256;
/// Bytes of `struct fatal` behind its head, and of `struct dying`.
const FATAL: usize = 24 + 16;
const DYING: usize = 8 + 256;
/// The program that serves the server.
const PROGRAM: u32 = 3;
/// Records of a usual input at most.
const RECORDS: usize = 12;
/// One input in `MANY_EVERY` has a record of `MANY` sessions, each with a text of `MANY_TEXT` bytes.
const MANY_EVERY: usize = 5000;
const MANY: u64 = 40_000;
const MANY_TEXT: usize = 16 * 1024;
/// What no offset of a layout exceeds.
const OFFSET_MAX: usize = 1 << 20;

const TEXTS: [&[u8]; 6] = [
    b"SELECT 1",
    b"SET NAMES gbk",
    b"/*!40101 SET sql_mode='ANSI' */",
    b"/* open SET",
    b"CREATE USER u IDENTIFIED BY 'x'",
    b"\xff\xfe\0",
];

struct Reader {
    layout: Layout,
    plan: Option<Plan>,
    hook: Hook,
    records: Vec<Vec<u8>>,
    /// Of a session each, if there is one.
    many: Option<Vec<u8>>,
    running: Vec<RunningStatement>,
    look: Look,
}

impl Reader {
    fn new() -> Reader {
        Reader {
            layout: layouts()[0].clone(),
            plan: None,
            hook: Hook::Send,
            records: Vec::new(),
            many: None,
            running: Vec::new(),
            look: Look::new(),
        }
    }

    /// A record of any kind.
    fn record(plan: &Plan, thd: u64, random: &mut Random) -> Vec<u8> {
        let kind = *random.pick(&[
            RECORD_STATEMENT,
            RECORD_STATEMENT,
            RECORD_NESTED,
            RECORD_IDENTITY,
            RECORD_READY,
            RECORD_FATAL,
            RECORD_DYING,
        ]);
        let text = *random.pick(&TEXTS);
        let mut record = vec![0; HEAD];
        match kind {
            RECORD_IDENTITY => record.resize(IDENTITY, b'u'),
            RECORD_READY => {}
            RECORD_FATAL => record.extend((0..FATAL).map(|_| random.below(12) as u8)),
            _ => {
                let mut data = Reader::data(plan, random);
                if kind == RECORD_NESTED {
                    data.extend((0..NESTED).map(|_| random.below(3) as u8));
                }
                if kind == RECORD_DYING {
                    data.extend((0..DYING).map(|_| random.below(3) as u8));
                }
                record.extend(data);
                record.extend(text);
            }
        }
        // Whatever stands there is a list of words.
        let parts_at = if random.coin() { 0 } else { (HEAD + random.below(400)) as u64 };
        let mut set = |at, width, usual: u64| {
            let number = if random.below(12) == 0 { edge(random) } else { usual };
            put(&mut record, at, width, number);
        };
        set(4, 4, kind.into());
        set(12, 4, std::process::id().into());
        set(16, 8, thd);
        set(24, 8, 5_000_000_000);
        set(32, 8, 4_000_000_000);
        set(40, 8, 3_000_000_000);
        set(48, 8, 100);
        set(56, 4, 100);
        set(60, 4, text.len() as u64);
        set(64, 4, 0);
        set(68, 4, PROGRAM.into());
        set(72, 4, parts_at);
        if kind == RECORD_IDENTITY {
            for at in [HEAD + 8, HEAD + 12, HEAD + 16] {
                set(at, 4, 4);
            }
        }
        if random.below(8) == 0 {
            let longest = record.len() + 100;
            mutate(&mut record, random, &[], &[], longest);
        }
        record
    }

    /// The fields of a session at the end of a statement.
    fn data(plan: &Plan, random: &mut Random) -> Vec<u8> {
        let mut data = vec![0; plan.config.data_length as usize];
        for field in Field::ALL {
            let Some(at) = plan.at(field) else { continue };
            let usual = match field {
                Field::ConnectionId => 7,
                Field::Command => [3, 23, 17, 250][random.below(4)],
                Field::StartTime => 2_000_000 + random.below(2) as u64,
                Field::DiagnosticsStatus => random.below(7) as u64,
                Field::ServerStatus => [2, 2, 10, 0x4000][random.below(4)],
                Field::QueryLength => random.below(40) as u64,
                Field::QueryText => 0x7000 + random.below(300) as u64,
                _ => random.below(3) as u64,
            };
            let number = if random.below(15) == 0 { edge(random) } else { usual };
            put(&mut data, at as usize, field.width() as usize, number);
        }
        data
    }
}

/// What the main thread of a server tells that a signal ends.
fn end_of_main_thread() -> Vec<u8> {
    let mut record = vec![0; HEAD];
    put(&mut record, 4, 4, RECORD_DYING.into());
    put(&mut record, 12, 4, std::process::id().into());
    record
}

/// A reply that may be followed by another of its statement.
fn held_back(plan: &Plan) -> Vec<u8> {
    let mut record = vec![0; HEAD + plan.config.data_length as usize + MANY_TEXT];
    let fields = [(Field::ServerStatus, 8), (Field::DiagnosticsStatus, 1), (Field::Command, 3)];
    for (field, number) in fields {
        if let Some(at) = plan.at(field) {
            put(&mut record, HEAD + at as usize, field.width() as usize, number);
        }
    }
    put(&mut record, 4, 4, RECORD_STATEMENT.into());
    put(&mut record, 12, 4, std::process::id().into());
    put(&mut record, 60, 4, MANY_TEXT as u64);
    put(&mut record, 68, 4, PROGRAM.into());
    record
}

/// A layout of a real server, perhaps without some fields, perhaps with others elsewhere.
fn layout(random: &mut Random) -> Layout {
    let mut layout = random.pick(layouts()).clone();
    for place in layout.fields.values_mut() {
        match random.below(40) {
            0 => *place = Reading::absent("it was hidden on purpose"),
            1 => {
                let near = if random.coin() { 1000 } else { OFFSET_MAX + 1 };
                let offset = random.below(near) as u32;
                *place = Reading::Value(Place { offset, how: "made up".to_owned() });
            }
            _ => {}
        }
    }
    layout
}

impl Fuzzer for Reader {
    const SUBJECT: &'static str = "reader";
    /// The sessions that are remembered, and the replies that are held back.
    const MEMORY_MAX: u64 = 48 << 20;

    fn make(&mut self, _: u64, random: &mut Random) -> usize {
        self.layout = layout(random);
        let offset = edge(random).cast_signed();
        let limit = *random.pick(&[256, 1024, 65_536]);
        self.plan = Plan::new(&self.layout, CurrentThdAt::ThreadLocal { offset }, limit).ok();
        self.hook = *random.pick(&Hook::LADDER);
        self.records.clear();
        self.running.clear();
        self.look.make(&self.layout, random);
        let Some(plan) = &self.plan else { return self.look.len() };
        let sessions = self.look.sessions();
        for _ in 0..=random.below(RECORDS) {
            self.records.push(Reader::record(plan, *random.pick(&sessions), random));
        }
        self.many = (random.below(MANY_EVERY) == 0).then(|| held_back(plan));
        for _ in 0..random.below(3) {
            self.running.push(RunningStatement {
                thd: *random.pick(&sessions),
                connection_id: [7, edge(random)][random.below(2)],
                noted_start_us: random.coin().then(|| 2_000_000 + random.below(2) as u64),
                ..RunningStatement::default()
            });
        }
        self.look.len() + self.records.iter().map(Vec::len).sum::<usize>()
    }

    fn check(&mut self, counts: &mut Counts) {
        self.look.check(&self.layout, counts);
        let Some(plan) = &self.plan else { return };
        let pid = std::process::id();
        let target =
            Target { program: PROGRAM, plan: plan.clone(), meaning: Meaning::of(&self.layout) };
        let mut nested = nested::Probe::reading(pid, &target);
        let mut death = death::Probe::reading(pid, &target);
        let mut tap = tap::Probe::reading(pid, target, self.hook, &self.layout);
        tap.read_clocks();
        let mut statements = 0;
        let mut take = |statement: &Statement<'_>| {
            statements += 1;
            let length = statement.text.map_or(0, |text| text.bytes.len());
            assert!(length <= MANY_TEXT);
        };
        for record in &self.records {
            death.signal(record);
            reached(&mut death, &tap, record);
            read(&mut tap, &mut nested, record, &mut |event| {
                if let Event::Ended(statement) = event {
                    take(statement);
                }
            });
        }
        if let Some(record) = &mut self.many {
            for thd in 0..MANY {
                put(record, 16, 8, thd << 4);
                read(&mut tap, &mut nested, record, &mut |_| {});
            }
        }
        tap.settle(pid, &self.running, u64::MAX, &mut |event| {
            if let Event::Ended(statement) = event {
                take(statement);
            }
        });
        for running in &self.running {
            tap.settings(pid, running);
        }
        reached(&mut death, &tap, &end_of_main_thread());
        let ran = death.take(pid, 0, |statement| tap.is_past(pid, statement)).ran;
        counts.add_to("ran_at_the_end", ran.map_or(0, |ran| ran.len() as u64));
        counts.add_to("statements", statements);
        let lost = tap.losses(pid).plus(&nested.losses(pid));
        counts.add_to("of_another_program", lost.get(Loss::UnreadableSession));
        counts.add_to("forgotten", lost.get(Loss::SessionsFull));
    }
}

#[test]
fn no_record_and_no_session_makes_anything_panic_hang_or_grow() {
    let Some((inputs, counts)) = run(Reader::new) else { return };
    for (what, at_least) in [
        ("statements", 1),
        ("ran_at_the_end", 1),
        ("of_another_program", 20),
        ("forgotten", 10_000),
        ("running", 2),
        ("idle_sessions", 10),
        ("unreadable_sessions", 10),
        ("fitting", 100),
    ] {
        assert!(counts.of(what) * at_least > inputs, "{what}: {counts:?}");
    }
}

/// A hostile server can have as many sessions as it likes, and let each begin a reply.
#[test]
fn replies_that_are_held_back_share_16_mib() {
    let (layout, pid) = (&layouts()[0], std::process::id());
    let plan = Plan::new(layout, CurrentThdAt::ThreadLocal { offset: 0 }, TEXT_LIMIT).unwrap();
    let mut record = held_back(&plan);
    let target = Target { program: PROGRAM, plan, meaning: Meaning::of(layout) };
    let mut nested = nested::Probe::default();
    let mut tap = tap::Probe::reading(pid, target, Hook::Send, layout);
    for thd in 0..5000 {
        put(&mut record, 16, 8, thd << 4);
        read(&mut tap, &mut nested, &record, &mut |_| {});
    }
    let mut handed_out = 0;
    tap.settle(pid, &[], u64::MAX, &mut |_| handed_out += 1);
    let forgotten = tap.losses(pid).get(Loss::SessionsFull);
    assert_eq!(handed_out + forgotten, 5000, "each is handed out or counted as lost");
    assert!(handed_out > 0 && handed_out * record.len() as u64 <= 20 << 20, "{handed_out}");
}

/// The same where all its sessions end at once, each with a text.
#[test]
fn what_runs_at_the_end_of_a_server_is_bounded() {
    let (layout, pid) = (&layouts()[0], std::process::id());
    let plan = Plan::new(layout, CurrentThdAt::ThreadLocal { offset: 0 }, TEXT_LIMIT).unwrap();
    let target = Target { program: PROGRAM, plan: plan.clone(), meaning: Meaning::of(layout) };
    let mut death = death::Probe::reading(pid, &target);
    let tap = tap::Probe::reading(pid, target, Hook::Send, layout);
    let mut record = vec![0; HEAD + plan.config.data_length as usize + DYING + MANY_TEXT];
    put(&mut record, 4, 4, RECORD_DYING.into());
    put(&mut record, 12, 4, pid.into());
    put(&mut record, 60, 4, MANY_TEXT as u64);
    put(&mut record, 68, 4, PROGRAM.into());
    let query = u64::from(Command::QUERY.0);
    for (field, number) in [
        (Field::QueryText, 1),
        (Field::QueryLength, MANY_TEXT as u64),
        (Field::ConnectionId, 8),
        (Field::Command, query),
    ] {
        let at = HEAD + plan.at(field).unwrap() as usize;
        put(&mut record, at, field.width() as usize, number);
    }
    for thd in 1..=MANY {
        put(&mut record, 16, 8, thd << 4);
        reached(&mut death, &tap, &record);
    }
    let lost = death.losses(pid);
    let kept = MANY - lost.get(Loss::UnreadableSession);
    let texts = kept - lost.get(Loss::UnreadableText);
    assert_eq!((kept, texts), (32 * 1024, (8 << 20) / MANY_TEXT as u64));
    assert!(death.take(pid, 0, |_| false).ran.is_none(), "some are lost");
}
