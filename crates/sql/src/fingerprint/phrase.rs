//! The last step of a fingerprint: patterns over several words of the folded text.

use memchr::memmem;

/// How many `SELECT`s of one arm of a union are tried as its beginning; a bound on the time.
const BEGINNINGS: usize = 8;

/// Arms of a union that repeat the one before become `/*repeat union*/`.
pub(super) fn fold_unions(text: &[u8], out: &mut Vec<u8>) {
    let (mut written, mut from) = (0, 0);
    while let Some(found) = find(text, from, b" union") {
        from = found + b" union".len();
        let Some((mark, end)) = repeated(text, written, found) else { continue };
        copy(text, written, found, out);
        out.extend_from_slice(b" /*repeat");
        out.extend_from_slice(mark);
        out.extend_from_slice(b"*/");
        (written, from) = (end, end);
    }
    copy(text, written, text.len(), out);
}

/// The mark of the last repetition and its end, where the arm before `union` is repeated after it.
fn repeated(text: &[u8], after: usize, union: usize) -> Option<(&[u8], usize)> {
    let before = text.get(after..union)?;
    let from = memmem::rfind(before, b" union").unwrap_or(0);
    let arm = before.get(from..)?;
    memmem::find_iter(arm, b"select ").take(BEGINNINGS).find_map(|at| {
        let inside = at.checked_sub(1).and_then(|before| arm.get(before));
        if inside.is_some_and(|byte| is_word(*byte)) {
            return None;
        }
        let whole = arm.get(at..)?;
        let (mut end, mut last) = (union, None);
        while let Some((mark, behind)) = union_at(text, end)
            && text.get(behind..).is_some_and(|next| next.starts_with(whole))
        {
            (end, last) = (behind + whole.len(), Some(mark));
        }
        last.map(|mark| (mark, end))
    })
}

/// ` union` or ` union all` where it stands at `at`, and the place after it and its blank.
fn union_at(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = text.get(at..)?;
    let marks: [&[u8]; 2] = [b" union all ", b" union "];
    let mark = marks.into_iter().find(|mark| rest.starts_with(mark))?;
    Some((rest.get(..mark.len() - 1)?, at + mark.len()))
}

/// The first `limit ?, ?` or `limit ? offset ?` becomes `limit ?`.
pub(super) fn fold_limits(text: &[u8], out: &mut Vec<u8>) {
    const LIMIT: &[u8] = b"limit ?";
    const MORE: [&[u8]; 3] = [b", ?", b",?", b" offset ?"];
    let first = memmem::find_iter(text, LIMIT).find(|at| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        !before.is_some_and(|byte| is_word(*byte))
    });
    let end = first.map_or(text.len(), |at| at + LIMIT.len());
    let rest = text.get(end..).unwrap_or_default();
    let more = MORE.into_iter().find(|more| rest.starts_with(more)).map_or(0, <[u8]>::len);
    copy(text, 0, end, out);
    copy(text, end + more, text.len(), out);
}

/// ` asc` after `order by` and something goes: it is the default.
pub(super) fn drop_ascending(text: &[u8], out: &mut Vec<u8>) {
    const ORDER: &[u8] = b"order by ";
    const ASCENDING: &[u8] = b" asc";
    let Some(order) = find(text, 0, ORDER) else {
        return copy(text, 0, text.len(), out);
    };
    let (mut written, mut from) = (0, order + ORDER.len() + 1);
    while let Some(found) = find(text, from, ASCENDING) {
        copy(text, written, found, out);
        from = found + ASCENDING.len();
        written = from;
    }
    copy(text, written, text.len(), out);
}

fn find(text: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    memmem::find(text.get(from..)?, needle).map(|found| from + found)
}

fn copy(text: &[u8], from: usize, to: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(text.get(from..to).unwrap_or_default());
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
