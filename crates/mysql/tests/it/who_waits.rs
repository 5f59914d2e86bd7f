//! The page of all states of waiting.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use waggle_model::{WaitingState, waiting_states};
use waggle_mysql::locks::LockKind;

const PAGE: &str = "../../docs/reference/who-waits.md";
/// What `PROCESSLIST` showed on real servers: a state, a tab, and the versions.
const SEEN: &str = include_str!("who_waits_seen.tsv");

const BEGIN: &str = "\
# Who waits: the states of sessions

A server says by the state of a session that it waits. This is the one list of all states that waggle knows, for `waggle locks`, the
view of `waggle watch` and their JSON. A test writes it from the table in `crates/model/src/waiting.rs`, and another one compares that
table with the stages that each server knows.

InnoDB has no state for a wait for a row: waggle sees it at the thread, in the memory of the server, or, with an account, by SQL.
A session that InnoDB does not let in (`innodb_thread_concurrency`) has no such state either: it is of the kind `none`, by its thread. An
account alone only tells when more statements run than InnoDB lets in; then it is *not known* whether one of them waits.
A state that is not in the list counts as a lock if it begins with `Waiting`: as `metadata` where it ends with `metadata lock`, else as
`other`.

| kind | how waggle finds the holder |
|---|---|
| `metadata` | by `performance_schema.metadata_locks`, or `METADATA_LOCK_INFO` of MariaDB; without an account in the memory of the server |
| `table` | not at all: no server says who locks a table of an engine without row locks |
| `flush` | by `performance_schema.table_handles`, which says who has a table open; else it lists the statements that run as possible holders |
| `replication` | among the workers of the channel, if only one of them can be the holder |
| `other` | not at all: it is a lock, and no server says who holds it |
| `none` | there is no holder, because it is no lock. `waggle locks` says what the session waits for. If nobody waits for a lock, its exit code is 4 |
| - | there is no holder: the session waits for work, for a time, or for another server. Nobody holds it up |

*Seen on*: the servers whose list of sessions showed the state, either in the tests of `waggle locks` and of replication, or when we made
it by hand. All other states are known from the sources only.
";

fn kind(state: &WaitingState) -> String {
    let kind = LockKind::of(state.waits_for).map(|kind| serde_json::to_value(kind).unwrap());
    kind.map_or("-".to_owned(), |kind| format!("`{}`", kind.as_str().unwrap()))
}

fn page() -> String {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for line in SEEN.lines() {
        let (state, versions) = line.split_once('\t').unwrap();
        assert!(seen.insert(state.to_ascii_lowercase(), versions).is_none(), "twice: {state}");
    }
    let (mut page, mut source) = (BEGIN.to_owned(), "");
    for state in waiting_states() {
        if state.source != source {
            source = state.source;
            page += &format!(
                "\n**{source}**\n\n| state | kind | waits for | seen on |\n|---|---|---|---|\n"
            );
        }
        let seen = seen.remove(&state.name.to_ascii_lowercase()).unwrap_or("source");
        let whom = state.waits_for.whom();
        page += &format!("| {} | {} | {whom} | {seen} |\n", state.name, kind(&state));
    }
    assert!(seen.is_empty(), "seen, and not in the table: {seen:?}");
    page
}

#[test]
fn the_page_of_all_states_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "write {PAGE} anew: UPDATE=1 cargo test -p waggle-mysql who_waits");
}
