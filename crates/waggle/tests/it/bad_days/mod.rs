//! Bad input and bad days.

mod before;
mod comings;
mod control_group;
pub(crate) mod disguise;
mod disk;
mod ends;
mod extremes;
mod hog;
mod late;
mod leaving;
mod modes;
mod refusals;
mod standstill;
mod time_namespace;
