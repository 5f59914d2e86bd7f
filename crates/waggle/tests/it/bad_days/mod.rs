//! Bad input and bad days.

mod comings;
mod disguise;
mod extremes;
mod leaving;
mod modes;
mod refusals;
