//! Who the sessions are, idle ones too.

use std::collections::BTreeSet;

use waggle_model::{Identity, SeenSession};

use super::LocksError;
use super::reads::Reads;
use crate::servers::layout::{ContextStrings, Field, Layout};
use crate::servers::{Batch, Place};
use crate::sessions::head::{Client, Head, Spans, StringAt};

/// Longest name, state and text that are read.
const NAME: u64 = 256;
const STATE: u64 = 128;
const TEXT: u64 = 1024;

/// Where a build keeps who a session is.
#[derive(Debug)]
pub(super) struct Who {
    head: Spans,
    client: Spans,
    strings: ContextStrings,
    knows_user: bool,
}

impl Who {
    pub(super) fn of(layout: &Layout) -> Self {
        Self {
            head: Head::spans(layout),
            client: Client::spans(layout),
            strings: layout.context_strings,
            knows_user: layout.offset(Field::User).is_some(),
        }
    }

    /// The sessions of clients at these addresses, and how many could not be read.
    pub(super) fn read(
        &self,
        reads: &mut Reads<'_>,
        addresses: &[u64],
    ) -> Result<(Vec<SeenSession>, usize), LocksError> {
        let addresses: BTreeSet<u64> = addresses.iter().copied().filter(|thd| *thd != 0).collect();
        let addresses: Vec<u64> = addresses.into_iter().collect();
        let heads = spans(reads, &self.head, &addresses)?;
        let heads: Vec<Option<Head>> =
            heads.iter().map(|bytes| Head::decode(&self.head, bytes.as_deref()?)).collect();
        let unreadable = heads.iter().filter(|head| head.is_none()).count();
        let known = addresses.iter().zip(heads).filter_map(|(thd, head)| Some((*thd, head?)));
        let known: Vec<(u64, Head)> = known.filter(|(_, head)| head.is_of_client()).collect();
        let contexts: Vec<u64> = known.iter().map(|(_, head)| head.context.unwrap_or(0)).collect();
        let clients = spans(reads, &self.client, &contexts)?;
        let mut wanted = Vec::new();
        for ((_, head), client) in known.iter().zip(&clients) {
            let client = client.as_deref().unwrap_or_default();
            let client = Client::decode(&self.client, client, self.strings);
            let text = head.text.map(|(at, length)| StringAt::Counted(at, length));
            wanted.extend([
                (client.user, NAME),
                (client.host, NAME),
                (head.database, NAME),
                (head.state, STATE),
                (text, TEXT),
            ]);
        }
        let mut texts = strings(reads, &wanted)?.into_iter();
        let mut sessions = Vec::new();
        for (thd, head) in known {
            let mut text = || texts.next().flatten().filter(|text| !text.is_empty());
            let [user, host, database, state, text] = std::array::from_fn(|_| text());
            // A thread of MariaDB that waits for the next client keeps the session of the last one.
            if self.knows_user && user.is_none() {
                continue;
            }
            sessions.push(SeenSession {
                thd,
                connection_id: head.id,
                command: head.command.unwrap_or_default(),
                is_killed: head.is_killed,
                noted_start_us: head.start_us,
                identity: Identity { user, host, database },
                state,
                text,
                waits_for: None,
            });
        }
        Ok((sessions, unreadable))
    }
}

/// The spans of an object at each of these addresses, as one piece.
fn spans(
    reads: &mut Reads<'_>,
    spans: &Spans,
    addresses: &[u64],
) -> Result<Vec<Option<Vec<u8>>>, LocksError> {
    let mut batch = Batch::default();
    let counts: Vec<usize> = addresses
        .iter()
        .map(|address| {
            let first = spans.add_to(&mut batch, *address);
            batch.len() - first
        })
        .collect();
    let places: Vec<(u64, u32)> = batch.list().collect();
    let mut read = reads.places(&places)?.into_iter();
    let joined = counts.into_iter().map(|count| {
        let parts: Vec<Option<Vec<u8>>> = read.by_ref().take(count).collect();
        parts.into_iter().collect::<Option<Vec<Vec<u8>>>>().map(|parts| parts.concat())
    });
    Ok(joined.collect())
}

/// Strings, each of at most so many bytes.
fn strings(
    reads: &mut Reads<'_>,
    wanted: &[(Option<StringAt>, u64)],
) -> Result<Vec<Option<Vec<u8>>>, LocksError> {
    let places = wanted.iter().flat_map(|(string, most)| match string {
        None => [(0, 0); 2],
        Some(StringAt::Counted(at, length)) => [(*at, (*length).min(*most) as u32), (0, 0)],
        // The second place may be missing although the string is whole.
        Some(StringAt::ZeroEnded(at)) => Place::zero_ended(*at, *most as u32).map(Place::parts),
    });
    let places: Vec<(u64, u32)> = places.collect();
    let read = reads.places(&places)?;
    let texts = wanted.iter().zip(read.chunks(2)).map(|((string, _), read)| {
        let first = read.first()?.as_deref()?;
        let whole = || Some([first, read.get(1)?.as_deref()?].concat());
        match string.as_ref()? {
            StringAt::Counted(..) => Some(first.to_vec()),
            StringAt::ZeroEnded(_) => match first.iter().position(|byte| *byte == 0) {
                Some(end) => first.get(..end).map(<[u8]>::to_vec),
                None => whole()?.split(|byte| *byte == 0).next().map(<[u8]>::to_vec),
            },
        }
    });
    Ok(texts.collect())
}
