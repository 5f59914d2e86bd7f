//! The answers of a server about its digests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waggle_model::Reading;

/// The maximum number of remembered digests of one server: twice as many as Performance Schema has
/// (`performance_schema_digests_size`). It bounds the memory.
const DIGESTS_MAX: usize = 20_000;

/// What is known of the hash of a digest.
pub(super) type Hash = Reading<Arc<str>>;

/// The answers of one server, by our own hash of the digest.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_digest: HashMap<u64, Asked>,
    /// Why the server cannot be asked at all, for now or for good.
    refused: Option<String>,
    /// Its `max_digest_length`, where it had to be asked for that.
    max_digest_length: Option<u64>,
}

#[derive(Debug)]
enum Asked {
    Waiting,
    Answered(Hash),
    /// No statement that was met can be asked about, for this reason; another may.
    PutOff(String),
}

impl Answers {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that holds it leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a digest is to be asked for: it is new, and the server can be asked.
    pub(super) fn lack(&self, digest: u64) -> bool {
        let known = self.known();
        let has_room = known.by_digest.len() < DIGESTS_MAX;
        let is_open = matches!(known.by_digest.get(&digest), None | Some(Asked::PutOff(_)));
        known.refused.is_none() && has_room && is_open
    }

    /// A digest is being asked for.
    pub(super) fn wait_for(&self, digest: u64) {
        self.known().by_digest.insert(digest, Asked::Waiting);
    }

    /// A digest will not be asked for now, though it was to be: it will be when it is met again.
    pub(super) fn forget(&self, digest: u64) {
        self.known().by_digest.remove(&digest);
    }

    /// The statement of a digest that was met cannot be asked about.
    pub(super) fn put_off(&self, digest: u64, why: String) {
        self.known().by_digest.insert(digest, Asked::PutOff(why));
    }

    /// The result of a question. It is not asked again.
    pub(super) fn put(&self, digest: u64, hash: Hash) {
        self.known().by_digest.insert(digest, Asked::Answered(hash));
    }

    /// The server has told its `max_digest_length`.
    pub(super) fn put_length(&self, length: u64) {
        self.known().max_digest_length = Some(length);
    }

    /// What it told.
    pub(super) fn length(&self) -> Option<u64> {
        self.known().max_digest_length
    }

    /// The server cannot be asked, or it can again. Returns whether that is new.
    pub(super) fn refuse(&self, why: Option<String>) -> bool {
        let mut known = self.known();
        let is_new = known.refused != why;
        known.refused = why;
        is_new
    }

    /// What is known of a digest.
    pub(super) fn of(&self, digest: u64) -> Hash {
        let known = self.known();
        match (known.by_digest.get(&digest), &known.refused) {
            (Some(Asked::Answered(hash)), _) => hash.clone(),
            (Some(Asked::PutOff(why)), None) => Reading::absent(why.clone()),
            (_, Some(why)) => Reading::absent(why.clone()),
            (None, None) if known.by_digest.len() >= DIGESTS_MAX => Reading::absent(
                "the server was asked for 20000 other digests, and no more are kept",
            ),
            (None, None) => Reading::absent("the server was not asked yet"),
            (Some(Asked::Waiting), None) => Reading::absent("the server has not answered yet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_asked_for_once_unless_the_question_was_dropped() {
        let answers = Answers::default();
        assert!(answers.lack(1));
        answers.wait_for(1);
        assert!(!answers.lack(1));
        assert_eq!(answers.of(1).why(), Some("the server has not answered yet"));
        answers.forget(1);
        assert!(answers.lack(1));
        answers.put_off(1, "the text was cut".to_owned());
        assert!(answers.lack(1), "another statement may do");
        assert_eq!(answers.of(1).why(), Some("the text was cut"));
        answers.put(1, Reading::Value("ab".into()));
        assert!(!answers.lack(1));
        assert_eq!(answers.of(1).value().map(|hash| &**hash), Some("ab"));
    }

    #[test]
    fn what_was_answered_stays_while_the_server_cannot_be_asked() {
        let answers = Answers::default();
        answers.put(1, Reading::Value("ab".into()));
        assert!(answers.refuse(Some("gone".into())));
        assert!(!answers.refuse(Some("gone".into())), "told once");
        assert!(!answers.lack(2));
        assert_eq!(answers.of(2).why(), Some("gone"));
        assert!(answers.of(1).value().is_some());
        assert!(answers.refuse(None));
        assert!(answers.lack(2));
    }

    #[test]
    fn the_memory_is_bounded_and_what_is_beyond_says_so() {
        let answers = Answers::default();
        (0..DIGESTS_MAX as u64).for_each(|digest| answers.put(digest, Reading::absent("")));
        assert!(!answers.lack(u64::MAX));
        assert!(answers.of(u64::MAX).why().unwrap().contains(&DIGESTS_MAX.to_string()));
    }
}
