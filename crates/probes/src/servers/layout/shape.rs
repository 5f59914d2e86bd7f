//! The code patterns that reveal a field.
//!
//! Each takes the trace of an exported function and finds the field's offset in it. A pattern that
//! finds two different offsets has found nothing.

use std::collections::BTreeSet;

use crate::servers::arch::{ARGUMENTS, Term, Trace, offset};

/// Offsets at which a function shows a field.
pub(in crate::servers) type Offsets = BTreeSet<u32>;

const SELF: Term = Term::Argument(0);

/// Whether a term is a pointer that the object at the first argument holds.
fn is_pointer_of(term: &Term, object: &Term) -> bool {
    term.field_of(object, 8).is_some()
}

/// `return this->field;`
pub(in crate::servers) fn returned<const WIDTH: u8>(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(first, _)| first.field_of(&SELF, WIDTH)).collect()
}

/// A number whose lower half is enough: `return this->field;` with 4 or 8 bytes.
pub(in crate::servers) fn returned_number(trace: &Trace) -> Offsets {
    &returned::<4>(trace) | &returned::<8>(trace)
}

/// `return {…, this->field};`
pub(in crate::servers) fn returned_second(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(_, second)| second.field_of(&SELF, 8)).collect()
}

/// `return &this->string;`, a structure whose first word is the pointer to the text.
pub(in crate::servers) fn returned_address(trace: &Trace) -> Offsets {
    trace
        .returns()
        .filter_map(|(first, _)| match first {
            Term::Plus(base, distance) if **base == SELF => offset(*distance),
            _ => None,
        })
        .collect()
}

/// The same; the second word is the length.
pub(in crate::servers) fn returned_address_length(trace: &Trace) -> Offsets {
    returned_address(trace).into_iter().map(|offset| offset + 8).collect()
}

/// `return this->area->field;`: the offset of `area`.
pub(in crate::servers) fn returned_through(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(first, _)| first.load()?.0.field_of(&SELF, 8)).collect()
}

/// The same: the offset of `field`.
pub(in crate::servers) fn returned_inner<const WIDTH: u8>(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(first, _)| inner::<WIDTH>(first)).collect()
}

fn inner<const WIDTH: u8>(term: &Term) -> Option<u32> {
    let (area, ..) = term.load()?;
    is_pointer_of(area, &SELF).then(|| term.field_of(area, WIDTH))?
}

/// `this->field = argument;`
pub(in crate::servers) fn argument_stored<const ARGUMENT: u8, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    stored::<WIDTH>(trace, |value| *value == Term::Argument(ARGUMENT))
}

/// `this->field = number;`
pub(in crate::servers) fn number_stored<const NUMBER: u64, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    stored::<WIDTH>(trace, |value| value.constant() == Some(NUMBER))
}

/// `if (this->field != 0) { … this->field = 0; }`: the first one that is looked at.
pub(in crate::servers) fn cleared_where_set(trace: &Trace) -> Offsets {
    let zero = |(field, with): (&Term, &Term)| {
        (with.constant() == Some(0)).then(|| field.field_of(&SELF, 4))?
    };
    let cleared = number_stored::<0, 4>(trace);
    let first = trace.comparisons().find_map(zero);
    first.filter(|field| cleared.contains(field)).into_iter().collect()
}

/// Smaller numbers are no address: a text of the file lies behind its headers.
const ADDRESS_MIN: u64 = 0x10000;

/// `this->field = "text";`
pub(in crate::servers) fn text_stored(trace: &Trace) -> Offsets {
    stored::<8>(trace, |value| value.constant().is_some_and(|address| address >= ADDRESS_MIN))
}

/// The first byte that is set to 0, if the next one is too: every family has `m_is_sent` before its
/// other flags, right before `m_can_overwrite_status`.
pub(in crate::servers) fn flags_cleared(trace: &Trace) -> Offsets {
    let mut bytes = number_stored::<0, 1>(trace);
    bytes.extend(number_stored::<0, 2>(trace).iter().flat_map(|first| [*first, first + 1]));
    bytes.first().filter(|first| bytes.contains(&(*first + 1))).copied().into_iter().collect()
}

/// The first of two neighbours of 8 bytes that are set to 0: every family has `m_affected_rows` right
/// before `m_last_insert_id`.
pub(in crate::servers) fn words_cleared(trace: &Trace) -> Offsets {
    let words = number_stored::<0, 8>(trace);
    words.iter().filter(|first| words.contains(&(*first + 8))).copied().collect()
}

fn stored<const WIDTH: u8>(trace: &Trace, is_it: impl Fn(&Term) -> bool) -> Offsets {
    trace
        .stores()
        .filter(|(to, _, width, value)| **to == SELF && *width == WIDTH && is_it(value))
        .filter_map(|(_, distance, ..)| offset(distance))
        .collect()
}

/// `this->field += argument;`
pub(in crate::servers) fn argument_added(trace: &Trace) -> Offsets {
    let argument = Term::Argument(1);
    trace
        .stores()
        .filter_map(|(to, distance, width, value)| {
            let Term::Sum(left, right) = value else { return None };
            let old = if **left == argument { right } else { left };
            let added = **left == argument || **right == argument;
            let offset = offset(distance)?;
            (added && *to == SELF && old.field_of(&SELF, width) == Some(offset)).then_some(offset)
        })
        .collect()
}

/// `*argument = this->field;`, or a member at `at` of what the argument points to.
pub(in crate::servers) fn copied_to<const ARGUMENT: u8, const AT: i64>(trace: &Trace) -> Offsets {
    trace
        .stores()
        .filter(|(to, distance, ..)| **to == Term::Argument(ARGUMENT) && *distance == AT)
        .filter_map(|(_, _, width, value)| (width == 8).then(|| value.field_of(&SELF, 8))?)
        .collect()
}

/// `if (this->area->field == number)`: the offset of `area`.
pub(in crate::servers) fn compared_through(trace: &Trace) -> Offsets {
    compared_inner_terms(trace).filter_map(|(left, _)| left.load()?.0.field_of(&SELF, 8)).collect()
}

/// The same: the offset of `field`, 4 bytes wide.
pub(in crate::servers) fn compared_inner(trace: &Trace) -> Offsets {
    compared_inner_terms(trace).filter_map(|(left, _)| inner::<4>(left)).collect()
}

/// The same with a flag of one byte.
pub(in crate::servers) fn flag_inner(trace: &Trace) -> Offsets {
    compared_inner_terms(trace).filter_map(|(left, _)| inner::<1>(left)).collect()
}

fn compared_inner_terms(trace: &Trace) -> impl Iterator<Item = (&Term, &Term)> {
    trace.comparisons().filter(|(left, right)| {
        right.constant().is_some() && (inner::<4>(left).is_some() || inner::<1>(left).is_some())
    })
}

/// `MODE_STRICT_TRANS_TABLES | MODE_STRICT_ALL_TABLES`, the same bits in every family
/// (`sql/system_variables.h`, MariaDB's `sql/sql_class.h`).
const STRICT_MODES: u64 = 0x60_0000;

/// `return (this->field & strict modes) != 0;`, where the compiler may look at a part of the field.
pub(in crate::servers) fn strict_modes(trace: &Trace) -> Offsets {
    modes_tested(trace, STRICT_MODES)
}

/// `MODE_ANSI_QUOTES`, the same bit in every family.
const ANSI_QUOTES: u64 = 4;

/// `if (this->field & ANSI quotes)`. What is tested inside a word is another field.
pub(in crate::servers) fn ansi_quotes(trace: &Trace) -> Offsets {
    modes_tested(trace, ANSI_QUOTES).into_iter().filter(|offset| offset % 8 == 0).collect()
}

fn modes_tested(trace: &Trace, modes: u64) -> Offsets {
    let whole = |(left, right): (&Term, &Term)| {
        let (from, distance, width) = left.load()?;
        let skipped = (0..8_u32).find(|skipped| {
            let part = modes >> (8 * skipped);
            right.constant() == Some(part) && part << (8 * skipped) == modes
        })?;
        (*from == SELF && skipped + u32::from(width) <= 8)
            .then(|| offset(distance.checked_sub(i64::from(skipped))?))?
    };
    trace.tests().filter_map(whole).collect()
}

/// `if (this->field == number)` with a number other than 0.
pub(in crate::servers) fn compared(trace: &Trace) -> Offsets {
    trace
        .comparisons()
        .filter(|(_, right)| right.constant().is_some_and(|number| number != 0))
        .filter_map(|(left, _)| left.field_of(&SELF, 4))
        .collect()
}

/// `call(…, this->field, …)` at the given place.
pub(in crate::servers) fn passed<const PLACE: usize, const WIDTH: u8>(trace: &Trace) -> Offsets {
    trace.calls().filter_map(|arguments| arguments[PLACE].field_of(&SELF, WIDTH)).collect()
}

/// `call(…, this->area->field, …)` at the given place.
pub(in crate::servers) fn passed_inner<const PLACE: usize, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    trace.calls().filter_map(|arguments| inner::<WIDTH>(&arguments[PLACE])).collect()
}

/// The same: the offset of `area`.
pub(in crate::servers) fn passed_through<const PLACE: usize, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    let area = |term: &Term| {
        let (area, _, width) = term.load()?;
        (width == WIDTH).then(|| area.field_of(&SELF, 8))?
    };
    trace.calls().filter_map(|arguments| area(&arguments[PLACE])).collect()
}

/// `send_ok(status, area->warnings, area->affected, area->insert_id, …)` of a protocol: the rows
/// affected.
pub(in crate::servers) fn replied_rows(trace: &Trace) -> Offsets {
    let rows = |arguments: &[Term; ARGUMENTS]| {
        let (area, ..) = arguments[3].load()?;
        arguments[2].field_of(area, 4)?;
        arguments[4].field_of(area, 8)?;
        is_pointer_of(area, &SELF).then(|| arguments[3].field_of(area, 8))?
    };
    trace.calls().filter_map(rows).collect()
}

/// MariaDB's `Protocol::end_statement`: `this->thd` is the session, and the status flags go to the
/// network as second or third argument.
pub(in crate::servers) fn protocol_status(trace: &Trace) -> Offsets {
    trace.calls().flat_map(|arguments| &arguments[1..3]).filter_map(inner::<4>).collect()
}

/// The same function: the session's diagnostics area, whose flag it tests.
pub(in crate::servers) fn protocol_area(trace: &Trace) -> Offsets {
    protocol_flags(trace).filter_map(|(area, _)| inner::<8>(area)).collect()
}

/// The flag.
pub(in crate::servers) fn protocol_flag(trace: &Trace) -> Offsets {
    protocol_flags(trace).map(|(_, flag)| flag).collect()
}

fn protocol_flags(trace: &Trace) -> impl Iterator<Item = (&Term, u32)> {
    trace.comparisons().filter_map(|(left, _)| {
        let (area, distance, width) = left.load()?;
        (width == 1 && inner::<8>(area).is_some()).then_some((area, offset(distance)?))
    })
}

/// `LEX::copy_db_to`: `thd->strmake(thd->db.str, thd->db.length)` with `this->thd`.
pub(in crate::servers) fn duplicated_text(trace: &Trace) -> Offsets {
    duplicated(trace).map(|(text, _)| text).collect()
}

/// The length that goes with it.
pub(in crate::servers) fn duplicated_length(trace: &Trace) -> Offsets {
    duplicated(trace).map(|(_, length)| length).collect()
}

fn duplicated(trace: &Trace) -> impl Iterator<Item = (u32, u32)> {
    trace.calls().filter_map(|arguments| {
        let (session, ..) = arguments[1].load()?;
        let text = arguments[1].field_of(session, 8)?;
        let length = arguments[2].field_of(session, 8)?;
        is_pointer_of(session, &SELF).then_some((text, length))
    })
}

/// `copy(argument, this->text, …)`: the text.
pub(in crate::servers) fn copied_text(trace: &Trace) -> Offsets {
    trace
        .calls()
        .filter(|arguments| arguments[0] == Term::Argument(1))
        .filter_map(|arguments| arguments[1].field_of(&SELF, 8))
        .collect()
}

/// The same: its length stands behind it.
pub(in crate::servers) fn copied_text_length(trace: &Trace) -> Offsets {
    copied_text(trace).into_iter().map(|offset| offset + 8).collect()
}

/// `copy(this->text, argument->text, …)`, where a new name takes the place of an old one: the old one.
pub(in crate::servers) fn overwritten_text(trace: &Trace) -> Offsets {
    trace
        .calls()
        .filter(|arguments| arguments[1].field_of(&Term::Argument(1), 8) == Some(0))
        .filter_map(|arguments| arguments[0].field_of(&SELF, 8))
        .collect()
}

/// The same: its length stands behind it.
pub(in crate::servers) fn overwritten_text_length(trace: &Trace) -> Offsets {
    overwritten_text(trace).into_iter().map(|offset| offset + 8).collect()
}

/// `if (session->text && session->length == argument)`, with the session as third argument: the text.
pub(in crate::servers) fn compared_text(trace: &Trace) -> Offsets {
    let compared_with = |other: &Term| -> Offsets {
        let sides = trace.comparisons().filter_map(|(left, right)| match (left, right) {
            (field, value) | (value, field) if value == other => Some(field),
            _ => None,
        });
        sides.filter_map(|field| field.field_of(&Term::Argument(2), 8)).collect()
    };
    let lengths = compared_with(&Term::Argument(1));
    let texts = compared_with(&Term::Constant(0));
    texts.into_iter().filter(|text| lengths.contains(&(text + 8))).collect()
}

/// The same: its length stands behind it.
pub(in crate::servers) fn compared_text_length(trace: &Trace) -> Offsets {
    compared_text(trace).into_iter().map(|offset| offset + 8).collect()
}

/// `needs_conversion(0, this->field, this->other, …)` for two others or more, or what a compiler
/// makes of it: a comparison of both. The field is the one in every pair.
pub(in crate::servers) fn converted(trace: &Trace) -> Offsets {
    let passed = trace.calls().filter(|arguments| arguments[0].constant() == Some(0));
    let passed = passed.map(|arguments| (&arguments[1], &arguments[2]));
    let field = |term: &Term| term.field_of(&SELF, 8);
    let pairs: BTreeSet<[u32; 2]> = passed
        .chain(trace.comparisons())
        .filter_map(|(one, other)| Some([field(one)?, field(other)?]))
        .filter(|[one, other]| one != other)
        .collect();
    let in_every_pair = |field: &u32| pairs.iter().all(|pair| pair.contains(field));
    pairs.iter().flatten().copied().filter(in_every_pair).collect()
}

/// `this->field |= number;`, where the function writes nothing else of the object.
pub(in crate::servers) fn flag_set(trace: &Trace) -> Offsets {
    stored::<4>(trace, |value| matches!(value, Term::Opaque(_)))
}

/// `if (argument->field == number)`.
pub(in crate::servers) fn argument_compared<const ARGUMENT: u8, const NUMBER: u64>(
    trace: &Trace,
) -> Offsets {
    trace
        .comparisons()
        .filter(|(_, right)| right.constant() == Some(NUMBER))
        .filter_map(|(left, _)| left.field_of(&Term::Argument(ARGUMENT), 4))
        .collect()
}

/// `if (argument->field == this->…)`.
pub(in crate::servers) fn argument_compared_with_own<const ARGUMENT: u8>(trace: &Trace) -> Offsets {
    let is_own = |term: &Term| term.load().is_some_and(|(from, ..)| *from == SELF);
    let of = |term: &Term| term.field_of(&Term::Argument(ARGUMENT), 4);
    trace
        .comparisons()
        .filter_map(|(left, right)| match (of(left), of(right)) {
            (Some(field), None) if is_own(right) => Some(field),
            (None, Some(field)) if is_own(left) => Some(field),
            _ => None,
        })
        .collect()
}

/// What prints `thread id, OS thread handle, query id` of a session to a buffer.
pub(in crate::servers) fn printed_id(trace: &Trace) -> Offsets {
    trace
        .calls()
        .filter(|arguments| arguments[4].load().is_some_and(|(from, ..)| *from == SELF))
        .filter(|arguments| arguments[5].field_of(&SELF, 8).is_some())
        .filter_map(|arguments| {
            arguments[3].field_of(&SELF, 4).or_else(|| arguments[3].field_of(&SELF, 8))
        })
        .collect()
}
