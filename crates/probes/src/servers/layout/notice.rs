//! What the notice of a connection reveals that MySQL 5.7 and 8 give to audit plugins
//! (`mysql_audit_notify`).
//!
//! It is a `mysql_event_connection` on the stack. Plugins are compiled against that structure
//! (`include/mysql/plugin_audit.h`), so the places in it are fixed.

use std::collections::BTreeMap;

use super::shape::Offsets;
use crate::servers::arch::{Term, Trace};

const SESSION: Term = Term::Argument(0);
/// Where the notice has its strings, each a pointer with the length behind it.
const USER: i64 = 0x10;
const HOST: i64 = 0x50;
const ADDRESS: i64 = 0x60;

/// The user in the context.
pub(super) fn user(trace: &Trace) -> Offsets {
    strings(trace, USER)
}

/// The host in the context.
pub(super) fn host(trace: &Trace) -> Offsets {
    strings(trace, HOST)
}

/// The address in the context.
pub(super) fn address(trace: &Trace) -> Offsets {
    strings(trace, ADDRESS)
}

fn strings(trace: &Trace, wanted: i64) -> Offsets {
    let one = |notice: &BTreeMap<i64, Term>| {
        let (context, ..) = notice.get(&USER)?.load()?;
        context.field_of(&SESSION, 8)?;
        let string = |at: i64| {
            let text = notice.get(&at)?.field_of(context, 8)?;
            let length = notice.get(&(at + 8))?.field_of(context, 8)?;
            (length == text + 8).then_some(text)
        };
        let is_whole = [USER, HOST, ADDRESS].iter().all(|at| string(*at).is_some());
        is_whole.then(|| string(wanted))?
    };
    trace.lent().filter_map(one).collect()
}
