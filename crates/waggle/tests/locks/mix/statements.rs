//! What the sessions of the mix run, and what each statement locks.

use waggle_stats::Random;

use super::model::{Asked, Lock, Mode, Model, Object};

/// Groups of rows, and the rows of each group, with gaps in between.
pub(super) const GROUPS: u32 = 3;
const ROWS: [u32; 3] = [100, 200, 300];
/// No session requests this row: it ends the group.
const LAST: u32 = 900;
/// Tables with waits for metadata locks only.
pub(super) const TABLES: usize = 3;
const NAMES: usize = 2;

/// The name of such a table.
pub(super) fn table(number: usize) -> String {
    format!("m{number}")
}

/// The statements that create the tables.
pub(super) fn tables(sessions: usize) -> Vec<String> {
    let ids = (0..GROUPS).flat_map(|group| {
        ROWS.into_iter().chain([LAST]).map(move |row| format!("({}, 0)", id(group, row)))
    });
    let ids: Vec<String> = ids.collect();
    let of_sessions: Vec<String> = (1..=sessions).map(|id| format!("({id}, 0)")).collect();
    let mut all = vec!["CREATE DATABASE shop".to_owned()];
    let tables = (0..TABLES).map(table).map(|name| (name, &of_sessions));
    for (name, rows) in tables.chain([("t".to_owned(), &ids)]) {
        all.push(format!("CREATE TABLE shop.{name} (id INT PRIMARY KEY, n INT) ENGINE = InnoDB"));
        all.push(format!("INSERT INTO shop.{name} VALUES {}", rows.join(", ")));
    }
    all
}

fn id(group: u32, row: u32) -> u32 {
    group * 1000 + row
}

/// What a session can do in one step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// An `UPDATE`, or else a `SELECT … FOR UPDATE`.
    TakeRow(u32, bool),
    ShareRow(u32),
    /// A range of rows with its gaps, exclusively or not.
    TakeRange(u32, bool),
    Insert(u32),
    Read(usize),
    Write(usize),
    Alter(usize),
    Truncate(usize),
    LockTable(usize, Mode),
    Name(usize),
    LockAll,
}

impl Action {
    pub(super) fn any(random: &mut Random) -> Action {
        let group = random.below(GROUPS as usize) as u32;
        let row = id(group, *random.pick(&ROWS));
        let table = random.below(TABLES);
        match random.below(20) {
            0..=2 => Action::TakeRow(row, random.coin()),
            3 | 4 => Action::ShareRow(row),
            5 | 6 => Action::TakeRange(group, random.coin()),
            7 | 8 => Action::Insert(group),
            9 | 10 => Action::Read(table),
            11 | 12 => Action::Write(table),
            13 | 14 => Action::Alter(table),
            15 => Action::Truncate(table),
            16 => {
                let modes = [Mode::ReadOnly, Mode::NoReadWrite];
                Action::LockTable(table, *random.pick(&modes))
            }
            _ => Action::Name(random.below(NAMES)),
        }
    }

    /// Whether it commits the session's transaction first.
    fn commits(self) -> bool {
        matches!(
            self,
            Action::Alter(_) | Action::Truncate(_) | Action::LockTable(..) | Action::LockAll
        )
    }

    fn is_of_transaction(self) -> bool {
        !self.commits() && !matches!(self, Action::Name(_))
    }

    /// The locks that it requests, and those that it holds afterwards.
    fn locks(self) -> (Vec<Lock>, Vec<Lock>) {
        let kept = |lock: Lock| (vec![lock], vec![lock]);
        match self {
            Action::TakeRow(row, _) => kept((Object::Row(row), Mode::Exclusive)),
            Action::ShareRow(row) => kept((Object::Row(row), Mode::Shared)),
            Action::TakeRange(group, exclusive) => {
                let mode = if exclusive { Mode::Exclusive } else { Mode::Shared };
                let rows = ROWS.map(|row| (Object::Row(id(group, row)), mode));
                let all: Vec<Lock> =
                    rows.into_iter().chain([(Object::Gaps(group), Mode::Covers)]).collect();
                (all.clone(), all)
            }
            Action::Insert(group) => kept((Object::Gaps(group), Mode::Inserts)),
            Action::Read(table) => kept((Object::Table(table), Mode::Reads)),
            Action::Write(table) => {
                let lock = (Object::Table(table), Mode::Writes);
                (vec![(Object::Server, Mode::Shared), lock], vec![lock])
            }
            Action::Alter(table) => {
                let lock = |mode| (Object::Table(table), mode);
                (vec![lock(Mode::Upgradable), lock(Mode::Changes)], Vec::new())
            }
            Action::Truncate(table) => (vec![(Object::Table(table), Mode::Changes)], Vec::new()),
            Action::LockTable(table, mode) => kept((Object::Table(table), mode)),
            Action::Name(name) => kept((Object::Name(name), Mode::Exclusive)),
            Action::LockAll => kept((Object::Server, Mode::Exclusive)),
        }
    }

    /// Whether the session may do it now: not if it holds the lock already, nor where the model could no longer tell who
    /// holds what.
    pub(super) fn is_sensible(self, model: &Model, at: usize) -> bool {
        let party = &model.parties[at];
        if self.commits() {
            // A committed row could not be inserted again.
            return !party.holds_names() && !party.has_inserted();
        }
        let (steps, gives) = self.locks();
        let has = |lock: &Lock| {
            party.held.iter().any(|held| {
                let is_stronger = matches!(held.1, Mode::Exclusive | Mode::Writes);
                held == lock || held.0 == lock.0 && is_stronger
            })
        };
        match self {
            // It locks row by row, so it must not wait for any of them.
            Action::TakeRange(..) => {
                let is_of_group = |object: Object| gives.iter().any(|(own, _)| *own == object);
                let waits = |at| model.awaited(at).is_some_and(|(object, _)| is_of_group(object));
                let mut all = 0..model.parties.len();
                !all.any(waits) && steps.iter().all(|lock| model.holders(at, *lock).is_empty())
            }
            _ => !gives.iter().any(has),
        }
    }

    /// The request, and the statements that make it.
    pub(super) fn ask(self, model: &Model, at: usize, number: u64) -> (Asked, Vec<String>) {
        let (steps, gives) = self.locks();
        let mut statements = Vec::new();
        if self.is_of_transaction() && !model.parties[at].is_in_transaction {
            statements.push("BEGIN".to_owned());
        }
        statements.push(self.text(at, number));
        (Asked::new(steps, gives, self.ends_all(), number), statements)
    }

    fn ends_all(self) -> bool {
        matches!(self, Action::Alter(_) | Action::Truncate(_))
    }

    fn text(self, at: usize, number: u64) -> String {
        let own = at as u32 + 1;
        match self {
            Action::TakeRow(row, true) => format!("UPDATE shop.t SET n = n + 1 WHERE id = {row}"),
            Action::TakeRow(row, false) => {
                format!("SELECT n FROM shop.t WHERE id = {row} FOR UPDATE")
            }
            Action::ShareRow(row) => {
                format!("SELECT n FROM shop.t WHERE id = {row} LOCK IN SHARE MODE")
            }
            Action::TakeRange(group, exclusive) => {
                let how = if exclusive { "FOR UPDATE" } else { "LOCK IN SHARE MODE" };
                let [first, .., last] = ROWS.map(|row| id(group, row));
                format!("SELECT n FROM shop.t WHERE id BETWEEN {first} AND {last} {how}")
            }
            Action::Insert(group) => {
                format!("INSERT INTO shop.t VALUES ({}, 0)", id(group, ROWS[0] + own))
            }
            // A session with a snapshot cannot use a table that is truncated later, so no session takes one.
            Action::Read(number) => {
                format!("SELECT n FROM shop.{} WHERE id = {own} LOCK IN SHARE MODE", table(number))
            }
            Action::Write(number) => {
                format!("UPDATE shop.{} SET n = n + 1 WHERE id = {own}", table(number))
            }
            Action::Alter(of) => format!("ALTER TABLE shop.{} COMMENT = '{number}'", table(of)),
            Action::Truncate(number) => format!("TRUNCATE TABLE shop.{}", table(number)),
            Action::LockTable(number, mode) => {
                let how = if mode == Mode::ReadOnly { "READ" } else { "WRITE" };
                format!("LOCK TABLES shop.{} {how}", table(number))
            }
            Action::Name(name) => format!("SELECT GET_LOCK('job {name}', 1000)"),
            Action::LockAll => "FLUSH TABLES WITH READ LOCK".to_owned(),
        }
    }

    /// What it does, in words.
    pub(super) fn words(self) -> String {
        match self {
            Action::TakeRow(row, true) => format!("changes row {row}"),
            Action::TakeRow(row, false) => format!("takes row {row}"),
            Action::ShareRow(row) => format!("shares row {row}"),
            Action::TakeRange(group, true) => format!("takes group {group} of rows with its gaps"),
            Action::TakeRange(group, false) => {
                format!("shares group {group} of rows with its gaps")
            }
            Action::Insert(group) => format!("inserts a row into group {group}"),
            Action::Read(of) => format!("reads table {}", table(of)),
            Action::Write(of) => format!("writes table {}", table(of)),
            Action::Alter(of) => format!("alters table {}", table(of)),
            Action::Truncate(of) => format!("empties table {}", table(of)),
            Action::LockTable(of, Mode::ReadOnly) => format!("locks table {} to read", table(of)),
            Action::LockTable(of, _) => format!("locks table {} to write", table(of)),
            Action::Name(name) => format!("takes name {name}"),
            Action::LockAll => "locks the whole server".to_owned(),
        }
    }

    /// Its immediate effect on the session.
    pub(super) fn begin(self, model: &mut Model, at: usize) {
        let party = &mut model.parties[at];
        if self.commits() {
            party.held.clear();
        }
        party.is_in_transaction =
            self.is_of_transaction() || party.is_in_transaction && !self.commits();
        party.has_locked_tables = matches!(self, Action::LockTable(..) | Action::LockAll);
    }
}

/// The statements that release all locks of a session. They roll back the rows that it has inserted.
pub(super) fn release(model: &Model, at: usize, random: &mut Random) -> Vec<String> {
    let party = &model.parties[at];
    let mut statements = Vec::new();
    if party.has_locked_tables {
        statements.push("UNLOCK TABLES".to_owned());
    }
    let end = if party.has_inserted() || random.coin() { "ROLLBACK" } else { "COMMIT" };
    statements.extend(party.is_in_transaction.then(|| end.to_owned()));
    for (object, _) in &party.held {
        if let Object::Name(name) = object {
            statements.push(format!("SELECT RELEASE_LOCK('job {name}')"));
        }
    }
    statements
}
