//! The table of sections, by which tools for symbols find the names.

const HEADER: usize = 64;
const SHT_STRTAB: u32 = 3;
const SHT_DYNSYM: u32 = 11;
const NAMES: &[u8] = b"\0.dynsym\0.dynstr\0.shstrtab\0";

/// Where the table is, and how many sections there are.
pub(super) struct Sections {
    at: u64,
    count: u8,
}

/// Adds the table behind what is there. Symbols and strings have an offset and a length.
pub(super) fn add(file: &mut Vec<u8>, symbols: (u64, u64), strings: (u64, u64)) -> Sections {
    let names = (file.len() as u64, NAMES.len() as u64);
    file.extend(NAMES);
    file.resize(file.len().next_multiple_of(8), 0);
    let at = file.len() as u64;
    // A name, a kind, a place, a link, and the size of an entry.
    let sections = [
        (0, 0, (0, 0), 0, 0),
        (1, SHT_DYNSYM, symbols, 2, 24),
        (9, SHT_STRTAB, strings, 0, 0),
        (17, SHT_STRTAB, names, 0, 0),
    ];
    let count = sections.len() as u8;
    for (name, kind, (offset, length), link, entry) in sections {
        let begin = file.len();
        file.extend([name, kind].iter().flat_map(|number| number.to_le_bytes()));
        file.extend([0, 0, offset, length].iter().flat_map(|number: &u64| number.to_le_bytes()));
        file.extend([link, 0_u32].iter().flat_map(|number| number.to_le_bytes()));
        file.extend([8, entry].iter().flat_map(|number: &u64| number.to_le_bytes()));
        debug_assert_eq!(file.len(), begin + HEADER);
    }
    Sections { at, count }
}

impl Sections {
    /// Says in the header of the file where they are.
    pub(super) fn write(&self, file: &mut [u8]) {
        file[40..48].copy_from_slice(&self.at.to_le_bytes());
        file[58..64].copy_from_slice(&[HEADER as u8, 0, self.count, 0, self.count - 1, 0]);
    }
}
