//! From what a trial has counted to what looking costs: a coin decides for each statement what is collected of it, and
//! the processor time of both arms is compared.
//!
//! [`ladder`] makes the arms of a trial, and [`Proof::of`] the answer.
#![forbid(unsafe_code)]

mod ladder;
mod proof;

pub use ladder::{Ladder, ladder};
pub use proof::{ALPHA, ArmSeen, Price, Proof, Step, TRIM};
