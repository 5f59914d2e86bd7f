//! Who waits for whom, read in the memory of real servers. No account, no Performance Schema.

use waggle_model::{SeenLocks, SeenRowWait};
use waggle_probes::sessions::{Limits, LockReader, Sampler, Sessions, TEXT_LIMIT, TEXTS_LIMIT};
use waggle_testkit::client::{Client, Command as Packet};
use waggle_testkit::{Leased, Server, Version, wait_showing};

use crate::recognised;

/// A server with a table of four rows, and who reads its locks.
struct Scene {
    server: Leased,
    look: Box<dyn FnMut() -> SeenLocks>,
}

const TAKE_1: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 1";
const TAKE_2: &str = "UPDATE shop.t SET n = n + 1 WHERE id = 2";
const READ: &str = "SELECT n FROM shop.t WHERE id = 4";

impl Scene {
    fn of(version: Version) -> Self {
        let server = Server::builder(version).arg("--performance-schema=OFF").lease().unwrap();
        let mut root = server.root().unwrap();
        root.run("CREATE DATABASE shop").unwrap();
        root.run("CREATE TABLE shop.t (id INT PRIMARY KEY, n INT) ENGINE = InnoDB").unwrap();
        root.run("INSERT INTO shop.t VALUES (1, 0), (2, 0), (3, 0), (4, 0)").unwrap();
        let it = recognised(&server);
        let sampler = Sampler::load().unwrap();
        let (mut sessions, mut reader) =
            (Sessions::of(&it.layout).unwrap(), LockReader::of(&it.layout).unwrap());
        let look = move || {
            let limits =
                Limits { text: TEXT_LIMIT, texts: TEXTS_LIMIT, start_to_monotonic: &|_| None };
            sampler.sample(&it.instance, &mut sessions, limits).unwrap();
            reader.look(&it.instance, &sessions).unwrap()
        };
        Self { server, look: Box::new(look) }
    }

    fn after(&self, statements: &[&str]) -> Client {
        let mut session = self.server.root().unwrap();
        statements.iter().for_each(|statement| drop(session.run(statement).unwrap()));
        session
    }

    /// A session that waits for the last of these statements.
    fn waiting(&self, statements: &[&str]) -> Client {
        let (last, first) = statements.split_last().unwrap();
        let mut session = self.after(first);
        session.send(Packet::Query, last.as_bytes()).unwrap();
        session
    }

    /// Looks until it is so.
    fn until<T>(&mut self, what: &str, found: impl Fn(&SeenLocks) -> Option<T>) -> T {
        let what = format!("{}: {what}", self.server.version());
        wait_showing(what, || {
            let seen = (self.look)();
            found(&seen).ok_or_else(|| format!("{seen:?}"))
        })
    }
}

fn id(client: &Client) -> u64 {
    client.connection_id().into()
}

fn row_wait(seen: &SeenLocks, waiter: &Client) -> Option<SeenRowWait> {
    seen.rows.value()?.iter().find(|wait| wait.connection_id == id(waiter)).cloned()
}

/// Waiter, holders and table of the metadata lock that a session waits for.
fn metadata(seen: &SeenLocks, waiter: &Client) -> Option<(Vec<u64>, Vec<u64>, String)> {
    let locks = seen.metadata.value()?;
    let asked = locks.iter().find(|one| one.is_pending && one.connection_id == id(waiter))?;
    let others = |is_pending: bool| {
        let those = locks.iter().filter(move |one| {
            one.lock == asked.lock
                && one.connection_id != id(waiter)
                && one.is_pending == is_pending
        });
        let mut ids: Vec<u64> = those.map(|one| one.connection_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let name = format!(
        "{}.{}",
        String::from_utf8_lossy(&asked.schema),
        String::from_utf8_lossy(&asked.name)
    );
    Some((others(false), others(true), name))
}

fn rows(version: Version) {
    let mut scene = Scene::of(version);
    let root = scene.after(&["BEGIN", TAKE_1]);
    let middle = scene.waiting(&["BEGIN", TAKE_2, TAKE_1]);
    let last = scene.waiting(&["BEGIN", TAKE_2]);
    let named = |seen: &SeenLocks, waiter: &Client| {
        row_wait(seen, waiter).filter(|wait| wait.table.is_some())
    };
    let (one, two) =
        scene.until("a chain", |seen| Some((named(seen, &middle)?, named(seen, &last)?)));
    assert_eq!(one.blockers, [id(&root)], "{version}: {one:?}");
    assert_eq!(two.blockers, [id(&middle)], "{version}: {two:?}");
    for wait in [one, two] {
        assert_eq!(wait.table, Some((b"shop".to_vec(), b"t".to_vec())), "{version}: {wait:?}");
    }
    let seen = (scene.look)();
    let idle = seen.sessions.iter().find(|one| one.connection_id == id(&root)).unwrap();
    assert_eq!(idle.identity.user.as_deref(), Some(&b"root"[..]), "{version}: {idle:?}");
    assert!(idle.text.is_none() && seen.unreadable == 0, "{version}: {seen:?}");
}

/// The lock goes from one to the next, and the holder is the right one each time.
fn hand_over(version: Version) {
    let mut scene = Scene::of(version);
    let mut a = scene.after(&["BEGIN", TAKE_1]);
    let mut b = scene.waiting(&["BEGIN", TAKE_1]);
    scene.until("B waits", |seen| row_wait(seen, &b));
    let mut c = scene.waiting(&["BEGIN", TAKE_1]);
    scene.until("C waits", |seen| row_wait(seen, &c));
    let d = scene.waiting(&["BEGIN", TAKE_1]);
    let blockers = |seen: &SeenLocks, of: &[&Client]| -> Option<Vec<Vec<u64>>> {
        of.iter().map(|one| Some(row_wait(seen, one)?.blockers)).collect()
    };
    let all = scene.until("D waits", |seen| blockers(seen, &[&b, &c, &d]));
    assert_eq!(all, [[id(&a)], [id(&a)], [id(&a)]], "{version}");
    a.run("COMMIT").unwrap();
    b.read_reply().unwrap();
    scene.until("C and D behind B", |seen| {
        let all = blockers(seen, &[&c, &d])?;
        (all == [[id(&b)], [id(&b)]]).then_some(())
    });
    b.run("COMMIT").unwrap();
    c.read_reply().unwrap();
    scene.until("D behind C", |seen| {
        (blockers(seen, &[&d])? == [[id(&c)]] && row_wait(seen, &c).is_none()).then_some(())
    });
}

fn tables(version: Version) {
    let mut scene = Scene::of(version);
    let root = scene.after(&["BEGIN", READ]);
    let alter = scene.waiting(&["ALTER TABLE shop.t ADD COLUMN later INT"]);
    let found = scene.until("ALTER behind a reader", |seen| metadata(seen, &alter));
    assert_eq!(found, (vec![id(&root)], vec![], "shop.t".to_owned()), "{version}");
    let readers = [(); 3].map(|()| scene.waiting(&[READ]));
    for reader in &readers {
        let (holders, before, name) = scene.until("readers behind it", |seen| {
            metadata(seen, reader).filter(|(_, before, _)| before.len() == 3)
        });
        assert!(holders.contains(&id(&root)) && before.contains(&id(&alter)), "{version}");
        assert_eq!(name, "shop.t", "{version}");
    }
    drop((root, alter, readers));

    // Who has left may wait on there.
    let write = "UPDATE shop.other SET id = 2";
    let locker = scene.after(&[
        "CREATE TABLE shop.other (id INT PRIMARY KEY) ENGINE = InnoDB",
        "LOCK TABLES shop.other WRITE",
    ]);
    let writer = scene.waiting(&[write]);
    let found = scene.until("LOCK TABLES", |seen| metadata(seen, &writer));
    assert_eq!(found, (vec![id(&locker)], vec![], "shop.other".to_owned()), "{version}");
    drop((locker, writer));
    scene.until("nobody waits", |seen| seen.metadata.value()?.is_empty().then_some(()));

    let flusher = scene.after(&["FLUSH TABLES WITH READ LOCK"]);
    let writer = scene.waiting(&[write]);
    let found = scene.until("FTWRL", |seen| metadata(seen, &writer));
    assert_eq!((&*found.0, &*found.2), (&[id(&flusher)][..], "."), "{version}");
}

#[test]
fn a_chain_of_row_waits_is_read_with_its_idle_root() {
    Version::ALL.into_iter().for_each(rows);
}

#[test]
fn the_holder_of_a_row_is_right_after_every_hand_over() {
    Version::ALL.into_iter().for_each(hand_over);
}

#[test]
fn the_holder_of_a_metadata_lock_is_read_with_the_object() {
    Version::ALL.into_iter().for_each(tables);
}
