//! The functions of the kernel.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Most functions that are kept; a kernel has some hundred thousand.
const FUNCTIONS_MAX: usize = 2_000_000;

/// Where each function of the kernel and its modules begins (`/proc/kallsyms`).
#[derive(Clone, Debug, Default)]
pub struct KernelFunctions {
    /// In the order of their addresses.
    begins: Vec<(u64, Box<str>)>,
}

impl KernelFunctions {
    /// Reads them; none where the kernel does not tell us their addresses (`kernel.kptr_restrict`).
    pub fn read() -> KernelFunctions {
        let file = File::open("/proc/kallsyms").map(BufReader::new);
        let lines = file.into_iter().flat_map(|file| file.lines().map_while(Result::ok));
        KernelFunctions::of(lines)
    }

    /// Of lines such as `ffffffff81000000 T _stext` (proc_kallsyms(5)).
    fn of(lines: impl Iterator<Item = String>) -> KernelFunctions {
        let function = |line: String| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|at| *at != 0)?;
            let kind = words.next()?;
            matches!(kind, "t" | "T" | "w" | "W")
                .then(|| Some((address, words.next()?.into())))
                .flatten()
        };
        let mut begins: Vec<(u64, Box<str>)> =
            lines.filter_map(function).take(FUNCTIONS_MAX).collect();
        begins.sort();
        KernelFunctions { begins }
    }

    /// The function that has an address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.begins.partition_point(|(begin, _)| *begin <= address);
        self.begins.get(after.checked_sub(1)?).map(|(_, name)| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> KernelFunctions {
        KernelFunctions::of(text.lines().map(str::to_owned))
    }

    #[test]
    fn an_address_has_the_function_that_begins_before_it() {
        let functions =
            of("ffff20 t second\nffff10 T first\nffff30 D data\nffff40 t third [module]\nx\n");
        assert_eq!(functions.name(0xffff10), Some("first"));
        assert_eq!(functions.name(0xffff3f), Some("second"));
        assert_eq!(functions.name(u64::MAX), Some("third"));
        assert_eq!(functions.name(0xffff0f), None);
    }

    #[test]
    fn addresses_that_are_not_told_are_no_functions() {
        assert_eq!(of("0000000000000000 T _stext\n").name(0x10), None);
    }
}
