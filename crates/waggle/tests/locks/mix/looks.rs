//! Reads the lock waits of a server.

use std::collections::BTreeMap;
use std::path::Path;

use waggle_model::Flavour;
use waggle_mysql::locks::{About, Locks, Wait, in_memory};
use waggle_probes::servers::discover::servers;
use waggle_probes::servers::recognise::Builds;
use waggle_probes::sessions::{Limits, LockReader, Sampler, Sessions, TEXT_LIMIT, TEXTS_LIMIT};
use waggle_testkit::Server;

use super::model::Object;
use super::statements;

/// All waits by the connection id of the waiter, and what could not be determined.
pub(super) type Looking = Box<dyn FnMut() -> (BTreeMap<u64, Wait>, Vec<String>)>;

/// Looks at the locks of a server as `waggle locks` does.
pub(super) fn looking(server: &Server) -> Looking {
    let found = servers(Path::new("/proc")).into_iter().find(|found| found.pid == server.pid());
    let it = Builds::default().recognise(&found.unwrap()).unwrap();
    let sampler = Sampler::load().unwrap();
    let mut sessions = Sessions::of(&it.layout).unwrap();
    let mut reader = LockReader::of(&it.layout).unwrap();
    let flavour = if server.version().is_mariadb() { Flavour::Mariadb } else { Flavour::Mysql };
    Box::new(move || {
        let limits = Limits { text: TEXT_LIMIT, texts: TEXTS_LIMIT, start_to_monotonic: &|_| None };
        sampler.sample(&it.instance, &mut sessions, limits).unwrap();
        let seen = reader.look(&it.instance, &sessions).unwrap();
        let locks = in_memory(&seen, flavour, &|_| About::default());
        (waits(&locks), locks.not_known)
    })
}

/// All waits of a look, by connection id.
fn waits(locks: &Locks) -> BTreeMap<u64, Wait> {
    let all = locks.tree.waits().into_iter();
    all.filter_map(|wait| Some((wait.waiter.connection_id()?, wait))).collect()
}

/// Whether this is the name of an object.
pub(super) fn is_object(object: Object, called: &str) -> bool {
    match object {
        Object::Row(_) | Object::Gaps(_) => called == "shop.t",
        Object::Table(number) => called == format!("shop.{}", statements::table(number)),
        Object::Name(number) => called.ends_with(&format!("job {number}")),
        Object::Server => !called.contains("shop"),
    }
}
