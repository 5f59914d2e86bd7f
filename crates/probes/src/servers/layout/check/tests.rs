use std::collections::BTreeMap;

use waggle_model::{BuildKey, Flavour};

use super::*;
use crate::servers::layout::{CurrentThd, DiagnosticsCodes, Place};

const SESSION: u64 = 0x7f00_0000_0000;
const AREA: u64 = 0x7f00_0001_0000;
const CONTEXT: u64 = 0x7f00_0002_0000;
const TEXT: u64 = 0x7f00_0003_0000;
const CHARSET: u64 = 0x7f00_0004_0000;
const NOW: Now = Now { wall_us: 1_790_000_000_000_000, monotonic_us: 90_000_000_000 };

fn offset_of(field: Field) -> u32 {
    let number = Field::ALL.iter().position(|other| *other == field).unwrap() as u32;
    number * 0x40
}

fn layout() -> Layout {
    let place = |field| Place { offset: offset_of(field), how: "decoded it".to_owned() };
    Layout {
        build: BuildKey("a".to_owned()),
        flavour: Flavour::Mysql,
        version: "8.0.12".to_owned(),
        current_thd: Reading::Value(CurrentThd::ThreadLocal { offset: -8 }),
        fields: Field::ALL.into_iter().map(|f| (f, Reading::Value(place(f)))).collect(),
        clock: Clock::Wall,
        lock_time: Reading::Value(LockTime::Until),
        context_strings: ContextStrings::PointerAndLength,
        diagnostics: DiagnosticsCodes::of(Flavour::Mysql),
    }
}

/// A session of a connection that runs a statement.
#[derive(Clone)]
struct Memory(BTreeMap<u64, u64>);

impl Memory {
    fn busy() -> Self {
        let mut memory =
            Self(BTreeMap::from([(TEXT, 0x20), (AREA, 1), (CONTEXT, 1), (CHARSET, 45)]));
        for field in Field::ALL {
            memory.set(field, 0);
        }
        memory.set(Field::Diagnostics, AREA);
        memory.set(Field::SecurityContext, CONTEXT);
        memory.set(Field::ConnectionId, 17);
        memory.set(Field::Command, 3);
        memory.set(Field::QueryText, TEXT);
        memory.set(Field::QueryLength, 120);
        memory.set(Field::State, TEXT);
        memory.set(Field::SqlMode, 0x60_0000);
        memory.set(Field::Charset, CHARSET);
        memory.set(Field::StartTime, NOW.wall_us - 5_000_000);
        memory.set(Field::LockTime, NOW.wall_us - 4_999_000);
        memory.set(Field::RowsExamined, 1_000_000);
        memory.set(Field::ServerStatus, 2);
        memory.set(Field::User, TEXT);
        for string in [Field::User, Field::Host, Field::Address] {
            memory.0.insert(CONTEXT + u64::from(offset_of(string)) + 8, 4);
        }
        memory
    }

    fn address(field: Field) -> u64 {
        let base = match field.base() {
            Base::Session => SESSION,
            Base::Diagnostics => AREA,
            Base::SecurityContext => CONTEXT,
        };
        base + u64::from(offset_of(field))
    }

    fn set(&mut self, field: Field, value: u64) {
        self.0.insert(Self::address(field), value);
    }

    fn check(&self) -> Layout {
        layout().validate(SESSION, NOW, |address, into| {
            let Some(value) = self.0.get(&address) else { return false };
            into.copy_from_slice(&value.to_le_bytes()[..into.len()]);
            true
        })
    }

    fn why(&self, field: Field) -> String {
        self.check().fields[&field].why().unwrap_or("present").to_owned()
    }
}

fn absent(layout: &Layout) -> Vec<Field> {
    let is_absent = |field: &Field| layout.offset(*field).is_none();
    Field::ALL.into_iter().filter(is_absent).collect()
}

#[test]
fn a_busy_session_confirms_every_field() {
    let checked = Memory::busy().check();
    assert_eq!(absent(&checked), []);
    assert_eq!(checked.clock, Clock::Wall);
}

#[test]
fn an_idle_session_without_database_confirms_every_field() {
    let mut memory = Memory::busy();
    for field in [Field::QueryText, Field::QueryLength, Field::Command, Field::State] {
        memory.set(field, 0);
    }
    assert_eq!(absent(&memory.check()), []);
    // What stands in the length without a text means nothing.
    memory.set(Field::QueryLength, u64::MAX);
    assert_eq!(absent(&memory.check()), []);
}

#[test]
fn the_clock_is_the_one_in_which_the_start_has_passed() {
    let mut memory = Memory::busy();
    memory.set(Field::StartTime, NOW.monotonic_us - 5_000_000);
    memory.set(Field::LockTime, NOW.monotonic_us - 4_999_000);
    let checked = memory.check();
    assert_eq!((checked.clock, absent(&checked)), (Clock::Monotonic, vec![]));
    for nonsense in [0, TEXT, u64::MAX, NOW.wall_us * 2] {
        memory.set(Field::StartTime, nonsense);
        assert!(memory.why(Field::StartTime).contains("neither clock"), "{nonsense}");
    }
}

#[test]
fn a_wrong_offset_makes_only_its_own_field_absent() {
    for (field, nonsense) in [
        (Field::ConnectionId, 0),
        (Field::QueryText, 0x1234_5678_9abc_def0),
        (Field::QueryLength, TEXT),
        (Field::Command, 0x7f00_0000),
        (Field::ServerStatus, 0x7f00_0000),
        (Field::LockTime, TEXT),
        (Field::RowsSent, u64::MAX),
        (Field::State, 7),
        (Field::SqlMode, TEXT),
        (Field::Charset, CONTEXT + 3),
        (Field::IsSent, 9),
        (Field::DiagnosticsStatus, 77),
        (Field::ErrorNumber, 0x7f00_0000),
        (Field::Host, 3),
    ] {
        let mut memory = Memory::busy();
        memory.set(field, nonsense);
        assert_eq!(absent(&memory.check()), [field], "{}", field.name());
        let why = memory.why(field);
        assert!(why.starts_with("decoded it gives offset 0x"), "{why}");
    }
}

#[test]
fn what_lies_behind_a_lost_pointer_is_absent_with_that_reason() {
    let mut memory = Memory::busy();
    memory.set(Field::Diagnostics, 5);
    let lost = absent(&memory.check());
    assert!(lost.contains(&Field::Diagnostics) && lost.contains(&Field::RowsAffected), "{lost:?}");
    assert!(!lost.contains(&Field::User), "{lost:?}");
    assert!(memory.why(Field::RowsAffected).contains("diagnostics is 0x5"));
}

#[test]
fn a_session_of_which_many_fields_make_no_sense_is_none() {
    let mut memory = Memory::busy();
    memory.set(Field::StartTime, TEXT);
    memory.set(Field::LockTime, NOW.wall_us - 4_999_000);
    assert_eq!(absent(&memory.check()), [Field::StartTime, Field::LockTime]);
    memory.set(Field::Command, TEXT);
    let checked = memory.check();
    assert_eq!(absent(&checked).len(), Field::ALL.len());
    assert!(!checked.shows_ends());
}

#[test]
fn an_unreadable_session_leaves_no_field() {
    let checked = layout().validate(SESSION, NOW, |_, _| false);
    assert_eq!(absent(&checked).len(), Field::ALL.len());
}
