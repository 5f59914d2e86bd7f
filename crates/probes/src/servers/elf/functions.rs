//! The begins of functions that no symbol names, from the table by which a debugger finds the frames of a
//! stack (`.eh_frame_hdr`; Linux Standard Base, core specification, section 10.6.2).

use super::{Elf, Unwind};

/// Where the functions of a file begin, in order.
pub(crate) struct Functions {
    begins: Vec<u64>,
}

impl Functions {
    /// Those of a file; none where it has no such table.
    pub(crate) fn of(elf: &Elf) -> Functions {
        let begins = Unwind::of(elf).map(|unwind| unwind.begins().collect());
        Functions { begins: begins.unwrap_or_default() }
    }

    /// The begin of the function that has an address, as far as that is known.
    pub(crate) fn begin(&self, address: u64) -> Option<u64> {
        let after = self.begins.partition_point(|begin| *begin <= address);
        self.begins.get(after.checked_sub(1)?).copied()
    }
}

impl Elf {
    /// The address at which the file wants what it has at an offset.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let skip = offset.checked_sub(segment.offset)?;
            (skip < segment.size_in_file).then(|| segment.address.checked_add(skip))?
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_function_of_our_own_begins_where_it_begins() {
        let elf = Elf::open(Path::new("/proc/self/exe")).unwrap();
        let functions = Functions::of(&elf);
        assert!(functions.begins.len() > 100, "{}", functions.begins.len());
        assert!(functions.begins.is_sorted());
        let middle = functions.begins[functions.begins.len() / 2];
        assert_eq!(functions.begin(middle), Some(middle));
        assert_eq!(functions.begin(functions.begins[0] - 1), None);
        assert!(functions.begin(u64::MAX).is_some());
    }

    #[test]
    fn an_offset_in_the_file_has_its_address() {
        let elf = Elf::open(Path::new("/proc/self/exe")).unwrap();
        let code = elf.segments.iter().find(|segment| segment.executable).unwrap();
        assert_eq!(elf.address_of(code.offset + 5), Some(code.address + 5));
        assert_eq!(elf.address_of(u64::MAX), None);
    }
}
