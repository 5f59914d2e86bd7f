//! Which bytes of a session waggle reads, and what they mean.
//!
//! Each place costs a page lookup, so fields that lie close together are read as one span.

use waggle_model::{Command, is_of_client};

use crate::servers::layout::{Base, ContextStrings, Field, Layout};
use crate::servers::{Batch, Place};

/// Bytes between two fields up to which reading them together is cheaper than reading them apart.
const GAP: u32 = 512;

/// The spans that hold some fields of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// Offset in the object and length of each.
    spans: Vec<(u32, u32)>,
    /// Where each field lies in the spans when they are put one after the other, and its width.
    fields: Vec<(Field, usize, usize)>,
}

impl Spans {
    /// `wanted` holds the offset and the width of each field.
    pub(super) fn of(wanted: impl Iterator<Item = (Field, u32, u32)>) -> Self {
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort_by_key(|(_, offset, _)| *offset);
        let mut this = Self::default();
        let mut before = 0;
        for (field, offset, width) in wanted {
            match this.spans.last_mut() {
                Some((start, length)) if offset <= *start + *length + GAP => {
                    *length = (*length).max(offset + width - *start);
                }
                last => {
                    before += last.map_or(0, |(_, length)| *length as usize);
                    this.spans.push((offset, width));
                }
            }
            let start = this.spans.last().map_or(offset, |(start, _)| *start);
            let at = before + (offset - start) as usize;
            this.fields.push((field, at, width as usize));
        }
        this
    }

    /// Adds the spans of the object at `address`; gives the number of the first one.
    pub(super) fn add_to(&self, batch: &mut Batch, address: u64) -> usize {
        let first = batch.len();
        for (offset, length) in &self.spans {
            let at = address.wrapping_add(u64::from(*offset));
            batch.add(Place::new(at, u64::from(*length)));
        }
        first
    }

    /// The bytes of the object that [`Spans::add_to`] added.
    pub(super) fn bytes<'a>(&self, batch: &'a Batch, first: usize) -> Option<&'a [u8]> {
        batch.joined(first, self.spans.len())
    }

    fn has(&self, field: Field) -> bool {
        self.fields.iter().any(|(known, ..)| *known == field)
    }

    /// The word at a field, widened.
    fn word(&self, bytes: &[u8], field: Field) -> Option<u64> {
        let (_, at, width) = self.fields.iter().find(|(known, ..)| *known == field)?;
        word_at(bytes, *at, (*width).min(8))
    }

    /// The word after the first eight bytes of a field.
    fn second_word(&self, bytes: &[u8], field: Field) -> Option<u64> {
        let (_, at, width) = self.fields.iter().find(|(known, ..)| *known == field)?;
        word_at(bytes, at + 8, width.checked_sub(8).filter(|width| *width > 0)?)
    }
}

fn word_at(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    match *bytes {
        [byte] => Some(u64::from(byte)),
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        _ => bytes.try_into().ok().map(u64::from_ne_bytes),
    }
}

/// A string somewhere in the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringAt {
    /// Its address and its length.
    Counted(u64, u64),
    /// Its address; it ends with a zero byte.
    ZeroEnded(u64),
}

/// What a session says of itself in its own object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The connection id; 0 for a thread of the server.
    pub(super) id: u64,
    /// The command; `None` if none has this number.
    pub(super) command: Option<Command>,
    /// Start of the statement, microseconds of the family's clock.
    pub(super) start_us: Option<u64>,
    /// The text, address and length.
    pub(super) text: Option<(u64, u64)>,
    /// The default database.
    pub(super) database: Option<StringAt>,
    /// The state text.
    pub(super) state: Option<StringAt>,
    /// Address of the security context.
    pub(super) context: Option<u64>,
    /// Whether it, or its statement, was killed.
    pub(super) is_killed: Option<bool>,
}

/// The fields of a head.
pub(super) const HEAD: [Field; 10] = [
    Field::ConnectionId,
    Field::Command,
    Field::StartTime,
    Field::QueryText,
    Field::QueryLength,
    Field::Database,
    Field::DatabaseLength,
    Field::State,
    Field::SecurityContext,
    Field::Killed,
];

impl Head {
    /// The spans of the fields that this layout has.
    pub(super) fn spans(layout: &Layout) -> Spans {
        let own = HEAD.into_iter().filter(|field| field.base() == Base::Session);
        Spans::of(own.filter_map(|field| Some((field, layout.offset(field)?, field.width()))))
    }

    /// Whether a client has this session, and no thread of the server.
    pub(super) fn is_of_client(&self) -> bool {
        is_of_client(self.id, self.command)
    }

    /// `None` only if the layout lacks the id or the command.
    pub(super) fn decode(spans: &Spans, bytes: &[u8]) -> Option<Self> {
        let word = |field| spans.word(bytes, field);
        let pointer = |field| word(field).filter(|address| *address != 0);
        let pair = |at, length| Some((pointer(at)?, word(length).filter(|length| *length > 0)?));
        Some(Self {
            id: word(Field::ConnectionId)?,
            command: u8::try_from(word(Field::Command)?).ok().map(Command),
            start_us: word(Field::StartTime).filter(|start| *start > 0),
            text: pair(Field::QueryText, Field::QueryLength),
            database: pair(Field::Database, Field::DatabaseLength)
                .map(|(address, length)| StringAt::Counted(address, length)),
            state: pointer(Field::State).map(StringAt::ZeroEnded),
            context: pointer(Field::SecurityContext),
            is_killed: word(Field::Killed).map(|killed| killed != 0),
        })
    }
}

/// The client as the security context names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// The user.
    pub(super) user: Option<StringAt>,
    /// The host name, or the address where it was not resolved.
    pub(super) host: Option<StringAt>,
}

impl Client {
    /// The spans of the fields that this layout has.
    pub(super) fn spans(layout: &Layout) -> Spans {
        let width = match layout.context_strings {
            ContextStrings::PointerAndLength => 16,
            ContextStrings::ZeroEnded => 8,
        };
        let fields = [Field::User, Field::Host, Field::Address].into_iter();
        Spans::of(fields.filter_map(|field| Some((field, layout.offset(field)?, width))))
    }

    /// Strings that are absent or empty are `None`.
    pub(super) fn decode(spans: &Spans, bytes: &[u8], strings: ContextStrings) -> Self {
        let string = |field| {
            let address = spans.word(bytes, field).filter(|address| *address != 0)?;
            match strings {
                ContextStrings::ZeroEnded => Some(StringAt::ZeroEnded(address)),
                ContextStrings::PointerAndLength => {
                    let length = spans.second_word(bytes, field)? & u64::from(u32::MAX);
                    (length > 0).then_some(StringAt::Counted(address, length))
                }
            }
        };
        Self {
            user: string(Field::User),
            // Without the field of the name an address would be taken for one.
            host: string(Field::Host)
                .or_else(|| string(Field::Address))
                .filter(|_| spans.has(Field::Host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets of MySQL 9.7.4.
    fn spans() -> Spans {
        let at = [
            (Field::QueryText, 0x510, 8),
            (Field::QueryLength, 0x518, 8),
            (Field::Database, 0x558, 8),
            (Field::DatabaseLength, 0x560, 8),
            (Field::SecurityContext, 0x1800, 8),
            (Field::State, 0x1878, 8),
            (Field::Command, 0x19b4, 4),
            (Field::StartTime, 0x19f0, 8),
            (Field::ConnectionId, 0x25d0, 4),
        ];
        Spans::of(at.into_iter().rev())
    }

    fn session(words: &[(usize, u64)]) -> Vec<u8> {
        let mut session = vec![0xaa; 0x2600];
        for (at, word) in words {
            session[*at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        let spans = spans();
        let of = |(at, length): &(u32, u32)| &session[*at as usize..(*at + *length) as usize];
        spans.spans.iter().flat_map(of).copied().collect()
    }

    #[test]
    fn near_fields_share_a_span_and_far_ones_do_not() {
        assert_eq!(spans().spans, [(0x510, 0x58), (0x1800, 0x1f8), (0x25d0, 4)]);
    }

    #[test]
    fn every_field_of_a_head_is_found_in_its_span() {
        let bytes = session(&[
            (0x510, 0x7000),
            (0x518, 70_000_000),
            (0x558, 0x8000),
            (0x560, 4),
            (0x1800, 0x9000),
            (0x1878, 0xa000),
            (0x19b4, 3 | 7 << 32),
            (0x19f0, 1_700_000_000_000_000),
            (0x25d0, 42 | 9 << 32),
        ]);
        let head = Head::decode(&spans(), &bytes).unwrap();
        assert_eq!(
            head,
            Head {
                id: 42,
                command: Some(Command::QUERY),
                start_us: Some(1_700_000_000_000_000),
                text: Some((0x7000, 70_000_000)),
                database: Some(StringAt::Counted(0x8000, 4)),
                state: Some(StringAt::ZeroEnded(0xa000)),
                context: Some(0x9000),
                is_killed: None,
            }
        );
    }

    #[test]
    fn cut_bytes_give_absent_fields_never_wrong_ones() {
        let bytes = session(&[(0x510, 1), (0x518, 2), (0x25d0, 42)]);
        let whole = Head::decode(&spans(), &bytes);
        for end in 0..bytes.len() {
            // The id lies in the last span.
            assert_eq!(Head::decode(&spans(), &bytes[..end]), None, "{end} bytes");
        }
        assert!(whole.is_some());
    }

    #[test]
    fn a_layout_without_a_field_gives_a_head_without_it() {
        let spans = Spans::of([(Field::ConnectionId, 8, 4), (Field::Command, 0, 4)].into_iter());
        let head = Head::decode(&spans, &[29, 0, 0, 0, 1, 1, 1, 1, 5, 0, 0, 0]).unwrap();
        assert_eq!((head.id, head.command), (5, Some(Command::DAEMON)));
        assert_eq!((head.start_us, head.text, head.database), (None, None, None));
        assert_eq!((head.state, head.context), (None, None));
    }

    #[test]
    fn the_address_stands_in_for_a_host_that_was_not_resolved() {
        let spans = Spans::of(
            [(Field::User, 0, 16), (Field::Host, 0x20, 16), (Field::Address, 0x40, 16)].into_iter(),
        );
        let mut bytes = vec![0; 0x50];
        for (at, word) in [(0, 0x100u64), (8, 4), (0x20, 0x200), (0x40, 0x300), (0x48, 9)] {
            bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        let client = Client::decode(&spans, &bytes, ContextStrings::PointerAndLength);
        assert_eq!(client.user, Some(StringAt::Counted(0x100, 4)));
        assert_eq!(client.host, Some(StringAt::Counted(0x300, 9)));
        bytes[0x28] = 5;
        let client = Client::decode(&spans, &bytes, ContextStrings::PointerAndLength);
        assert_eq!(client.host, Some(StringAt::Counted(0x200, 5)));
    }
}
