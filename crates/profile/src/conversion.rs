//! How much is conversion of character sets.

use std::collections::HashMap;

use crate::profile::{Function, Profile};

/// Functions that convert text from one character set to another, or check and copy it on the way. They are part of the
/// library `strings` of the servers (`strings/ctype*.c` and `.cc`) and of their class `String` (`sql/sql_string.cc`,
/// `sql-common/sql_string.cc`); names without arguments. A `*` at the end stands for any end.
const CONVERT: [&str; 18] = [
    "my_convert*",
    "my_copy_fix*",
    "my_copy_with_hex_escaping",
    "my_well_formed_len*",
    "my_well_formed_char_length*",
    "well_formed_copy_nchars",
    "well_formed_copy",
    "copy_and_convert*",
    "convert_and_copy*",
    "convert_string*",
    "convert_to_printable*",
    "String::copy_and_convert*",
    "String_copier::*",
    "Binary_string::copy_and_convert*",
    "validate_string",
    "Item::check_well_formed_result",
    "THD::convert_string*",
    "THD::convert_with_error*",
];

/// Functions of one character: from a character set to Unicode, and from there to another. Comparing uses them, too.
const CHARACTERS: [&str; 14] = [
    "my_mb_wc*",
    "my_wc_mb*",
    "my_wc_to_printable*",
    "my_utf16_uni",
    "my_uni_utf16",
    "my_utf32_uni",
    "my_uni_utf32",
    "my_ucs2_uni",
    "my_uni_ucs2",
    "my_utf8_uni*",
    "my_uni_utf8*",
    "my_valid_mbcharlen*",
    "my_mbcharlen*",
    "my_ismbchar_utf8*",
];

/// Functions that compare, sort or change letters: below them a character is read, and nothing is converted.
const COMPARE: [&str; 12] = [
    "my_strnncoll*",
    "my_strnxfrm*",
    "my_hash_sort*",
    "my_wildcmp*",
    "my_strcasecmp*",
    "my_like_range*",
    "my_caseup*",
    "my_casedn*",
    "my_uca_*",
    "my_instr*",
    "my_numchars*",
    "my_charpos*",
];

/// A function that converts, or only copies where both character sets are one: then it calls the C library. Some builds
/// have names of none of the functions below it.
const COPY: &str = "String::copy";
/// How often its arguments name the type of a character set, in any build.
const CHARACTER_SET: &str = "charset_info";

/// What conversion used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// Samples within it.
    pub samples: u64,
    /// Its outermost functions (indices) with their samples, the most first.
    pub functions: Vec<(usize, u64)>,
}

/// Whether a function converts text from one character set to another.
pub fn is_conversion(function: &Function) -> bool {
    is_one_of(function, &CONVERT)
}

/// Whether a function converts or copies.
fn converts_or_copies(function: &Function) -> bool {
    function.base_name() == COPY && function.name.to_lowercase().matches(CHARACTER_SET).count() >= 2
}

fn is_one_of(function: &Function, patterns: &[&str]) -> bool {
    let name = function.base_name();
    !function.is_kernel
        && patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == *pattern,
        })
}

/// What a function has to do with character sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Converts,
    ConvertsOrCopies,
    Character,
    Compares,
    Other,
}

impl Kind {
    fn of(function: &Function) -> Kind {
        let kinds = [
            (is_conversion(function), Kind::Converts),
            (converts_or_copies(function), Kind::ConvertsOrCopies),
            (is_one_of(function, &CHARACTERS), Kind::Character),
            (is_one_of(function, &COMPARE), Kind::Compares),
        ];
        kinds.into_iter().find(|(is, _)| *is).map_or(Kind::Other, |(_, kind)| kind)
    }
}

impl Profile {
    /// What conversion of character sets used: samples below a function that converts, or in one of single characters
    /// that nobody calls who compares.
    pub fn conversion(&self) -> Conversion {
        let kinds: Vec<Kind> = self.functions.iter().map(Kind::of).collect();
        let kind = |function: usize| kinds.get(function).copied().unwrap_or(Kind::Other);
        let mut samples = 0;
        let mut functions: HashMap<usize, u64> = HashMap::new();
        for stack in &self.stacks {
            let compares = stack.functions.iter().any(|one| kind(*one) == Kind::Compares);
            let converts = |at: usize, function: usize| match kind(function) {
                Kind::Converts => true,
                Kind::Character => !compares,
                Kind::ConvertsOrCopies => stack.functions.get(at + 1).is_some_and(|called| {
                    let called = self.functions.get(*called);
                    called.is_some_and(|called| !called.is_kernel && !called.is_of_c_library())
                }),
                Kind::Compares | Kind::Other => false,
            };
            let mut all = stack.functions.iter().enumerate();
            if let Some((_, outermost)) = all.find(|(at, function)| converts(*at, **function)) {
                samples += stack.count;
                *functions.entry(*outermost).or_default() += stack.count;
            }
        }
        let mut functions: Vec<(usize, u64)> = functions.into_iter().collect();
        functions.sort_unstable_by_key(|(function, count)| (std::cmp::Reverse(*count), *function));
        Conversion { samples, functions }
    }
}
