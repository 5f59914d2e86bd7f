//! What is told of an output that lacks something.

use std::io::{self, ErrorKind};

use waggle_model::{Loss, Losses};
use waggle_observe::{Capture, Ended, Missing, Trouble, WhyMissing};

/// An output and what is written to it, in words.
#[derive(Clone, Debug)]
pub(crate) struct OutputName {
    output: String,
    /// One of what is written to it.
    unit: &'static str,
}

impl OutputName {
    pub(crate) fn new(output: impl Into<String>, unit: &'static str) -> OutputName {
        OutputName { output: output.into(), unit }
    }

    /// What it loses now.
    pub(crate) fn trouble(&self, trouble: &Trouble) -> String {
        let OutputName { output, unit } = self;
        match trouble {
            Trouble::Failed(why) => {
                format!("{output} cannot be written: {why}; it has ended, all else goes on")
            }
            Trouble::Lost { now, all } => {
                format!("{output} takes too long: {}, {all} in all", not_in_it(*now, unit))
            }
        }
    }

    /// What it lacks at its end; `None` if that is nothing.
    ///
    /// # Errors
    /// `BrokenPipe`: who reads it has seen enough (`waggle watch | head`), so that nothing need be told.
    pub(crate) fn lack(&self, ended: Ended) -> io::Result<Option<String>> {
        let OutputName { output, unit } = self;
        let Ended { unwritten, failure } = ended;
        Ok(match failure {
            Some(error) if error.kind() == ErrorKind::BrokenPipe => return Err(error),
            Some(error) => {
                let lack = not_in_it(unwritten, unit);
                Some(format!("{output} cannot be written: {error}; {lack}"))
            }
            None if unwritten > 0 => {
                Some(format!("{output} takes too long: {}", not_in_it(unwritten, unit)))
            }
            None => None,
        })
    }
}

/// What every output lacks of servers that were read wrongly; `None` if none was.
pub(crate) fn misread(losses: &Losses) -> Option<String> {
    let replies = losses.get(Loss::ReadWrongly);
    (replies > 0).then(|| {
        format!(
            "{replies} replies to clients became no statement: statements are missing, for a server \
             is read wrongly"
        )
    })
}

/// Servers that are named one by one.
const NAMED: usize = 3;

/// Servers that are not watched, each with the reason, in words.
pub(crate) fn servers(missing: &[Missing]) -> String {
    let named: Vec<String> = missing.iter().take(NAMED).map(ToString::to_string).collect();
    let named = named.join("; ");
    match missing.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}; and {more} more"),
    }
}

/// The servers whose programs were still being read when watching began: those of users that come first, as everybody can
/// start what looks like a server. One that is starting runs no statements yet.
#[derive(Debug)]
pub(crate) struct Unread(Vec<u32>);

impl Unread {
    pub(crate) fn of(capture: &Capture) -> Unread {
        Unread(being_read(capture).map(|one| one.pid).collect())
    }

    /// What every output lacks of those that still are when it ends, so that none of their statements was seen; `None` if
    /// none is.
    pub(crate) fn still(&self, capture: &Capture) -> Option<String> {
        let still: Vec<Missing> =
            being_read(capture).filter(|one| self.0.contains(&one.pid)).collect();
        let lack = || format!("{}: none of its statements was seen", servers(&still));
        (!still.is_empty()).then(lack)
    }
}

fn being_read(capture: &Capture) -> impl Iterator<Item = Missing> {
    let is_meant = |one: &Missing| one.why == WhyMissing::Reading && one.owner.is_trusted();
    capture.unread().into_iter().filter(is_meant)
}

/// A number with its unit, in words.
pub(crate) fn plural(number: u64, unit: &str) -> String {
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// The same as the subject of a sentence: `1 line is`.
pub(crate) fn there_are(number: u64, unit: &str) -> String {
    format!("{} {}", plural(number, unit), if number == 1 { "is" } else { "are" })
}

fn not_in_it(number: u64, unit: &str) -> String {
    format!("{} not in it", there_are(number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_as_one() {
        let name = OutputName::new("the output", "interval");
        let told = |now| name.trouble(&Trouble::Lost { now, all: 2 });
        assert_eq!(told(1), "the output takes too long: 1 interval is not in it, 2 in all");
        assert_eq!(told(2), "the output takes too long: 2 intervals are not in it, 2 in all");
        let lack = |unwritten| name.lack(Ended { unwritten, failure: None }).unwrap();
        assert_eq!(lack(1).unwrap(), "the output takes too long: 1 interval is not in it");
        assert_eq!(lack(0), None);
    }
}
