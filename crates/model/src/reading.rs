//! A value, or the reason why it is missing.

use std::fmt;

/// What came of trying to read something.
///
/// *Not measured* is never zero: where a number is missing, the reason stands in its place and is
/// carried to the last line that is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// The value as it was read.
    Value(T),
    /// Why it could not be read, in words for the person who runs waggle.
    Absent(String),
}

impl<T> Reading<T> {
    /// An absent reading with its reason.
    pub fn absent(why: impl Into<String>) -> Self {
        Reading::Absent(why.into())
    }

    /// The value, where there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::Absent(_) => None,
        }
    }

    /// The reason for the absence, where there is one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Reading::Value(_) => None,
            Reading::Absent(why) => Some(why),
        }
    }

    /// The same reading with its value turned into another, or into the reason why there is none.
    pub fn and_then<U>(self, turn: impl FnOnce(T) -> Result<U, String>) -> Reading<U> {
        match self {
            Reading::Value(value) => turn(value).map_or_else(Reading::Absent, Reading::Value),
            Reading::Absent(why) => Reading::Absent(why),
        }
    }

    /// The same reading, of a value that stays where it is.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Reading::Value(value) => Reading::Value(value),
            Reading::Absent(why) => Reading::Absent(why.clone()),
        }
    }

    /// Both values, or the first reason why one is absent.
    pub fn zip<U>(self, other: Reading<U>) -> Reading<(T, U)> {
        match (self, other) {
            (Reading::Value(value), Reading::Value(other)) => Reading::Value((value, other)),
            (Reading::Absent(why), _) | (_, Reading::Absent(why)) => Reading::Absent(why),
        }
    }

    /// The same reading with its value turned into another.
    pub fn into_value(self) -> Option<T> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::Absent(_) => None,
        }
    }

    /// Turns the value into another one.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Value(value) => Reading::Value(turn(value)),
            Reading::Absent(why) => Reading::Absent(why),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Reading<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reading::Value(value) => value.fmt(out),
            Reading::Absent(why) => write!(out, "absent: {why}"),
        }
    }
}
