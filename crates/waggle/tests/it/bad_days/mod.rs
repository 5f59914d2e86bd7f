//! Bad input and bad days.

mod comings;
pub(crate) mod disguise;
mod extremes;
mod hog;
mod late;
mod leaving;
mod modes;
mod refusals;
mod standstill;
