//! Changes that damage and malice make alike.

use waggle_stats::Random;

/// Changes some bytes once: a byte, a bit, a number, a part that is removed, repeated, cut off, or taken from another
/// input, or one of `pieces`. At most `longest` bytes are left.
pub fn mutate(
    bytes: &mut Vec<u8>,
    random: &mut Random,
    pieces: &[&[u8]],
    others: &[&[u8]],
    longest: usize,
) {
    let (from, to) = range(bytes, random);
    match random.below(9) {
        0 if from < bytes.len() => bytes[from] = random.below(256) as u8,
        1 => drop(bytes.drain(from..to)),
        2 => bytes.truncate(from),
        3 => {
            let copied = bytes[from..to].to_vec();
            let at = random.below(bytes.len() + 1);
            insert(bytes, at, &copied);
        }
        4 if !others.is_empty() => {
            let other = random.pick(others);
            let (begin, end) = range(other, random);
            insert(bytes, from, &other[begin..end]);
        }
        5 if from < bytes.len() => bytes[from] ^= 1 << random.below(8),
        6 => {
            let width = *random.pick(&[1, 2, 4, 8]);
            put(bytes, from, width, edge(random));
        }
        _ if !pieces.is_empty() => insert(bytes, from, random.pick::<&[u8]>(pieces)),
        _ => {}
    }
    bytes.truncate(longest);
}

/// A place of the bytes and one after it, mostly near.
fn range(bytes: &[u8], random: &mut Random) -> (usize, usize) {
    let from = random.below(bytes.len() + 1);
    let most = if random.coin() { 8 } else { bytes.len() };
    (from, (from + random.below(most + 1)).min(bytes.len()))
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    bytes.splice(at..at, part.iter().copied());
}

/// A number near one at which arithmetic ends: 0, a power of two, or the largest. Else any.
pub fn edge(random: &mut Random) -> u64 {
    let near = random.below(33) as u64;
    let power = 1_u64 << random.below(64);
    match random.below(6) {
        0 => near,
        1 => near.wrapping_neg(),
        2 => power.wrapping_sub(near),
        3 => power.wrapping_add(near),
        4 => random.bits() >> random.below(64),
        _ => random.bits(),
    }
}

/// Writes the low `width` bytes of a number, the lowest first, over those at a place, as far as there are any.
pub fn put(bytes: &mut [u8], at: usize, width: usize, number: u64) {
    let places = bytes.iter_mut().skip(at).take(width);
    for (place, byte) in places.zip(number.to_le_bytes()) {
        *place = byte;
    }
}
