//! What the sessions of the mix run, and what each statement locks.

use waggle_stats::Random;

use super::model::{Asked, Lock, Mode, Model, Object};

/// Groups of rows, and the rows of each: far from each other, so that there are gaps.
pub(super) const GROUPS: u32 = 3;
const ROWS: [u32; 3] = [100, 200, 300];
/// Nobody asks for this one: it ends the group.
const LAST: u32 = 900;
/// Tables of which only metadata locks are waited for.
pub(super) const TABLES: usize = 3;
const NAMES: usize = 2;

/// The name of such a table.
pub(super) fn table(number: usize) -> String {
    format!("m{number}")
}

/// What makes the tables.
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

/// Something that a session can do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
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

impl Deed {
    pub(super) fn any(random: &mut Random) -> Deed {
        let group = random.below(GROUPS as usize) as u32;
        let row = id(group, *random.pick(&ROWS));
        let table = random.below(TABLES);
        match random.below(20) {
            0..=2 => Deed::TakeRow(row, random.coin()),
            3 | 4 => Deed::ShareRow(row),
            5 | 6 => Deed::TakeRange(group, random.coin()),
            7 | 8 => Deed::Insert(group),
            9 | 10 => Deed::Read(table),
            11 | 12 => Deed::Write(table),
            13 | 14 => Deed::Alter(table),
            15 => Deed::Truncate(table),
            16 => {
                let modes = [Mode::ReadOnly, Mode::NoReadWrite];
                Deed::LockTable(table, *random.pick(&modes))
            }
            _ => Deed::Name(random.below(NAMES)),
        }
    }

    /// Whether it ends the transaction of its session first.
    fn commits(self) -> bool {
        matches!(self, Deed::Alter(_) | Deed::Truncate(_) | Deed::LockTable(..) | Deed::LockAll)
    }

    fn is_of_transaction(self) -> bool {
        !self.commits() && !matches!(self, Deed::Name(_))
    }

    /// The locks that it asks for, and those that it has in the end.
    fn locks(self) -> (Vec<Lock>, Vec<Lock>) {
        let kept = |lock: Lock| (vec![lock], vec![lock]);
        match self {
            Deed::TakeRow(row, _) => kept((Object::Row(row), Mode::Exclusive)),
            Deed::ShareRow(row) => kept((Object::Row(row), Mode::Shared)),
            Deed::TakeRange(group, exclusive) => {
                let mode = if exclusive { Mode::Exclusive } else { Mode::Shared };
                let rows = ROWS.map(|row| (Object::Row(id(group, row)), mode));
                let all: Vec<Lock> =
                    rows.into_iter().chain([(Object::Gaps(group), Mode::Covers)]).collect();
                (all.clone(), all)
            }
            Deed::Insert(group) => kept((Object::Gaps(group), Mode::Inserts)),
            Deed::Read(table) => kept((Object::Table(table), Mode::Reads)),
            Deed::Write(table) => {
                let lock = (Object::Table(table), Mode::Writes);
                (vec![(Object::Server, Mode::Shared), lock], vec![lock])
            }
            Deed::Alter(table) => {
                let lock = |mode| (Object::Table(table), mode);
                (vec![lock(Mode::Upgradable), lock(Mode::Changes)], Vec::new())
            }
            Deed::Truncate(table) => (vec![(Object::Table(table), Mode::Changes)], Vec::new()),
            Deed::LockTable(table, mode) => kept((Object::Table(table), mode)),
            Deed::Name(name) => kept((Object::Name(name), Mode::Exclusive)),
            Deed::LockAll => kept((Object::Server, Mode::Exclusive)),
        }
    }

    /// Whether this session may do it now: not what it has already, and not where the mix would not know any
    /// more who has what.
    pub(super) fn is_sensible(self, model: &Model, at: usize) -> bool {
        let party = &model.parties[at];
        if self.commits() {
            // A row that is committed could not be inserted once more.
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
            // It takes row after row: only where it waits for none.
            Deed::TakeRange(..) => {
                let is_of_group = |object: Object| gives.iter().any(|(own, _)| *own == object);
                let waits = |at| model.awaited(at).is_some_and(|(object, _)| is_of_group(object));
                let mut all = 0..model.parties.len();
                !all.any(waits) && steps.iter().all(|lock| model.holders(at, *lock).is_empty())
            }
            _ => !gives.iter().any(has),
        }
    }

    /// The request, and the statements to send for it.
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
        matches!(self, Deed::Alter(_) | Deed::Truncate(_))
    }

    fn text(self, at: usize, number: u64) -> String {
        let own = at as u32 + 1;
        match self {
            Deed::TakeRow(row, true) => format!("UPDATE shop.t SET n = n + 1 WHERE id = {row}"),
            Deed::TakeRow(row, false) => {
                format!("SELECT n FROM shop.t WHERE id = {row} FOR UPDATE")
            }
            Deed::ShareRow(row) => {
                format!("SELECT n FROM shop.t WHERE id = {row} LOCK IN SHARE MODE")
            }
            Deed::TakeRange(group, exclusive) => {
                let how = if exclusive { "FOR UPDATE" } else { "LOCK IN SHARE MODE" };
                let [first, .., last] = ROWS.map(|row| id(group, row));
                format!("SELECT n FROM shop.t WHERE id BETWEEN {first} AND {last} {how}")
            }
            Deed::Insert(group) => {
                format!("INSERT INTO shop.t VALUES ({}, 0)", id(group, ROWS[0] + own))
            }
            // Who has a snapshot cannot use a table any more that is emptied later, so nobody makes one.
            Deed::Read(number) => {
                format!("SELECT n FROM shop.{} WHERE id = {own} LOCK IN SHARE MODE", table(number))
            }
            Deed::Write(number) => {
                format!("UPDATE shop.{} SET n = n + 1 WHERE id = {own}", table(number))
            }
            Deed::Alter(of) => format!("ALTER TABLE shop.{} COMMENT = '{number}'", table(of)),
            Deed::Truncate(number) => format!("TRUNCATE TABLE shop.{}", table(number)),
            Deed::LockTable(number, mode) => {
                let how = if mode == Mode::ReadOnly { "READ" } else { "WRITE" };
                format!("LOCK TABLES shop.{} {how}", table(number))
            }
            Deed::Name(name) => format!("SELECT GET_LOCK('job {name}', 1000)"),
            Deed::LockAll => "FLUSH TABLES WITH READ LOCK".to_owned(),
        }
    }

    /// What it does, in plain words.
    pub(super) fn words(self) -> String {
        match self {
            Deed::TakeRow(row, true) => format!("changes row {row}"),
            Deed::TakeRow(row, false) => format!("takes row {row}"),
            Deed::ShareRow(row) => format!("shares row {row}"),
            Deed::TakeRange(group, true) => format!("takes group {group} of rows with its gaps"),
            Deed::TakeRange(group, false) => format!("shares group {group} of rows with its gaps"),
            Deed::Insert(group) => format!("inserts a row into group {group}"),
            Deed::Read(of) => format!("reads table {}", table(of)),
            Deed::Write(of) => format!("writes table {}", table(of)),
            Deed::Alter(of) => format!("alters table {}", table(of)),
            Deed::Truncate(of) => format!("empties table {}", table(of)),
            Deed::LockTable(of, Mode::ReadOnly) => format!("locks table {} to read", table(of)),
            Deed::LockTable(of, _) => format!("locks table {} to write", table(of)),
            Deed::Name(name) => format!("takes name {name}"),
            Deed::LockAll => "locks the whole server".to_owned(),
        }
    }

    /// What it does to its session at once.
    pub(super) fn begin(self, model: &mut Model, at: usize) {
        let party = &mut model.parties[at];
        if self.commits() {
            party.held.clear();
        }
        party.is_in_transaction =
            self.is_of_transaction() || party.is_in_transaction && !self.commits();
        party.has_locked_tables = matches!(self, Deed::LockTable(..) | Deed::LockAll);
    }
}

/// What lets go of all that a session has. A row that it has inserted is gone after it, too.
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
