//! Which counters the user means.

use std::collections::BTreeSet;

use super::modules::{has_switch, module_called, module_of};
use crate::pattern::fits;
use crate::state::Key;
use crate::statements::switch_of;
use crate::table::PAGE_COUNTERS;

/// Why a word selects nothing that can be switched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// Nothing is called so.
    #[error(
        "`{0}` is no counter, module or subsystem of this server, and no pattern that fits one; \
         `waggle innodb status -v` lists them"
    )]
    Unknown(String),
    /// Some of the page counters.
    #[error(
        "`{word}` names {named} of the {total} page counters, and they switch together only; write \
         module_buffer_page"
    )]
    PartOfPages {
        /// The word.
        word: String,
        /// How many of them it names.
        named: usize,
        /// How many there are.
        total: usize,
    },
    /// The latches.
    #[error(
        "`{0}` cannot be switched by waggle: whether it is on stands in no table, so that it could \
         not be set back"
    )]
    Hidden(String),
}

/// Whether a word selects a counter: `all`, a module, a subsystem, a name, or a pattern in which
/// `%` matches any characters.
pub fn means(word: &str, subsystem: &str, name: &str) -> bool {
    word == "all"
        || module_called(word).is_some_and(|module| module_of(subsystem, name) == Some(module))
        || subsystem.eq_ignore_ascii_case(word)
        || fits(name, word)
}

/// The counters that words select.
///
/// # Errors
/// A word means none, or some of those that switch together only.
pub fn choose(counters: &[Key], words: &[String]) -> Result<BTreeSet<Key>, SelectionError> {
    let pages = counters.iter().filter(|key| key[0] == PAGE_COUNTERS).count();
    let mut chosen = BTreeSet::new();
    for word in words {
        let is_meant = |key: &&Key| means(word, &key[0], &key[1]);
        let meant: Vec<&Key> = counters.iter().filter(is_meant).collect();
        let pages_meant = meant.iter().filter(|key| key[0] == PAGE_COUNTERS).count();
        if meant.is_empty() && matches!(word.as_str(), "latch" | "latch_status") {
            return Err(SelectionError::Hidden(word.clone()));
        }
        if meant.is_empty() {
            return Err(SelectionError::Unknown(word.clone()));
        }
        if pages_meant != 0 && pages_meant != pages {
            let word = word.clone();
            return Err(SelectionError::PartOfPages { word, named: pages_meant, total: pages });
        }
        chosen.extend(meant.into_iter().cloned());
    }
    Ok(chosen)
}

/// The fewest words that make a server switch these counters: whole modules, and names. A line of
/// an option file has room for 4,095 bytes (`mysys_ssl/my_default.cc`), too few for the names of
/// all counters. `all` would also turn on the latches, which are in no table.
pub fn words_for<'a>(counters: &[Key], chosen: &'a BTreeSet<Key>) -> Vec<&'a str> {
    let module = |key: &Key| module_of(&key[0], &key[1]).filter(|module| has_switch(module));
    let is_whole = |one: &'static str| {
        counters.iter().filter(|key| module(key) == Some(one)).all(|key| chosen.contains(key))
    };
    let mut words = Vec::new();
    for key in chosen {
        let whole = module(key).filter(|module| is_whole(module));
        let word = whole.unwrap_or_else(|| switch_of(&key[0], &key[1]));
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<Key> {
        [
            ("lock", "lock_deadlocks"),
            ("lock", "lock_timeouts"),
            ("server", "buffer_pool_size"),
            ("Buffer", "buffer_LRU_get_free_search"),
            ("buffer_page_io", "buffer_page_read_blob"),
            ("buffer_page_io", "buffer_page_read_zblob"),
            ("server", "innodb_page_size"),
        ]
        .map(|(subsystem, name)| vec![subsystem.to_owned(), name.to_owned()])
        .into()
    }

    fn names(words: &[&str]) -> Result<Vec<String>, SelectionError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let chosen = choose(&keys(), &words)?;
        Ok(chosen.into_iter().map(|key| key[1].clone()).collect())
    }

    #[test]
    fn a_counter_a_module_a_subsystem_a_pattern_and_all() {
        let found = |words: &[&str]| names(words).unwrap();
        assert_eq!(found(&["lock_timeouts"]), ["lock_timeouts"]);
        assert_eq!(found(&["module_lock"]), ["lock_deadlocks", "lock_timeouts"]);
        assert_eq!(found(&["module_buffer"]), ["buffer_LRU_get_free_search", "buffer_pool_size"]);
        assert_eq!(found(&["module_srv"]), ["innodb_page_size"]);
        assert_eq!(found(&["server"]), ["buffer_pool_size", "innodb_page_size"]);
        assert_eq!(found(&["lock_d%", "%_size"]).len(), 3);
        assert_eq!(found(&["all"]).len(), 7);
        assert_eq!(found(&["module_buf_page"]).len(), 2);
    }

    #[test]
    fn what_is_chosen_whole_is_named_by_its_module() {
        let chosen = choose(&keys(), &["module_lock".to_owned(), "server".to_owned()]).unwrap();
        // Of the buffers only one counter is chosen, and of the server all that are its own.
        assert_eq!(
            words_for(&keys(), &chosen),
            ["module_lock", "buffer_pool_size", "module_innodb"]
        );
        let pages = choose(&keys(), &["buffer_page_io".to_owned()]).unwrap();
        assert_eq!(words_for(&keys(), &pages), ["module_buffer_page"]);
        let cpu: Vec<Key> = vec![vec!["cpu".to_owned(), "cpu_n".to_owned()]];
        assert_eq!(words_for(&cpu, &cpu.iter().cloned().collect()), ["cpu_n"], "no module");
    }

    #[test]
    fn what_cannot_be_switched_is_refused_with_the_reason() {
        let why = |word: &str| names(&["all", word]).unwrap_err().to_string();
        assert!(why("buffer_page_read_blob").contains("names 1 of the 2 page counters"));
        assert!(why("%_zblob").contains("write module_buffer_page"));
        assert!(why("lock_deadlock").contains("`lock_deadlock` is no counter"));
        assert!(why("module_dml").contains("no counter, module"));
        assert!(why("latch_status").contains("stands in no table"));
    }
}
