//! Everything that depends on the processor: reading an accessor's machine code, and the place of
//! thread-local variables.
//!
//! Each architecture has one file. It turns a function into a [`Trace`]: what the function stores,
//! compares, subtracts, passes on and returns, as [`Term`]s over its arguments. The rest of waggle
//! sees only traces, so one description of an accessor serves all compilers and processors.

mod x86_64;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::elf::{Elf, Machine, Symbol, Tls};

/// A value inside a function, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// The n-th argument of the function, from 0; for a member function 0 is the object.
    Argument(u8),
    /// A number, or an address inside the file.
    Constant(u64),
    /// The thread pointer: what thread-local variables are addressed from.
    ThreadPointer,
    /// The stack pointer at the entry of the function.
    Frame,
    /// An address: a term plus a distance in bytes.
    Plus(Rc<Term>, i64),
    /// What memory holds at a distance from a term.
    Load {
        /// What the address counts from.
        from: Rc<Term>,
        /// Bytes from there.
        offset: i64,
        /// Bytes read.
        width: u8,
    },
    /// The sum of two terms, neither of them constant.
    Sum(Rc<Term>, Rc<Term>),
    /// Not known, but one and the same value: the number is the place where it arose.
    Opaque(u64),
}

/// No object of a server is as large: those of the servers have 30 KiB at most. A program that shows a field behind it
/// is none, and what is added to an offset must not overflow.
pub(super) const OFFSET_MAX: u32 = 1 << 20;

/// The distance of a field from the start of its object; `None` where no object has one.
pub(super) fn offset(distance: i64) -> Option<u32> {
    u32::try_from(distance).ok().filter(|offset| *offset <= OFFSET_MAX)
}

/// Terms that nest deeper than this are not those of an accessor.
const DEPTH_MAX: u8 = 6;

impl Term {
    /// The number, where it is one.
    pub fn constant(&self) -> Option<u64> {
        match self {
            Term::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// What is read, from where, at which distance, if this is a value of memory.
    pub fn load(&self) -> Option<(&Term, i64, u8)> {
        match self {
            Term::Load { from, offset, width } => Some((from, *offset, *width)),
            _ => None,
        }
    }

    /// The distance, if this is a value of `width` bytes in the object that `base` points to.
    pub fn field_of(&self, base: &Term, width: u8) -> Option<u32> {
        let (from, distance, read) = self.load()?;
        (from == base && read == width).then(|| offset(distance))?
    }

    /// The term plus a distance.
    pub fn plus(self, distance: i64) -> Term {
        match self {
            Term::Constant(value) => Term::Constant(value.wrapping_add_signed(distance)),
            Term::Plus(base, offset) => match offset.wrapping_add(distance) {
                0 => Rc::unwrap_or_clone(base),
                sum => Term::Plus(base, sum),
            },
            base if distance == 0 => base,
            base => Term::Plus(Rc::new(base), distance),
        }
    }

    /// The term as base and distance.
    pub fn split(self) -> (Term, i64) {
        match self {
            Term::Plus(base, offset) => (Rc::unwrap_or_clone(base), offset),
            base => (base, 0),
        }
    }

    fn depth(&self) -> u8 {
        match self {
            Term::Plus(base, _) | Term::Load { from: base, .. } => base.depth() + 1,
            Term::Sum(left, right) => left.depth().max(right.depth()) + 1,
            _ => 0,
        }
    }

    /// The term itself, or an opaque one where it nests too deep.
    fn bounded(self, place: u64) -> Term {
        if self.depth() > DEPTH_MAX { Term::Opaque(place) } else { self }
    }
}

/// Things that a function does; the longest that is decoded does 400. More are not kept, and each is compared with all.
const EVENTS_MAX: usize = 4000;

/// How many arguments of a call are looked at: the registers, then words of the stack.
pub const ARGUMENTS: usize = 9;

/// Something that a function does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A value is written to memory.
    Store {
        /// What the address counts from.
        to: Term,
        /// Bytes from there.
        offset: i64,
        /// Bytes written.
        width: u8,
        /// What is written.
        value: Term,
    },
    /// Two values are compared.
    Compare(Term, Term),
    /// The bits that two values have in common are taken, or compared with none.
    Test(Term, Term),
    /// The second value is subtracted from the first.
    Subtract(Term, Term),
    /// A function is called, or jumped to at the end, with these arguments.
    Call(Box<[Term; ARGUMENTS]>),
    /// An object on the stack goes to a call by its address: what it holds of other memory, by the
    /// distance from its start.
    Lend(BTreeMap<i64, Term>),
    /// The function returns: the first and the second word of the result.
    Return(Term, Term),
}

/// What a function does on the paths that were followed.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In the order in which it was met, without repetition.
    pub events: Vec<Event>,
}

impl Trace {
    fn add(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX && !self.events.contains(&event) {
            self.events.push(event);
        }
    }

    /// The arguments of every call.
    pub fn calls(&self) -> impl Iterator<Item = &[Term; ARGUMENTS]> {
        self.events.iter().filter_map(|event| match event {
            Event::Call(arguments) => Some(arguments.as_ref()),
            _ => None,
        })
    }

    /// What the objects on the stack hold that went to calls, each by distance.
    pub fn lent(&self) -> impl Iterator<Item = &BTreeMap<i64, Term>> {
        self.events.iter().filter_map(|event| match event {
            Event::Lend(object) => Some(object),
            _ => None,
        })
    }

    /// The words of every return.
    pub fn returns(&self) -> impl Iterator<Item = (&Term, &Term)> {
        self.events.iter().filter_map(|event| match event {
            Event::Return(first, second) => Some((first, second)),
            _ => None,
        })
    }

    /// Every write to memory: base, distance, width, value.
    pub fn stores(&self) -> impl Iterator<Item = (&Term, i64, u8, &Term)> {
        self.events.iter().filter_map(|event| match event {
            Event::Store { to, offset, width, value } => Some((to, *offset, *width, value)),
            _ => None,
        })
    }

    /// Both sides of every comparison.
    pub fn comparisons(&self) -> impl Iterator<Item = (&Term, &Term)> {
        self.events.iter().filter_map(|event| match event {
            Event::Compare(left, right) => Some((left, right)),
            _ => None,
        })
    }

    /// Both sides of every test of bits.
    pub fn tests(&self) -> impl Iterator<Item = (&Term, &Term)> {
        self.events.iter().filter_map(|event| match event {
            Event::Test(left, right) => Some((left, right)),
            _ => None,
        })
    }

    /// Both sides of every subtraction.
    pub fn subtractions(&self) -> impl Iterator<Item = (&Term, &Term)> {
        self.events.iter().filter_map(|event| match event {
            Event::Subtract(left, right) => Some((left, right)),
            _ => None,
        })
    }
}

/// What a function does; `None` if the processor is not known or its address holds no code.
pub fn trace(elf: &Elf, function: Symbol) -> Option<Trace> {
    match elf.machine() {
        Machine::X86_64 => x86_64::trace(elf, function),
        Machine::Other(_) => None,
    }
}

/// The distance of a thread-local variable of the program itself from the thread pointer;
/// `value` is its symbol's value.
pub fn thread_local_offset(machine: Machine, tls: Tls, value: u64) -> Option<i64> {
    match machine {
        Machine::X86_64 => x86_64::thread_local_offset(tls, value),
        Machine::Other(_) => None,
    }
}
