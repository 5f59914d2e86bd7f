//! Things with numbers, each kept once and no more than there is room for.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Numbers things in the order in which they come.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    numbers: HashMap<T, u32>,
    things: Vec<T>,
    room: usize,
}

impl<T: Clone + Eq + Hash> Table<T> {
    pub(crate) fn with_room(room: usize) -> Table<T> {
        Table { numbers: HashMap::new(), things: Vec::new(), room }
    }

    /// The number of a thing; `None` if it is new and there is no room.
    pub(crate) fn number(&mut self, thing: T) -> Option<u32> {
        if let Some(number) = self.numbers.get(&thing) {
            return Some(*number);
        }
        if self.things.len() >= self.room {
            return None;
        }
        let number = u32::try_from(self.things.len()).ok()?;
        self.things.push(thing.clone());
        self.numbers.insert(thing, number);
        Some(number)
    }

    /// Whether it has a number.
    pub(crate) fn has<Q>(&self, thing: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.numbers.contains_key(thing)
    }

    /// All of them, by their numbers.
    pub(crate) fn into_things(self) -> Vec<T> {
        self.things
    }
}
