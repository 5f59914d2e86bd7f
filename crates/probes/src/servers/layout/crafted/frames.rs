//! How the frames of functions are left: `.eh_frame` and its table (Linux Standard Base 5.0, chapter 10.6).

use super::{Part, Tables, words};

/// What all functions have in common: version 1, addresses relative to their place, factors 1 and -8, the return address in
/// register 16; at the entry the frame is 8 bytes above the stack pointer, and the return address stands below it.
const COMMON: &[u8] = b"\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01";
/// Of the table: version 1, and how it writes the pointer, the count and its rows.
const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Adds a description of each function, and returns where the table of them is; `None` where nothing is to be said.
pub(super) fn add(tables: &mut Tables, functions: &[&Part], described: &[&[u8]]) -> Option<u64> {
    if described.is_empty() {
        return None;
    }
    let common_at = tables.add(&entry(COMMON));
    let mut rows = Vec::new();
    for (function, instructions) in functions.iter().zip(described.iter().cycle()) {
        let at = tables.next();
        let numbers = [
            distance(at + 4, common_at),
            distance(function.address, at + 8),
            function.code.len() as u32,
        ];
        let body = [&words(&numbers)[..], &[0], instructions].concat();
        rows.push((function.address, tables.add(&entry(&body))));
    }
    rows.sort_unstable();
    let at = tables.next();
    let mut table = HEAD.to_vec();
    table.extend(words(&[distance(common_at, at + 4), rows.len() as u32]));
    for (begin, description) in rows {
        table.extend(words(&[distance(begin, at), distance(description, at)]));
    }
    Some(tables.add(&table))
}

/// From one address to another, as four bytes say it.
fn distance(to: u64, from: u64) -> u32 {
    to.wrapping_sub(from) as u32
}

/// With its length, and instructions that do nothing up to a multiple of four.
fn entry(body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}
