//! Made memory: sessions, tickets and locks as no build has them, and what is not what it seems.

use std::collections::BTreeMap;

use super::*;

/// Bytes by the address at which they begin.
#[derive(Default)]
struct Made(BTreeMap<u64, Vec<u8>>);

/// What each look at it has taken.
const SPENT: Duration = Duration::from_secs(1);

impl Memory for Made {
    fn spent(&self) -> Duration {
        SPENT
    }

    fn read(&mut self, places: &[(u64, u32)]) -> Result<Vec<Option<Vec<u8>>>, MemoryError> {
        let at = |(address, length): &(u64, u32)| {
            let (start, bytes) = self.0.range(..=*address).next_back()?;
            let from = (address - start) as usize;
            bytes.get(from..from.checked_add(*length as usize)?).map(<[u8]>::to_vec)
        };
        Ok(places.iter().map(at).collect())
    }
}

impl Made {
    fn put(&mut self, address: u64, words: &[(usize, u64)]) {
        let (start, bytes) = self.0.range_mut(..=address).next_back().unwrap();
        let from = (address - start) as usize;
        for (at, word) in words {
            bytes[from + at..from + at + 8].copy_from_slice(&word.to_ne_bytes());
        }
    }

    fn make(&mut self, address: u64, length: usize, words: &[(usize, u64)]) {
        self.0.insert(address, vec![0; length]);
        self.put(address, words);
    }

    fn reads(&mut self) -> Reads<'_> {
        Reads::new(self, BYTES_MAX, 2 * SPENT)
    }
}

fn at(number: u64, is_idle: bool, waits_for_metadata: bool) -> At {
    At { thd: number << 20, connection_id: number, is_idle, waits_for_metadata }
}

const CONTEXT: u64 = 0x1b8;
const OWNER: usize = 0x230;
const WAITS: usize = 0x2a0;
const LOCK: u64 = 0x9000_0000;
const OTHER: u64 = 0x9100_0000;

fn ticket(made: &mut Made, address: u64, thd: u64, head: u64, lock: u64, mode: u64) {
    let words = [(0x20, head), (0x38, mode), (0x40, thd + CONTEXT), (0x48, lock)];
    made.make(address, 0x80, &words);
}

fn key(made: &mut Made, address: u64, schema: &str, name: &str) {
    let text = [&[3], schema.as_bytes(), &[0], name.as_bytes(), &[0]].concat();
    let lengths = [(text.len() as u16).to_ne_bytes(), (schema.len() as u16).to_ne_bytes()].concat();
    let mut bytes = vec![0xee; 0x400];
    bytes[..4].copy_from_slice(&lengths);
    bytes[8..8 + text.len()].copy_from_slice(&text);
    made.0.insert(address, bytes);
}

/// 1 is idle and holds a lock on a table, for which 2 waits.
fn tables() -> (Made, Vec<At>) {
    let mut made = Made::default();
    let sessions = vec![at(1, true, false), at(2, false, true)];
    for one in &sessions {
        made.make(one.thd, 0x4000, &[(OWNER, one.thd + 0xe8)]);
    }
    let (one, two) = (1 << 20, 2 << 20);
    key(&mut made, LOCK, "shop", "t");
    key(&mut made, OTHER, "shop", "u");
    made.put(one, &[(0x200, 0x8000_0000)]);
    ticket(&mut made, 0x8000_0000, one, one + 0x200, LOCK, 3);
    made.put(two, &[(WAITS, 0x8001_0000), (WAITS + 0x28, 0x8002_0000)]);
    ticket(&mut made, 0x8001_0000, two, 0, LOCK, 9);
    // Left over from a statement before.
    ticket(&mut made, 0x8002_0000, two, 0, OTHER, 9);
    (made, sessions)
}

fn seen(made: &mut Made, sessions: &[At]) -> Vec<(u64, u64, u32, bool)> {
    let reads = &mut made.reads();
    let shape = metadata::derive(reads, sessions).unwrap().unwrap();
    let mut tickets = metadata::read(reads, &shape, sessions).unwrap();
    tickets.name(reads, &shape, &[]).unwrap();
    let locks = tickets.locks(sessions);
    assert!(locks.iter().all(|one| one.schema == b"shop" && one.name == b"t"), "{locks:?}");
    locks.into_iter().map(|one| (one.connection_id, one.lock, one.mode, one.is_pending)).collect()
}

#[test]
fn tickets_of_a_layout_that_no_server_has_are_found_by_what_proves_itself() {
    let (mut made, sessions) = tables();
    assert_eq!(seen(&mut made, &sessions), [(1, LOCK, 3, false), (2, LOCK, 9, true)]);
}

#[test]
fn keys_without_names_leave_a_choice_and_say_the_same_in_each_way() {
    let (mut made, sessions) = tables();
    made.put(2 << 20, &[(WAITS + 0x28, 0)]);
    // Three bytes long: the kind, and two that end names.
    made.make(LOCK, 0x400, &[(0, 3)]);
    let reads = &mut made.reads();
    let shape = metadata::derive(reads, &sessions).unwrap().unwrap();
    assert!(!shape.is_certain);
    let mut tickets = metadata::read(reads, &shape, &sessions).unwrap();
    tickets.name(reads, &shape, &[]).unwrap();
    let locks = tickets.locks(&sessions);
    let ids: Vec<(u64, bool)> =
        locks.iter().map(|one| (one.connection_id, one.is_pending)).collect();
    assert_eq!(ids, [(1, false), (2, true)]);
    assert!(locks.iter().all(|one| one.schema.is_empty() && one.name.is_empty()));
}

#[test]
fn a_ticket_that_points_to_another_session_is_none() {
    let (mut made, sessions) = tables();
    let reads = &mut made.reads();
    let shape = metadata::derive(reads, &sessions).unwrap().unwrap();
    // It was freed and is another's now, after the shape was found.
    made.put(0x8000_0000, &[(0x40, (5 << 20) + CONTEXT)]);
    let reads = &mut made.reads();
    let mut tickets = metadata::read(reads, &shape, &sessions).unwrap();
    tickets.name(reads, &shape, &[]).unwrap();
    let holders: Vec<u64> = tickets
        .locks(&sessions)
        .iter()
        .filter(|one| !one.is_pending)
        .map(|one| one.connection_id)
        .collect();
    assert!(holders.is_empty(), "{holders:?}");
}

#[test]
fn who_has_got_the_lock_meanwhile_waits_for_nothing() {
    let (mut made, sessions) = tables();
    made.put(2 << 20, &[(WAITS, 0)]);
    let filled = (WAITS + 0x28, 0x8002_0000);
    made.put(1 << 20, &[filled]);
    let reads = &mut made.reads();
    let shape = metadata::derive(reads, &sessions).unwrap().unwrap();
    let tickets = metadata::read(reads, &shape, &sessions).unwrap();
    assert!(tickets.locks(&sessions).is_empty(), "what was left over is not waited for");
}

#[test]
fn a_circle_of_tickets_ends() {
    let (mut made, sessions) = tables();
    made.put(0x8000_0000, &[(0x18, 0x8000_0000)]);
    assert_eq!(seen(&mut made, &sessions).len(), 2);
}

const SLOT: usize = 0x2340;
const BACK: usize = 0x3e8;
const LIST: usize = 0x140;
const INDEX: u64 = 0xb000_0000;

/// A transaction with a lock of the table and one of a record; its session leads to it at once.
fn transaction(made: &mut Made, number: u64, bit: u8, mode: u64) {
    let (thd, trx, first) =
        (number << 20, 0xa000_0000 + number * 0x1_0000, 0xc000_0000 + number * 0x1_0000);
    made.make(thd, 0x4000, &[(SLOT, trx)]);
    made.make(trx, 0xa00, &[(BACK, thd), (LIST, first), (LIST + 8, first + 0x1000)]);
    // Of a table MySQL leaves in the place of the index what was in the memory before.
    let before = [0, u64::from_ne_bytes(*b"7166738-"), 0x5602_1b84_277d][number as usize % 3];
    let table =
        [(0, trx), (0x10, first + 0x1000), (0x18, before), (0x28, 0xd000_0000), (0x48, 0x11)];
    made.make(first, 0x80, &table);
    let record =
        [(0, trx), (8, first), (0x18, INDEX), (0x28, 3 << 32 | 7), (0x30, 72), (0x48, mode)];
    made.make(first + 0x1000, 0x90, &record);
    made.put(first + 0x1000, &[(0x50, 1 << bit)]);
}

const HELD: u64 = 0x423;
const WAITING: u64 = 0x523;

fn reader(sessions: &[At]) -> LockReader {
    let layout = Layout::of(Flavour::Mysql, waggle_model::BuildKey("made".into()), "8".into());
    let _ = sessions;
    LockReader {
        who: Who::of(&layout),
        flavour: Flavour::Mysql,
        tickets: None,
        transactions: None,
        has_named: false,
        searched: 0,
        doubted: 0,
        bytes: 0,
    }
}

fn rows(made: &mut Made, sessions: &[At]) -> Vec<SeenRowWait> {
    reader(sessions).rows(&mut made.reads(), sessions, None).unwrap()
}

#[test]
fn the_holder_of_a_record_is_who_has_the_same_bit_of_the_same_page() {
    let sessions = [at(1, true, false), at(2, false, false), at(3, true, false)];
    let mut made = Made::default();
    transaction(&mut made, 1, 4, HELD);
    transaction(&mut made, 2, 4, WAITING);
    transaction(&mut made, 3, 5, HELD);
    let waits = rows(&mut made, &sessions);
    let [wait] = &*waits else { panic!("{waits:?}") };
    assert_eq!((wait.connection_id, &*wait.blockers), (2, &[1][..]), "{wait:?}");
    assert_eq!(wait.record, Some((7, 3, 4)));
}

#[test]
fn without_a_holder_that_was_read_nobody_is_named() {
    let sessions = [at(1, true, false), at(2, false, false), at(3, true, false)];
    let mut made = Made::default();
    transaction(&mut made, 1, 6, HELD);
    transaction(&mut made, 2, 4, WAITING);
    transaction(&mut made, 3, 5, HELD);
    let [wait] = &*rows(&mut made, &sessions) else { panic!() };
    assert!(wait.blockers.is_empty() && wait.unknown.is_some(), "{wait:?}");
}

#[test]
fn of_a_list_that_breaks_off_nothing_is_concluded() {
    let sessions = [at(1, true, false), at(2, false, false), at(3, true, false)];
    let mut made = Made::default();
    transaction(&mut made, 1, 4, HELD);
    transaction(&mut made, 2, 4, WAITING);
    transaction(&mut made, 3, 5, HELD);
    let mut reader = reader(&sessions);
    assert_eq!(reader.rows(&mut made.reads(), &sessions, None).unwrap()[0].blockers, [1]);
    // The lock is another transaction's now.
    made.put(0xc001_1000, &[(0, 0xa009_0000)]);
    let [wait] = &*reader.rows(&mut made.reads(), &sessions, None).unwrap() else { panic!() };
    assert!(
        wait.blockers.is_empty()
            && wait.unknown.as_ref().unwrap().contains("could not all be read")
    );
}

#[test]
fn where_who_waits_leaves_a_doubt_an_idle_holder_takes_it_away() {
    let sessions: Vec<At> = [1, 2, 3, 4, 6]
        .map(|id| at(id, true, false))
        .into_iter()
        .chain([at(5, false, false)])
        .collect();
    let mut made = Made::default();
    (1..5).for_each(|number| made.make(number << 20, 0x4000, &[]));
    transaction(&mut made, 5, 4, WAITING);
    transaction(&mut made, 6, 4, HELD);
    // Two other words lead to both ends of its list, too.
    made.put(0xa005_0000, &[(0x240, 0xc005_0000), (0x248, 0xc005_1000)]);
    let [wait] = &*rows(&mut made, &sessions) else { panic!() };
    assert_eq!((wait.connection_id, &*wait.blockers), (5, &[6][..]), "{wait:?}");
    // As long as nobody takes it away, nobody is named.
    let alone = [at(5, false, false)];
    let doubt = reader(&alone).rows(&mut made.reads(), &alone, None);
    assert!(matches!(doubt, Err(LocksError::Ambiguous(_))), "{doubt:?}");
}

#[test]
fn locks_exclude_each_other_as_innodb_has_it() {
    let (s, x) = (2, 3);
    let wait = |asked, other| rows::has_to_wait(asked, other, false, false);
    assert!(wait(x | rows::NOT_GAP, s | rows::NOT_GAP) && !wait(s, s) && wait(s, x));
    assert!(!wait(x | rows::NOT_GAP, x | rows::GAP), "a lock of the gap keeps no record");
    assert!(wait(x | rows::GAP | rows::INSERT_INTENTION, x | rows::GAP), "but who inserts");
    assert!(!wait(x | rows::GAP, x), "a lock of a gap waits for nobody");
    assert!(!wait(x, x | rows::GAP | rows::INSERT_INTENTION));
    assert!(!rows::has_to_wait(x, x, false, true), "the supremum is a gap");
    let (ix, auto) = (1, 4);
    let table = |asked, other| rows::has_to_wait(asked, other, true, false);
    assert!(table(auto, auto) && !table(ix, ix) && table(ix, s) && !table(auto, ix));
}

#[test]
fn a_look_reads_no_more_than_it_may() {
    let mut made = Made::default();
    made.make(1 << 20, 64, &[]);
    let mut reads = Reads::new(&mut made, 20, 2 * SPENT);
    assert!(reads.words(&[1 << 20, (1 << 20) + 8]).is_ok());
    assert!(matches!(reads.words(&[1 << 20]), Err(LocksError::TooMuch)));
    let mut reads = Reads::new(&mut made, 1 << 20, SPENT / 2);
    assert!(matches!(reads.words(&[1 << 20]), Err(LocksError::TooMuch)));
}
