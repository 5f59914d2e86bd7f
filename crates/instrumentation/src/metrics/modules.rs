//! The modules of InnoDB counters, and the subsystems that they switch.

/// A module: one name for all counters of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name, as `innodb_monitor_enable` takes it.
    pub name: &'static str,
    /// The name that the MySQL manual gives it, where the server does not know that one.
    pub in_manual: Option<&'static str>,
    /// The value of the column `SUBSYSTEM` for its counters: on older and on newer servers.
    pub subsystems: &'static [&'static str],
}

const fn module(name: &'static str, subsystems: &'static [&'static str]) -> Module {
    Module { name, in_manual: None, subsystems }
}

/// Every module of the servers from MySQL 5.7 to 9 and MariaDB 10.11 to 11.4, in the order of their
/// counters. A server has some of them. Source: `innodb_counter_info` in
/// `storage/innobase/srv/srv0mon.cc`; a test switches each on every server and looks what changes.
///
/// The last three are no modules to the server ([`has_switch`]), which has a counter of that name and no switch for
/// the whole; waggle switches their counters one by one.
pub const MODULES: [Module; 22] = [
    module("module_metadata", &["metadata"]),
    module("module_lock", &["lock"]),
    module("module_buffer", &["buffer"]),
    Module {
        in_manual: Some("module_buf_page"),
        ..module("module_buffer_page", &["buffer_page_io"])
    },
    module("module_os", &["os"]),
    module("module_trx", &["transaction"]),
    module("module_purge", &["purge"]),
    module("module_undo", &["undo"]),
    module("module_log", &["recovery", "log"]),
    module("module_compress", &["compression"]),
    module("module_index", &["index"]),
    module("module_adaptive_hash", &["adaptive_hash_index"]),
    module("module_file", &["file_system"]),
    module("module_ibuf_system", &["change_buffer"]),
    Module { in_manual: Some("module_srv"), ..module("module_innodb", &["server"]) },
    module("module_dml", &["dml"]),
    module("module_sampling", &["sampling"]),
    module("module_ddl", &["ddl"]),
    module("module_icp", &["icp"]),
    module("module_cpu", &["cpu"]),
    module("module_page_track", &["page_track"]),
    module("module_dblwr", &["dblwr"]),
];

/// Those of [`MODULES`] that no server has a switch for.
const WITHOUT_SWITCH: [&str; 3] = ["module_cpu", "module_page_track", "module_dblwr"];

/// Whether servers switch the counters of a module together.
pub(crate) fn has_switch(module: &str) -> bool {
    !WITHOUT_SWITCH.contains(&module)
}

/// The module that a counter belongs to; `None` if it is in none.
pub fn module_of(subsystem: &str, name: &str) -> Option<&'static str> {
    // The one counter that its module does not share the subsystem with.
    if name == "buffer_pool_size" {
        return Some("module_buffer");
    }
    let holds = |module: &&Module| {
        module.subsystems.iter().any(|known| known.eq_ignore_ascii_case(subsystem))
    };
    MODULES.iter().find(holds).map(|module| module.name)
}

/// The module of this name, as the server or as the manual writes it.
pub(crate) fn module_called(name: &str) -> Option<&'static str> {
    let is_called = |module: &&Module| module.name == name || module.in_manual == Some(name);
    MODULES.iter().find(is_called).map(|module| module.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_its_subsystem_whatever_the_letters_and_one_counter_of_another() {
        assert_eq!(module_of("Buffer", "buffer_LRU_get_free_search"), Some("module_buffer"));
        assert_eq!(module_of("server", "buffer_pool_size"), Some("module_buffer"));
        assert_eq!(module_of("server", "innodb_page_size"), Some("module_innodb"));
        assert_eq!(module_of("recovery", "x"), module_of("log", "x"));
        assert_eq!(module_of("sync", "latch"), None);
        assert_eq!(module_called("module_srv"), Some("module_innodb"));
    }
}
