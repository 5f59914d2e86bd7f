//! The shapes of code that give a field away.
//!
//! Each takes the trace of an exported function and says at which offset the function shows the
//! field. A shape that fits twice with different offsets has not found it.

use std::collections::BTreeSet;

use crate::target::arch::{Term, Trace};

/// Offsets at which a function shows a field.
pub(in crate::target) type Offsets = BTreeSet<u32>;

const SELF: Term = Term::Argument(0);

/// Whether a term is a pointer that the object at the first argument holds.
fn is_pointer_of(term: &Term, object: &Term) -> bool {
    term.field_of(object, 8).is_some()
}

fn offset(distance: i64) -> Option<u32> {
    u32::try_from(distance).ok()
}

/// `return this->field;`
pub(in crate::target) fn returned<const WIDTH: u8>(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(first, _)| first.field_of(&SELF, WIDTH)).collect()
}

/// A number of which the lower half is enough: `return this->field;` with 4 or 8 bytes.
pub(in crate::target) fn returned_number(trace: &Trace) -> Offsets {
    &returned::<4>(trace) | &returned::<8>(trace)
}

/// `return {…, this->field};`
pub(in crate::target) fn returned_second(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(_, second)| second.field_of(&SELF, 8)).collect()
}

/// `return &this->string;`, a structure whose first word is the pointer to the text.
pub(in crate::target) fn returned_address(trace: &Trace) -> Offsets {
    trace
        .returns()
        .filter_map(|(first, _)| match first {
            Term::Plus(base, distance) if **base == SELF => offset(*distance),
            _ => None,
        })
        .collect()
}

/// The same; the second word is the length.
pub(in crate::target) fn returned_address_length(trace: &Trace) -> Offsets {
    returned_address(trace).into_iter().map(|offset| offset + 8).collect()
}

/// `return this->area->field;`: the offset of `area`.
pub(in crate::target) fn returned_through(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(first, _)| first.load()?.0.field_of(&SELF, 8)).collect()
}

/// The same: the offset of `field`.
pub(in crate::target) fn returned_inner<const WIDTH: u8>(trace: &Trace) -> Offsets {
    trace.returns().filter_map(|(first, _)| inner::<WIDTH>(first)).collect()
}

fn inner<const WIDTH: u8>(term: &Term) -> Option<u32> {
    let (area, ..) = term.load()?;
    is_pointer_of(area, &SELF).then(|| term.field_of(area, WIDTH))?
}

/// `this->field = argument;`
pub(in crate::target) fn argument_stored<const ARGUMENT: u8, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    trace
        .stores()
        .filter(|(to, _, width, value)| {
            **to == SELF && *width == WIDTH && **value == Term::Argument(ARGUMENT)
        })
        .filter_map(|(_, distance, ..)| offset(distance))
        .collect()
}

/// `this->field = number;`
pub(in crate::target) fn number_stored<const NUMBER: u64, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    trace
        .stores()
        .filter(|(to, _, width, value)| {
            **to == SELF && *width == WIDTH && value.constant() == Some(NUMBER)
        })
        .filter_map(|(_, distance, ..)| offset(distance))
        .collect()
}

/// `this->field += argument;`
pub(in crate::target) fn argument_added(trace: &Trace) -> Offsets {
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
pub(in crate::target) fn copied_to<const ARGUMENT: u8, const AT: i64>(trace: &Trace) -> Offsets {
    trace
        .stores()
        .filter(|(to, distance, ..)| **to == Term::Argument(ARGUMENT) && *distance == AT)
        .filter_map(|(_, _, width, value)| (width == 8).then(|| value.field_of(&SELF, 8))?)
        .collect()
}

/// `if (this->area->field == number)`: the offset of `area`.
pub(in crate::target) fn compared_through(trace: &Trace) -> Offsets {
    compared_inner_terms(trace).filter_map(|(left, _)| left.load()?.0.field_of(&SELF, 8)).collect()
}

/// The same: the offset of `field`, 4 bytes wide.
pub(in crate::target) fn compared_inner(trace: &Trace) -> Offsets {
    compared_inner_terms(trace).filter_map(|(left, _)| inner::<4>(left)).collect()
}

/// The same with a flag of one byte.
pub(in crate::target) fn flag_inner(trace: &Trace) -> Offsets {
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
pub(in crate::target) fn strict_modes(trace: &Trace) -> Offsets {
    let whole = |(left, right): (&Term, &Term)| {
        let (from, distance, width) = left.load()?;
        let skipped = (0..8_u32).find(|skipped| {
            let part = STRICT_MODES >> (8 * skipped);
            right.constant() == Some(part) && part << (8 * skipped) == STRICT_MODES
        })?;
        (*from == SELF && skipped + u32::from(width) <= 8)
            .then(|| offset(distance - i64::from(skipped)))?
    };
    trace.tests().filter_map(whole).collect()
}

/// `if (this->field == number)` with a number other than 0.
pub(in crate::target) fn compared(trace: &Trace) -> Offsets {
    trace
        .comparisons()
        .filter(|(_, right)| right.constant().is_some_and(|number| number != 0))
        .filter_map(|(left, _)| left.field_of(&SELF, 4))
        .collect()
}

/// `call(…, this->field, …)` at the given place.
pub(in crate::target) fn passed<const PLACE: usize, const WIDTH: u8>(trace: &Trace) -> Offsets {
    trace.calls().filter_map(|arguments| arguments[PLACE].field_of(&SELF, WIDTH)).collect()
}

/// `call(…, this->area->field, …)` at the given place.
pub(in crate::target) fn passed_inner<const PLACE: usize, const WIDTH: u8>(
    trace: &Trace,
) -> Offsets {
    trace.calls().filter_map(|arguments| inner::<WIDTH>(&arguments[PLACE])).collect()
}

/// MariaDB's `Protocol::end_statement`: `this->thd` is the session, and the status flags go to the
/// network as second or third argument.
pub(in crate::target) fn protocol_status(trace: &Trace) -> Offsets {
    trace.calls().flat_map(|arguments| &arguments[1..3]).filter_map(inner::<4>).collect()
}

/// The same function: the session's diagnostics area, whose flag it tests.
pub(in crate::target) fn protocol_area(trace: &Trace) -> Offsets {
    protocol_flags(trace).filter_map(|(area, _)| inner::<8>(area)).collect()
}

/// The flag.
pub(in crate::target) fn protocol_flag(trace: &Trace) -> Offsets {
    protocol_flags(trace).map(|(_, flag)| flag).collect()
}

fn protocol_flags(trace: &Trace) -> impl Iterator<Item = (&Term, u32)> {
    trace.comparisons().filter_map(|(left, _)| {
        let (area, distance, width) = left.load()?;
        (width == 1 && inner::<8>(area).is_some()).then_some((area, offset(distance)?))
    })
}

/// `LEX::copy_db_to`: `thd->strmake(thd->db.str, thd->db.length)` with `this->thd`.
pub(in crate::target) fn duplicated_text(trace: &Trace) -> Offsets {
    duplicated(trace).map(|(text, _)| text).collect()
}

/// The length that goes with it.
pub(in crate::target) fn duplicated_length(trace: &Trace) -> Offsets {
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

/// What prints `thread id, OS thread handle, query id` of a session to a buffer.
pub(in crate::target) fn printed_id(trace: &Trace) -> Offsets {
    trace
        .calls()
        .filter(|arguments| arguments[4].load().is_some_and(|(from, ..)| *from == SELF))
        .filter(|arguments| arguments[5].field_of(&SELF, 8).is_some())
        .filter_map(|arguments| {
            arguments[3].field_of(&SELF, 4).or_else(|| arguments[3].field_of(&SELF, 8))
        })
        .collect()
}
