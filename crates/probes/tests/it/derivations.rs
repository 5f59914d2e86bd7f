//! The table of `docs/reference/fields.md`: from which functions of which build each field comes.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use waggle_probes::servers::elf::Elf;
use waggle_probes::servers::layout::{Field, Source};

use crate::layout::binaries;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fields.md");

const HEAD: &str = "\
# Where the fields of a session come from

Generated from the servers of the tests; `UPDATE=1 cargo test -p waggle-probes --test it derivations` writes it.

waggle decodes each field from functions that a build exports. All ways that find something must agree; without any, the field is
absent and the capture goes on ([what then](../../crates/probes/src/tap/README.md)).

## How many ways

Ways that share neither function nor pattern; **one** hangs on a single function.

";

const WAYS: &str = "\
## The ways

`+`: found; `?`: exported, but its code has another shape; empty: not exported.

";

/// The ways of every build, in the order of [`binaries`].
fn builds() -> &'static [Vec<Source>] {
    static BUILDS: OnceLock<Vec<Vec<Source>>> = OnceLock::new();
    BUILDS.get_or_init(|| {
        binaries().iter().map(|(_, path)| Source::all(&Elf::open(path).unwrap())).collect()
    })
}

/// Those that show the field.
fn found(sources: &[Source], field: Field) -> Vec<&Source> {
    sources.iter().filter(|source| source.field == field && source.offset.is_some()).collect()
}

fn heading(page: &mut String, first: &str) {
    let names = binaries().iter().map(|(version, _)| version.name());
    let names: Vec<&str> = names.collect();
    let _ = writeln!(page, "| {first} | {} |", names.join(" | "));
    let _ = writeln!(page, "|{}", "---|".repeat(names.len() + first.split('|').count()));
}

/// The most ways of which no two share anything, up to two.
fn independent(sources: &[&Source]) -> usize {
    let pair = sources.iter().any(|one| sources.iter().any(|other| one.is_independent_of(other)));
    if pair { 2 } else { sources.len().min(1) }
}

fn page(builds: &[Vec<Source>]) -> String {
    let mut page = HEAD.to_owned();
    heading(&mut page, "field");
    for field in Field::ALL {
        let _ = write!(page, "| `{}` |", field.name());
        for sources in builds {
            let count = ["**none**", "**one**", "two or more"][independent(&found(sources, field))];
            let _ = write!(page, " {count} |");
        }
        page.push('\n');
    }
    page.push('\n');
    page.push_str(WAYS);
    heading(&mut page, "field | function | pattern");
    let mut ways: Vec<(Field, &str, &str)> = Vec::new();
    for source in builds.iter().flatten() {
        let way = (source.field, source.symbol, source.shape);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways.sort();
    for (field, symbol, shape) in ways {
        let _ = write!(page, "| `{}` | `{symbol}` | `{shape}` |", field.name());
        for sources in builds {
            let one = sources
                .iter()
                .find(|one| (one.field, one.symbol, one.shape) == (field, symbol, shape));
            let mark = one.map_or("", |one| if one.offset.is_some() { "+" } else { "?" });
            let _ = write!(page, " {mark} |");
        }
        page.push('\n');
    }
    page
}

#[test]
fn the_page_says_from_which_functions_each_field_comes() {
    let now = page(builds());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PAGE, &now).unwrap();
    }
    let kept = fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
    assert_eq!(kept, now, "run UPDATE=1 cargo test -p waggle-probes --test it derivations");
}

#[test]
fn no_field_of_any_build_hangs_on_a_single_function() {
    for ((version, _), sources) in binaries().iter().zip(builds()) {
        for field in Field::ALL {
            let ways = found(sources, field);
            assert_eq!(independent(&ways), 2, "{version}: {}: {ways:?}", field.name());
        }
    }
}
