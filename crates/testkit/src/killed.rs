//! Processes that do not outlive the test that started them.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Deref for Killed {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Killed {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
