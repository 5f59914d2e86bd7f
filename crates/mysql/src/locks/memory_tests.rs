use super::super::poll::SomebodyWaits;
use super::*;

fn session(connection_id: u64, state: Option<&str>) -> SeenSession {
    let command = if state.is_some() { Command::QUERY } else { Command::SLEEP };
    let state = state.map(|state| state.as_bytes().to_vec());
    SeenSession { connection_id, command, state, ..SeenSession::default() }
}

fn lock(connection_id: u64, mode: u32, is_pending: bool) -> SeenMetadataLock {
    let (schema, name) = (b"shop".to_vec(), b"t".to_vec());
    SeenMetadataLock { connection_id, lock: 0x1000, namespace: 3, schema, name, mode, is_pending }
}

fn seen(sessions: Vec<SeenSession>, metadata: Vec<SeenMetadataLock>) -> SeenLocks {
    let metadata = Reading::Value(metadata);
    SeenLocks {
        sessions,
        metadata,
        rows: Reading::Value(Vec::new()),
        unreadable: 0,
        is_pooled: false,
    }
}

fn tree(seen: &SeenLocks, flavour: Flavour) -> Tree {
    in_memory(seen, flavour, &|_| About::default()).tree
}

const TABLE: Option<&str> = Some("Waiting for table metadata lock");

#[test]
fn readers_stand_behind_an_alter_that_waits_for_an_idle_reader() {
    for (flavour, exclusive) in [(Flavour::Mysql, 10), (Flavour::Mariadb, 9)] {
        let sessions = vec![session(1, None), session(2, TABLE), session(3, TABLE)];
        let locks = vec![
            lock(1, 3, false),
            lock(2, exclusive, true),
            lock(2, 6 - u32::from(flavour == Flavour::Mariadb), false),
            lock(3, 3, true),
        ];
        let tree = tree(&seen(sessions, locks), flavour);
        let [root] = &*tree.roots else { panic!("{tree:?}") };
        assert_eq!(root.key, Key::Session(1), "{flavour}");
        let [alter] = &*root.waiters else { panic!("{tree:?}") };
        assert_eq!((&alter.key, alter.waiters.len()), (&Key::Session(2), 1), "{flavour}");
        let wait = alter.wait.as_ref().unwrap();
        assert_eq!(wait.lock.object.as_deref(), Some("shop.t"));
        assert_eq!(wait.lock.mode.as_deref(), Some("EXCLUSIVE"), "{flavour}");
        assert_eq!(wait.source, Source::Memory);
    }
}

#[test]
fn who_waits_and_has_no_request_that_could_be_read_has_an_unknown_holder() {
    let sessions = vec![session(1, None), session(2, TABLE)];
    let tree = tree(&seen(sessions, vec![lock(1, 3, false)]), Flavour::Mysql);
    assert!(tree.roots.is_empty());
    assert_eq!(tree.undetermined[0].0.why, NOT_PROVEN);
}

#[test]
fn a_mode_that_no_server_has_leaves_the_holder_unknown() {
    let sessions = vec![session(1, None), session(2, TABLE)];
    let locks = vec![lock(1, 11, false), lock(2, 10, true)];
    let tree = tree(&seen(sessions, locks), Flavour::Mysql);
    assert!(tree.roots.is_empty() && tree.undetermined.len() == 1, "{tree:?}");
}

#[test]
fn a_backup_lock_of_mariadb_has_its_own_modes() {
    let state = Some("Waiting for backup lock");
    let sessions = vec![session(1, None), session(2, state)];
    let unnamed = |one: SeenMetadataLock| SeenMetadataLock {
        schema: Vec::new(),
        name: Vec::new(),
        namespace: 0,
        ..one
    };
    // FTWRL2 and TRANS_DML.
    let locks = vec![unnamed(lock(1, 6, false)), unnamed(lock(2, 8, true))];
    let tree = tree(&seen(sessions, locks), Flavour::Mariadb);
    let wait = tree.roots[0].waiters[0].wait.as_ref().unwrap();
    assert_eq!(wait.lock.mode.as_deref(), Some("BACKUP_TRANS_DML"));
    assert_eq!(wait.lock.object.as_deref(), Some("BACKUP"));
}

#[test]
fn an_unknown_row_wait_takes_no_holder_from_its_neighbour() {
    let wait = |connection_id, blockers: &[u64], unknown: Option<&str>| SeenRowWait {
        connection_id,
        blockers: blockers.to_vec(),
        unknown: unknown.map(str::to_owned),
        record: Some((1, 2, 3)),
        mode: 0x423,
        ..SeenRowWait::default()
    };
    let sessions = vec![session(1, None), session(2, Some("x")), session(3, Some("x"))];
    let rows = vec![wait(2, &[1], None), wait(3, &[], Some("it changed"))];
    let seen = SeenLocks { rows: Reading::Value(rows), ..seen(sessions, Vec::new()) };
    let locks = in_memory(&seen, Flavour::Mysql, &|_| About::default());
    assert_eq!(locks.tree.undetermined.len(), 1);
    assert_eq!(locks.row_waiters, Some(2));
    assert_eq!(locks.somebody_waits(), SomebodyWaits::ForLock);
    let wait = locks.tree.roots[0].waiters[0].wait.as_ref().unwrap();
    assert_eq!(wait.lock.mode.as_deref(), Some("X,REC_NOT_GAP"));
}

#[test]
fn who_waits_for_a_row_counts_once_whatever_the_state_says() {
    let row = SeenRowWait { connection_id: 2, blockers: vec![1], ..SeenRowWait::default() };
    let sessions = vec![session(1, None), session(2, TABLE)];
    let seen = SeenLocks { rows: Reading::Value(vec![row]), ..seen(sessions, Vec::new()) };
    let locks = in_memory(&seen, Flavour::Mysql, &|_| About::default());
    assert_eq!((locks.row_waiters, locks.other_waits), (Some(1), Reading::Value(0)));
}

#[test]
fn waits_that_could_not_be_read_are_not_nobody() {
    let mut seen = seen(vec![session(1, None)], Vec::new());
    let about = &|_: &SeenSession| About::default();
    assert_eq!(in_memory(&seen, Flavour::Mysql, about).somebody_waits(), SomebodyWaits::No);
    seen.rows = Reading::absent("more than one place");
    assert_eq!(in_memory(&seen, Flavour::Mysql, about).somebody_waits(), SomebodyWaits::NotKnown);
}
