//! From what a trial has counted to what looking costs: a coin decides for each statement what is collected of it, and
//! the processor time of both arms is compared.
//!
//! [`ladder`] makes the arms of a trial, and [`Proof::of`] the answer. What no coin can switch is tried in windows:
//! [`Switched`].
#![forbid(unsafe_code)]

mod digests;
mod ladder;
mod proof;
mod windows;

pub use digests::{DigestPrice, by_digest};
pub use ladder::{Ladder, ladder};
pub use proof::{ALPHA, ArmSeen, Price, Proof, Step, TRIM};
pub use windows::{
    BLOCK_TRIM, Block, Blocks, CONFIDENCE, FLOOR_CONFIDENCE, GiveUp, Phase, Slower, Sum, Switched,
    Window, holds,
};
