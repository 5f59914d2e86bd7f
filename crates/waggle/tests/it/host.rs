//! The host that all tests share.

use std::sync::PoisonError;
use std::sync::RwLock;
use std::sync::RwLockReadGuard;
use std::sync::RwLockWriteGuard;

static CLOCK: RwLock<()> = RwLock::new(());

/// Held by a test that reads times: the wall clock is left alone meanwhile.
pub(crate) fn steady_clock() -> RwLockReadGuard<'static, ()> {
    CLOCK.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by the test that sets the wall clock.
pub(crate) fn clock_alone() -> RwLockWriteGuard<'static, ()> {
    CLOCK.write().unwrap_or_else(PoisonError::into_inner)
}
