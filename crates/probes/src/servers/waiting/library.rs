//! How the frames of the C library of a process are left.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::{Library, ROWS_MAX, UnwindRow};
use crate::servers::elf::{Elf, Frame, Unwind, open_file};
use crate::servers::opened::OpenFile;

/// The functions that wait for a condition.
const CONDITIONS: [&str; 3] =
    ["pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait"];

/// The C library among the files that may be it.
pub(in crate::servers) fn library_of(files: &[OpenFile]) -> Result<Library, String> {
    let mut why = "the process maps no C library that waggle knows".to_owned();
    for file in files {
        let opened = Elf::opened(file.name.clone(), Arc::clone(&file.file));
        let elf = opened.map_err(|error| error.to_string());
        match elf.and_then(|elf| read(&elf, file.start)) {
            Ok(library) => return Ok(library),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// The same for one file that a process has mapped at `start`. Only for tests.
///
/// # Errors
///
/// In words, where it tells too little.
pub fn library_at(path: &Path, start: u64) -> Result<Library, String> {
    let name = path.display().to_string();
    let file = open_file(path).map_err(|error| format!("{name}: {error}"))?;
    library_of(&[OpenFile { name, file: Arc::new(file), start }])
}

/// The library of a file that a process has mapped at `start`.
pub(in crate::servers) fn read(elf: &Elf, start: u64) -> Result<Library, String> {
    let name = elf.name();
    // Before glibc 2.34 they are in its thread library.
    let mut conditions = HashSet::new();
    elf.for_each_symbol(|name, symbol| {
        if CONDITIONS.iter().any(|condition| condition.as_bytes() == name) {
            conditions.insert(symbol.address);
        }
    });
    if conditions.is_empty() {
        return Err(format!("{name} does not export {}", CONDITIONS[0]));
    }
    let unwind = Unwind::of(elf)?;
    let mut rows = Vec::new();
    for begin in unwind.begins() {
        let Some(of_function) = unwind.rows(begin) else { continue };
        let is_condition = conditions.contains(&begin);
        let of_function =
            of_function.into_iter().filter_map(|(at, frame)| row(at, frame, is_condition));
        add(&mut rows, of_function);
        if rows.len() > ROWS_MAX {
            return Err(format!("{name} describes more than {ROWS_MAX} frames"));
        }
    }
    let last = rows.last().map_or(0, |row: &UnwindRow| row.begin);
    if last == 0 {
        return Err(format!("{name} describes no frame"));
    }
    let base = start.wrapping_sub(elf.first_address());
    Ok(Library { base, bytes: last, rows: Arc::new(rows) })
}

fn row(at: u64, frame: Option<Frame>, is_condition: bool) -> Option<UnwindRow> {
    let begin = u32::try_from(at).ok()?;
    let unknown =
        UnwindRow { begin, offset: 0, saved: 0, from_frame_pointer: false, is_condition: false };
    let known = frame.and_then(|frame| {
        let saved = frame.saved.unwrap_or(0);
        Some(UnwindRow {
            begin,
            offset: u16::try_from(frame.offset).ok()?,
            saved: u8::try_from(saved / 8).ok().filter(|_| saved % 8 == 0)?,
            from_frame_pointer: frame.from_frame_pointer,
            is_condition,
        })
    });
    Some(known.unwrap_or(unknown))
}

/// Adds the rows of the next function. What the one before says of places behind this begin, such as its end, does not
/// hold, and neither does what a function says behind its end.
fn add(rows: &mut Vec<UnwindRow>, of_function: impl Iterator<Item = UnwindRow>) {
    for row in of_function {
        while rows.last().is_some_and(|last| last.begin >= row.begin) {
            rows.pop();
        }
        rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::opened::Opened;

    #[test]
    fn a_function_ends_where_the_next_one_begins() {
        let row = |begin| UnwindRow {
            begin,
            offset: 8,
            saved: 0,
            from_frame_pointer: false,
            is_condition: false,
        };
        let mut rows = Vec::new();
        // The first describes more than its length, and the second begins inside of it.
        add(&mut rows, [10, 12, 20, 30, 15].map(row).into_iter());
        add(&mut rows, [11, 18].map(row).into_iter());
        let begins: Vec<u32> = rows.iter().map(|row| row.begin).collect();
        assert_eq!(begins, [10, 11, 18]);
    }

    #[test]
    fn our_own_c_library_is_described() {
        let opened = Opened::of(std::process::id()).unwrap();
        let library = library_of(&opened.libraries).unwrap();
        assert!(library.rows.is_sorted_by_key(|row| row.begin));
        assert!(library.rows.iter().any(|row| row.is_condition && row.offset > 8));
        assert!(library_of(&[]).is_err());
    }
}
