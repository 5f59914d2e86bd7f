//! How long tasks waited for storage.

/// For which part of an interval a task waited for storage, at least one at a time ("some" of the kernel's pressure stall
/// information, `Documentation/accounting/psi.rst`). Sessions need not be among them: those of a server wait for its own
/// threads that write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StorageWaits {
    /// From 0 to 1.
    pub share: f64,
    /// Whether only tasks of the server's control group count; else all of the host do.
    pub of_group: bool,
}
