//! Commands beside statements, and who a session is.

use waggle_model::Command;
use waggle_testkit::Account;

use crate::matrix::expected::Expected;
use crate::matrix::scene::Scene;
use crate::matrix::talker::{Login, Talker};

const INIT_DB: Command = Command(2);
const PING: Command = Command(14);
const CHANGE_USER: Command = Command(17);
const SET_OPTION: Command = Command(27);
const RESET_CONNECTION: Command = Command(31);

/// Changes the default database by COM_INIT_DB or by USE; the reply already has the new one.
fn choose(talker: &mut Talker, database: &str, by_command: bool) {
    talker.who.database = Some(database.to_owned());
    if by_command {
        let result = talker.command(INIT_DB, |client| client.init_db(database));
        assert_eq!(result.error, None);
    } else {
        talker.run(&format!("USE {database}"));
    }
}

pub(crate) fn commands(_: &mut Scene, talker: &mut Talker) {
    talker.run("SELECT n FROM numbers WHERE n <= 5");
    talker.command(PING, |client| client.ping());
    choose(talker, "much_longer_name", true);
    talker.run("SELECT DATABASE()");
    talker.command(INIT_DB, |client| client.init_db("nowhere"));
    talker.run("SELECT DATABASE()");
    talker.command(RESET_CONNECTION, |client| client.reset_connection());
    talker.run("SELECT DATABASE()");
    // Answered without a status, so that it cannot be told from a part of a reply.
    talker.client.statistics().unwrap();
    talker.command(SET_OPTION, |client| client.set_option_multi_statements(false));
}

pub(crate) fn change_user(_: &mut Scene, talker: &mut Talker) {
    talker.run("SELECT USER()");
    for (account, database) in
        [(Account::SECRET, "mysql"), (Account::APP, "abcd"), (Account::SECRET, "efgh")]
    {
        talker.who.user = account.user.to_owned();
        talker.who.database = Some(database.to_owned());
        let note = talker.note(CHANGE_USER, None);
        talker.client.change_user(account, database).unwrap();
        talker.expect(note);
        talker.run("SELECT USER()");
        talker.run("SELECT DATABASE()");
    }
}

/// The server writes the new name over the old one where it fits.
pub(crate) fn same_length(_: &mut Scene, talker: &mut Talker) {
    for (database, by_command) in [
        ("abcd", false),
        ("efgh", false),
        ("test", true),
        ("efgh", true),
        ("abcd", true),
        ("test", false),
    ] {
        choose(talker, database, by_command);
        let database = talker.run("SELECT DATABASE()").text(0, 0);
        assert_eq!(database, talker.who.database);
    }
    for text in ["/* a comment */ USE abcd", "use\tefgh", "  (SELECT 1)", "USE `test`"] {
        let database = ["abcd", "efgh", "test"].into_iter().find(|name| text.contains(name));
        if let Some(database) = database {
            talker.who.database = Some(database.to_owned());
        }
        talker.run(text);
        talker.last(|last| last.text = Some(text.trim().as_bytes().to_vec()));
        talker.run("SELECT DATABASE()");
    }
}

pub(crate) fn dropped(scene: &mut Scene) {
    let mut talker = scene.open();
    talker.run("CREATE DATABASE short_lived");
    choose(&mut talker, "short_lived", false);
    talker.who.database = None;
    talker.run("DROP DATABASE short_lived");
    assert_eq!(talker.run("SELECT DATABASE()").text(0, 0), None);
    talker.quit();
    let login = Login { database: None, ..scene.login() };
    let mut talker = scene.open_as(&login);
    talker.run("SELECT DATABASE()");
    talker.quit();
}

/// A large result is held back until the session goes on; by then it may be somebody else's.
pub(crate) fn after_a_large_result(scene: &mut Scene) {
    let large = "SELECT n, pad FROM numbers WHERE n <= 300";
    let mut talker = scene.open();
    talker.run(large);
    choose(&mut talker, "much_longer_name", true);
    talker.run("SELECT n, pad FROM test.numbers WHERE n <= 300");
    choose(&mut talker, "test", false);
    talker.run(large);
    talker.who.user = Account::SECRET.user.to_owned();
    talker.who.database = Some("abcd".to_owned());
    let note = talker.note(CHANGE_USER, None);
    talker.client.change_user(Account::SECRET, "abcd").unwrap();
    talker.expect(note);
    talker.run("SELECT 'after'");
    talker.quit();
    // The next session takes over the memory of the one that left.
    for (account, database) in
        [(Account::APP, "test"), (Account::SECRET, "abcd"), (Account::APP, "efgh")]
    {
        let login = Login { account, database: Some(database), ..scene.login() };
        let mut talker = scene.open_as(&login);
        talker.run("SELECT n, pad FROM test.numbers WHERE n <= 200");
        talker.quit();
    }
}

/// A session that was known before tells again who it is.
pub(crate) fn attached_again(scene: &mut Scene, talker: &mut Talker) {
    talker.run("SELECT 'before'");
    let found = scene.reckon();
    assert!(found.is_empty(), "{found:?}");
    scene.attach_again(|| _ = talker.client.run("SELECT 'unwatched'").unwrap());
}

pub(crate) fn refused(scene: &mut Scene) {
    let account = Account { user: "secret", password: "wrong" };
    let login = Login { account, ..scene.login() };
    let error = Talker::open(&scene.server, &login, &scene.log()).err().unwrap();
    assert!(matches!(error, waggle_testkit::Error::Refused { code: 1045, .. }), "{error}");
    // The client did not keep the number of a session that it was refused: the next one.
    let talker = scene.open();
    let mut note = Expected { error: Some(1045), ..talker.note(Command::CONNECT, None) };
    note.who.user = "secret".to_owned();
    note.who.database = None;
    scene.log().borrow_mut().insert(talker.id() - 1, vec![note]);
    talker.quit();
}
