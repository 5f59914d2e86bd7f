//! An option on the command line of a server, and whether a server reads it as it was written.

use std::iter;

/// What is written as `--name=value`, as `--name` for `ON`, or as `--skip-name` for `OFF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerOption<'a> {
    /// Without dashes and `loose-`, with `_` for `-`: as a variable of the server is called.
    pub(crate) name: String,
    pub(crate) value: Option<&'a str>,
}

/// The variable of an option where it does not read as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) variable: String,
    pub(crate) found: String,
}

impl<'a> ServerOption<'a> {
    pub(crate) fn of(written: &'a str) -> ServerOption<'a> {
        let (name, value) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (written, None),
        };
        let name = name.trim_start_matches('-').to_lowercase().replace('-', "_");
        let known = name.strip_prefix("loose_");
        ServerOption { name: known.unwrap_or(&name).to_owned(), value }
    }

    /// Whether it sets a variable to a value.
    pub(crate) fn sets(&self, variable: &str, value: &str) -> bool {
        self.meanings().any(|(name, wanted)| name == variable && is_same(wanted, value))
    }

    /// The variables that it may belong to, and what each is to be.
    fn meanings(&self) -> impl Iterator<Item = (&str, &str)> {
        let skipped = self.name.strip_prefix("skip_").map(|name| (name, "OFF"));
        iter::once((self.name.as_str(), self.value.unwrap_or("ON"))).chain(skipped)
    }

    /// Against what a server says of its variables. `None` where none of them belongs to the option.
    pub(crate) fn against(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Result<(), Difference>> {
        self.meanings().find_map(|(name, wanted)| {
            let found = variable(name)?;
            let difference = || Difference { variable: name.to_owned(), found: found.clone() };
            Some(if is_same(wanted, &found) { Ok(()) } else { Err(difference()) })
        })
    }
}

/// Whether a variable reads as it was written: `ON` may be `1`, `1K` is `1024`, and `10` is `10.000000`.
pub(crate) fn is_same(wanted: &str, found: &str) -> bool {
    let of = |text: &str| match text.trim().to_ascii_uppercase().as_str() {
        "ON" | "TRUE" => "1".to_owned(),
        "OFF" | "FALSE" => "0".to_owned(),
        text => text.to_owned(),
    };
    let fraction = |text: &str| text.parse::<f64>().ok();
    let (wanted, found) = (of(wanted), of(found));
    match (number(&wanted), number(&found)) {
        (Some(one), Some(other)) => one == other,
        _ => wanted == found || fraction(&wanted).is_some_and(|it| fraction(&found) == Some(it)),
    }
}

/// A number with a suffix as the servers read it (MySQL 9 manual, section 6.2.2.5).
fn number(text: &str) -> Option<u64> {
    const SUFFIXES: [(char, u32); 6] =
        [('K', 10), ('M', 20), ('G', 30), ('T', 40), ('P', 50), ('E', 60)];
    let suffix =
        SUFFIXES.iter().find_map(|(suffix, bits)| Some((text.strip_suffix(*suffix)?, bits)));
    let (digits, bits) = suffix.unwrap_or((text, &0));
    digits.parse::<u64>().ok()?.checked_shl(*bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_reads_as_it_was_written_or_as_the_server_writes_it() {
        for (wanted, found) in [
            ("ON", "ON"),
            ("off", "OFF"),
            ("1", "ON"),
            ("128M", "134217728"),
            ("1g", "1073741824"),
            ("10", "10.000000"),
        ] {
            assert!(is_same(wanted, found), "{wanted} {found}");
        }
        for (wanted, found) in [("ON", "OFF"), ("1100", "214"), ("O_DIRECT", "fsync"), ("1M", "1")]
        {
            assert!(!is_same(wanted, found), "{wanted} {found}");
        }
    }

    #[test]
    fn the_variable_of_an_option_is_found_however_the_option_is_written() {
        let there = |name: &str| match name {
            "performance_schema" | "skip_networking" => Some("ON".to_owned()),
            "innodb_buffer_pool_size" => Some("134217728".to_owned()),
            _ => None,
        };
        let differs = |variable: &str, found: &str| {
            Some(Err(Difference { variable: variable.to_owned(), found: found.to_owned() }))
        };
        for (option, expected) in [
            ("--performance-schema=ON", Some(Ok(()))),
            ("--performance_schema=1", Some(Ok(()))),
            ("--performance-schema", Some(Ok(()))),
            ("--performance-schema=OFF", differs("performance_schema", "ON")),
            ("--skip-performance-schema", differs("performance_schema", "ON")),
            ("--skip-networking", Some(Ok(()))),
            ("--loose-innodb-buffer-pool-size=128M", Some(Ok(()))),
            ("--innodb-buffer-pool-size=64M", differs("innodb_buffer_pool_size", "134217728")),
            ("--no-such-option=1", None),
        ] {
            assert_eq!(ServerOption::of(option).against(there), expected, "{option}");
        }
    }

    #[test]
    fn performance_schema_is_switched_off_in_several_ways() {
        let is_off = |option| ServerOption::of(option).sets("performance_schema", "OFF");
        for option in ["--skip-performance-schema", "--performance_schema=0"] {
            assert!(is_off(option), "{option}");
        }
        for option in ["--performance-schema", "--performance-schema=ON", "--skip-networking"] {
            assert!(!is_off(option), "{option}");
        }
    }

    #[test]
    fn an_option_that_the_server_need_not_know_is_told_apart() {
        assert_eq!(ServerOption::of("--loose_x=7").name, "x");
        assert_eq!(ServerOption::of("--max-connections=7").name, "max_connections");
    }
}
