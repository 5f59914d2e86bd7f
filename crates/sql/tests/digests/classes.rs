//! Whether two ways to tell statements apart are the same.

use std::collections::HashMap;

/// The classes of the server and of waggle.
#[derive(Default)]
pub(crate) struct Classes {
    /// The server's class: our classes, each with a statement.
    ours: HashMap<Vec<u8>, HashMap<u64, Vec<u8>>>,
    /// And the other way around.
    theirs: HashMap<u64, HashMap<Vec<u8>, Vec<u8>>>,
}

impl Classes {
    pub(crate) fn add(&mut self, theirs: &[u8], ours: u64, statement: &[u8]) {
        let example = || statement.to_vec();
        self.ours.entry(theirs.to_vec()).or_default().entry(ours).or_insert_with(example);
        self.theirs.entry(ours).or_default().entry(theirs.to_vec()).or_insert_with(example);
    }

    pub(crate) fn agree(&self) -> bool {
        self.ours.values().all(|it| it.len() == 1) && self.theirs.values().all(|it| it.len() == 1)
    }

    pub(crate) fn summary(&self) -> String {
        format!("{} classes of the server, {} of waggle", self.ours.len(), self.theirs.len())
    }

    /// Classes that are several on the other side.
    pub(crate) fn report(&self) -> String {
        let mut report = String::new();
        for split in self.ours.values().filter(|it| it.len() > 1) {
            report += "one for the server, several here:\n";
            for statement in split.values().take(3) {
                report += &format!("  {}\n", String::from_utf8_lossy(statement));
            }
        }
        for joined in self.theirs.values().filter(|it| it.len() > 1) {
            report += "several for the server, one here:\n";
            for statement in joined.values().take(3) {
                report += &format!("  {}\n", String::from_utf8_lossy(statement));
            }
        }
        report
    }
}
