//! Bytes that are never printed.

use std::fmt;

/// A password, or a value of an option file that may be one. Its `Debug` output says nothing about
/// it, not even its length, and its memory is overwritten when it is dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    /// The bytes, for the one place that needs them.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(not shown)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Without a reader after it the compiler may leave the overwriting out.
        std::hint::black_box(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_in_debug_output() {
        let shown = format!("{:?} {:#?}", Secret::new(b"hunter2".to_vec()), Secret::default());
        assert_eq!(shown, "Secret(not shown) Secret(not shown)");
    }
}
