//! Samples in the format of pprof (<https://github.com/google/pprof/blob/main/proto/profile.proto>), before it is packed.
//! The format is that of protocol buffers (<https://protobuf.dev/programming-guides/encoding/>).

use std::collections::HashMap;

use crate::folded::{name, title};
use crate::profile::{Counts, Profile};

/// When the samples were taken, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The begin, nanoseconds since 1970.
    pub begin_ns: u64,
    /// How long, nanoseconds.
    pub length_ns: u64,
    /// From one sample of a processor to the next, nanoseconds.
    pub period_ns: u64,
}

/// A message that grows.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A field that holds a number.
    fn set(&mut self, field: u64, number: u64) {
        self.number(field << 3);
        self.number(number);
    }

    /// A field that holds bytes.
    fn put(&mut self, field: u64, bytes: &[u8]) {
        self.number(field << 3 | 2);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A field that holds numbers.
    fn put_all(&mut self, field: u64, numbers: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        numbers.into_iter().for_each(|number| packed.number(number));
        self.put(field, &packed.0);
    }
}

/// Each text once; the first is empty.
struct Texts {
    numbers: HashMap<String, u64>,
    all: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }
}

/// The samples with the names of their functions; the digest or thread is the label `work` of a sample.
pub fn pprof(profile: &Profile, span: &Span) -> Vec<u8> {
    let mut texts =
        Texts { numbers: HashMap::from([(String::new(), 0)]), all: vec![String::new()] };
    let mut message = Message::default();
    let kinds = match profile.counts {
        Counts::Ticks => [("samples", "count"), ("cpu", "nanoseconds")],
        Counts::Waits => [("wait", "microseconds"), ("off_cpu", "nanoseconds")],
    };
    for (kind, unit) in kinds {
        message.put(1, &pair(texts.number(kind), texts.number(unit)));
    }
    let work = texts.number("work");
    for stack in &profile.stacks {
        let mut sample = Message::default();
        // The innermost is the first.
        sample.put_all(1, stack.functions.iter().rev().map(|function| *function as u64 + 1));
        sample.put_all(2, [stack.count, stack.count.saturating_mul(span.period_ns)]);
        if let Some(owner) = profile.owners.get(stack.owner) {
            sample.put(3, &pair(work, texts.number(&title(owner))));
        }
        message.put(2, &sample.0);
    }
    for (at, function) in profile.functions.iter().enumerate() {
        let id = at as u64 + 1;
        let mut location = Message::default();
        location.set(1, id);
        let mut line = Message::default();
        line.set(1, id);
        location.put(4, &line.0);
        message.put(4, &location.0);
        let mut told = Message::default();
        let text = texts.number(&name(function));
        told.set(1, id);
        told.set(2, text);
        told.set(3, text);
        told.set(4, texts.number(&function.file));
        message.put(5, &told.0);
    }
    let period = pair(texts.number(kinds[1].0), texts.number(kinds[1].1));
    for text in &texts.all {
        message.put(6, text.as_bytes());
    }
    message.set(9, span.begin_ns);
    message.set(10, span.length_ns);
    message.put(11, &period);
    message.set(12, span.period_ns);
    message.0
}

/// A message of two numbers: a type with its unit, or a label.
fn pair(first: u64, second: u64) -> Vec<u8> {
    let mut message = Message::default();
    message.set(1, first);
    message.set(2, second);
    message.0
}
