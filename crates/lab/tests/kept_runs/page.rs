//! Pages of which a part is written from the runs that are kept.

use std::fs;
use std::path::Path;

/// What stands before it is written by hand.
const MARK: &str = "<!-- From here on written by the command above. -->\n";

/// That a page has these sections after the mark; `UPDATE=1` writes them. `test` is the one that asks.
pub(crate) fn assert_written(page: &str, test: &str, sections: &[String]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (by_hand, generated) = text.split_once(MARK).unwrap();
    let now = match sections.is_empty() {
        true => "\nNo run is kept.\n".to_owned(),
        false => sections.iter().map(|section| format!("\n{section}")).collect(),
    };
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{by_hand}{MARK}{now}")).unwrap();
        return;
    }
    let differing = now.lines().zip(generated.lines()).find(|(now, kept)| now != kept);
    assert!(
        now == generated,
        "{page} is not what the runs say that are kept; run UPDATE=1 cargo test -p waggle-lab --test \
         {test} and commit the page; the first line that differs (runs, page): {differing:?}"
    );
}
