//! What sessions have set, on real servers.

use waggle_model::SessionSettings;
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_testkit::{Account, Client, Server, Transport, Version, wait_for};

use crate::recognised;

/// `MODE_ANSI_QUOTES` and `MODE_NO_BACKSLASH_ESCAPES`, the same in every family.
const ANSI_QUOTES: u64 = 4;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

struct Session {
    tap: Tap,
    client: Client,
}

impl Session {
    fn of(server: &Server) -> Self {
        let server_seen = recognised(server);
        let mut tap = Tap::new(TapOptions::default()).unwrap();
        tap.attach(&server_seen.instance, &server_seen.layout).unwrap();
        Self { tap, client: Client::connect(server, Transport::Tcp, Account::APP).unwrap() }
    }

    /// What the server says.
    fn charset(&mut self) -> String {
        let result = self.client.query("SELECT @@character_set_client").unwrap();
        result[0].text(0, 0).unwrap()
    }

    /// Runs a statement and gives the settings that it was captured with.
    fn run(&mut self, sql: &str) -> SessionSettings {
        self.client.query(sql).unwrap();
        let found = wait_for(sql, || {
            let mut found = None;
            self.tap.drain(Amount::UpToNow, |statement| {
                if statement.text.is_some_and(|text| text.bytes == sql.as_bytes()) {
                    found = Some(statement.settings);
                }
            });
            found
        });
        found.unwrap_or_else(|| panic!("no settings: {sql}"))
    }
}

#[test]
fn the_settings_of_a_session_follow_what_it_sets_on_every_server() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut session = Session::of(&server);
        let first = session.run("SELECT 1");
        assert_eq!(first.sql_mode & (ANSI_QUOTES | NO_BACKSLASH_ESCAPES), 0, "{version}");
        let of_login = session.charset();
        assert_eq!(first.charset.as_str(), of_login, "{version}");

        session.run("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'");
        let set = session.run("SELECT 2");
        assert_eq!(set.sql_mode, ANSI_QUOTES | NO_BACKSLASH_ESCAPES, "{version}");
        assert_eq!(set.charset, first.charset, "{version}");

        session.run("/*!40101 SET NAMES gbk */");
        assert_eq!(session.run("SELECT 3").charset.as_str(), "gbk", "{version}");
        session.run("set character_set_client = sjis");
        assert_eq!(session.run("SELECT 4").charset.as_str(), "sjis", "{version}");

        session.client.reset_connection().unwrap();
        let reset = session.run("SELECT 5");
        assert_eq!(reset.sql_mode, first.sql_mode, "{version}: the server's own");
        assert_eq!(reset.charset.as_str(), session.charset(), "{version}");
    }
}
