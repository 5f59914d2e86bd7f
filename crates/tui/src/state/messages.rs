//! What there is to tell the user, one sentence after the other.

use std::collections::VecDeque;

/// Intervals for which the last sentence stays.
const LAST_STAYS: u32 = 10;
/// Intervals for which one stays while others wait.
const OTHERS_STAY: u32 = 3;
/// Sentences that wait.
const WAITING_MAX: usize = 100;

/// Sentences, of which one is shown.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    waiting: VecDeque<Message>,
    /// Those that found no room since none was waiting.
    left_out: usize,
}

#[derive(Debug)]
struct Message {
    text: String,
    /// It answers a key, and goes with the next one.
    is_answer: bool,
    /// Intervals for which it has been shown.
    shown: u32,
}

impl Messages {
    /// Tells something when all before it has been shown.
    pub(crate) fn tell(&mut self, text: String) {
        if self.waiting.len() == WAITING_MAX {
            self.left_out += 1;
            return;
        }
        self.waiting.push_back(Message { text, is_answer: false, shown: 0 });
    }

    /// Tells at once what a key did.
    pub(crate) fn answer(&mut self, text: String) {
        self.waiting.push_front(Message { text, is_answer: true, shown: 0 });
    }

    /// A key was pressed: an answer has been seen, and so has what was there for an interval.
    pub(crate) fn dismiss(&mut self) {
        if self.waiting.front().is_some_and(|first| first.is_answer || first.shown > 0) {
            self.next();
        }
    }

    /// An interval ended.
    pub(crate) fn end_of_interval(&mut self) {
        let stays = if self.waiting.len() > 1 { OTHERS_STAY } else { LAST_STAYS };
        let Some(first) = self.waiting.front_mut() else { return };
        first.shown += 1;
        if first.shown >= stays {
            self.next();
        }
    }

    /// The sentence that is shown, and in short how many follow.
    pub(crate) fn shown(&self) -> Option<(&str, Option<String>)> {
        let first = self.waiting.front()?;
        let follow = self.waiting.len() - 1;
        let more = match (follow, self.left_out) {
            (0, 0) => None,
            (follow, 0) => Some(format!("({follow} more)")),
            (follow, left_out) => Some(format!("({follow} more, {left_out} left out)")),
        };
        Some((&first.text, more))
    }

    fn next(&mut self) {
        self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.left_out = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(messages: &Messages) -> String {
        let Some((text, more)) = messages.shown() else { return String::new() };
        format!("{text} {}", more.unwrap_or_default()).trim_end().to_owned()
    }

    #[test]
    fn several_sentences_are_shown_one_after_the_other_with_their_number() {
        let mut messages = Messages::default();
        ["one", "two", "three"].into_iter().for_each(|text| messages.tell(text.to_owned()));
        let mut seen = Vec::new();
        while messages.shown().is_some() {
            seen.push(shown(&messages));
            messages.end_of_interval();
        }
        let times = |text: &str, times: u32| vec![text.to_owned(); times as usize];
        let expected = [
            times("one (2 more)", OTHERS_STAY),
            times("two (1 more)", OTHERS_STAY),
            times("three", LAST_STAYS),
        ];
        assert_eq!(seen, expected.concat());
    }

    #[test]
    fn keys_that_follow_at_once_hide_nothing_that_nobody_could_read() {
        let mut messages = Messages::default();
        ["one", "two"].into_iter().for_each(|text| messages.tell(text.to_owned()));
        messages.answer("copied".to_owned());
        assert_eq!(shown(&messages), "copied (2 more)");
        (0..5).for_each(|_| messages.dismiss());
        assert_eq!(shown(&messages), "one (1 more)");
        messages.end_of_interval();
        (0..5).for_each(|_| messages.dismiss());
        assert_eq!(shown(&messages), "two");
    }

    #[test]
    fn sentences_beyond_the_limit_are_counted() {
        let mut messages = Messages::default();
        (0..WAITING_MAX + 2).for_each(|nth| messages.tell(nth.to_string()));
        assert_eq!(shown(&messages), format!("0 ({} more, 2 left out)", WAITING_MAX - 1));
    }
}
