//! The kinds of the matrix, by topic.

mod background;
mod connections;
mod ends;
mod failures;
mod prepared;
mod results;
mod routines;
mod sessions;
mod texts;
mod transactions;

use waggle_testkit::Version;

use super::scene::Scene;
use super::talker::Talker;

/// Over which transports a kind runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// All of them.
    Each,
    /// The first, where the transport plays no part and time does.
    First,
}

/// How a kind runs.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// In a session that is opened for it, which goes on after it and then ends.
    InSession(fn(&mut Scene, &mut Talker)),
    /// In sessions that it opens itself.
    ByItself(fn(&mut Scene)),
}

impl Run {
    pub(crate) fn run(self, scene: &mut Scene) {
        match self {
            Run::ByItself(run) => run(scene),
            Run::InSession(run) => {
                let mut talker = scene.open();
                run(scene, &mut talker);
                talker.run("SELECT 'after'");
                talker.quit();
            }
        }
    }
}

/// One kind of statement, or of what surrounds it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    pub(crate) over: Over,
    /// Whether this server has the thing itself.
    pub(crate) needs: fn(&Scene) -> bool,
}

const fn each(name: &'static str, run: fn(&mut Scene, &mut Talker)) -> Kind {
    Kind { name, run: Run::InSession(run), over: Over::Each, needs: |_| true }
}

const fn by_itself(name: &'static str, run: fn(&mut Scene)) -> Kind {
    Kind { name, run: Run::ByItself(run), over: Over::Each, needs: |_| true }
}

const fn first(kind: Kind) -> Kind {
    Kind { over: Over::First, ..kind }
}

/// MySQL 8.0 removed the query cache.
pub(crate) fn has_query_cache(version: Version) -> bool {
    version == Version::Mysql57 || version.is_mariadb()
}

/// Every kind, in the order in which they run.
pub(crate) const KINDS: &[Kind] = &[
    by_itself("prepared before the attach", prepared::before_the_attach),
    each("SELECT of one row", results::one_row),
    each("SELECT of none", results::none),
    each("SELECT of 5 MB", results::megabytes),
    first(each("SELECT of 100 MB", results::hundred_megabytes)),
    each("SELECT of 50,000 small rows", results::many_rows),
    each("a client that reads slowly", results::slow_reader),
    each("rows examined and changed", results::examined),
    by_itself("results that end with an OK packet", results::deprecated_eof),
    Kind { needs: |scene| scene.query_cache, ..each("query-cache hit", results::query_cache) },
    each("error at parse and at run", failures::parse_and_run),
    each("error in the middle of a result", failures::in_a_result),
    each("killed query", ends::killed_query),
    each("killed query with an error", ends::killed_query_with_error),
    by_itself("killed connection", ends::killed_connection),
    by_itself("killed while idle", ends::killed_idle),
    by_itself("client gone", ends::client_gone),
    each("CALL with results and an UPDATE", routines::two_results),
    each("CALL without results", routines::silent),
    each("CALL that fails", routines::failing),
    each("CALL with a handler", routines::handler),
    each("CALL by COM_STMT_EXECUTE", routines::prepared),
    each("CALL into another database", routines::elsewhere),
    each("SQL SECURITY DEFINER", routines::definer),
    each("function and trigger", routines::function_and_trigger),
    each("SQL PREPARE, EXECUTE, DEALLOCATE", prepared::in_sql),
    each("COM_STMT_PREPARE, EXECUTE, CLOSE", prepared::binary),
    each("COM_STMT_EXECUTE that fails", prepared::failing),
    Kind { needs: Scene::is_mariadb, ..each("COM_STMT_BULK_EXECUTE", prepared::bulk) },
    each("cursor with FETCH", prepared::cursor),
    each("long data", prepared::long_data),
    each("5 in a packet, error in the third", texts::packet_with_error),
    each("USE inside a packet", texts::packet_with_use),
    each("LOAD DATA LOCAL", texts::load_data),
    each("text with zeros and invalid UTF-8", texts::odd_bytes),
    each("text with space, semicolon, comments", texts::space),
    each("text at the capture limit", texts::at_the_limit),
    each("statement of 3 MB", texts::megabytes),
    first(each("statement of 64 MiB", texts::sixty_four_mebibytes)),
    each("PING, INIT_DB, RESET, STATISTICS", sessions::commands),
    each("CHANGE_USER", sessions::change_user),
    each("databases whose names are as long", sessions::same_length),
    by_itself("a database that is dropped", sessions::dropped),
    by_itself("identity after a large result", sessions::after_a_large_result),
    by_itself("login refused", sessions::refused),
    each("autocommit and transactions", transactions::transactions),
    each("SET timestamp", transactions::timestamp),
    each("SHOW, SET, DDL", transactions::others),
    by_itself("binary log reader attached", background::binlog_reader),
    first(by_itself("event scheduler", background::event)),
    each("detached and attached again", sessions::attached_again),
    by_itself("50 connections", connections::fifty),
    first(by_itself("1,000 connections", connections::thousand)),
];
