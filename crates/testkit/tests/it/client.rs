//! The raw client over every transport.

use waggle_testkit::client::{Command, Value};
use waggle_testkit::{Account, Client, Error, Server, Transport, Version};

use crate::shared;

fn text(client: &mut Client, sql: &str) -> String {
    client.run(sql).unwrap()[0].text(0, 0).unwrap()
}

#[test]
fn every_transport_admits_every_account() {
    for version in Version::ALL {
        let server = shared(version);
        for transport in Transport::ALL {
            // The second login with the password finds it in the server's cache.
            for account in [Account::APP, Account::SECRET, Account::SECRET] {
                let mut client = Client::connect(server, transport, account).unwrap();
                assert_eq!(text(&mut client, "SELECT 6*7"), "42", "{version} {transport}");
                let user = text(&mut client, "SELECT SUBSTRING_INDEX(USER(), '@', 1)");
                assert_eq!(user, account.user, "{version} {transport}");
                let id = text(&mut client, "SELECT CONNECTION_ID()");
                assert_eq!(id, client.connection_id().to_string(), "{version} {transport}");
                client.quit().unwrap();
            }
        }
    }
}

#[test]
fn a_password_without_cache_passes_over_plain_tcp_by_the_servers_key() {
    for version in [Version::Mysql80, Version::Mysql9] {
        let server = Server::start(version).unwrap();
        Client::connect(&server, Transport::Tcp, Account::SECRET).unwrap().quit().unwrap();
    }
}

#[test]
fn a_wrong_password_is_refused() {
    for version in Version::ALL {
        let server = shared(version);
        for password in ["", "wrong"] {
            let account = Account { user: "secret", password };
            let error = Client::connect(server, Transport::Unix, account).unwrap_err();
            assert!(matches!(error, Error::Refused { code: 1045, .. }), "{version}: {error}");
        }
    }
}

#[test]
fn tls_and_compression_are_what_the_server_says_too() {
    for version in Version::ALL {
        let server = shared(version);
        for transport in Transport::ALL {
            let mut client = Client::connect(server, transport, Account::APP).unwrap();
            let status = |client: &mut Client, name: &str| {
                let sql = format!("SHOW SESSION STATUS LIKE '{name}'");
                client.run(sql).unwrap()[0].text(0, 1).unwrap()
            };
            let tls = matches!(transport, Transport::Tls | Transport::TlsCompressed);
            let expected = match version {
                _ if !tls => "",
                Version::Mysql57 => "TLSv1.1",
                Version::Mysql80 => "TLSv1.2",
                _ => "TLSv1.3",
            };
            assert_eq!(status(&mut client, "Ssl_version"), expected, "{version} {transport}");
            assert_eq!(client.tls_version().unwrap_or(""), expected, "{version} {transport}");
            let compressed = matches!(transport, Transport::Compressed | Transport::TlsCompressed);
            let said = status(&mut client, "Compression");
            assert_eq!(said, if compressed { "ON" } else { "OFF" }, "{version} {transport}");
        }
    }
}

#[test]
fn a_prepared_statement_round_trips() {
    for version in Version::ALL {
        let server = shared(version);
        for (transport, eof) in Transport::ALL.into_iter().zip([false, true].into_iter().cycle()) {
            let builder = Client::builder().deprecate_eof(eof).database("test");
            let mut client = builder.connect(server, transport, Account::APP).unwrap();
            let sql = "SELECT ?, ?, ?, CAST(? AS DATETIME(6)), ? IS NULL, CAST(? AS TIME)";
            let statement = client.prepare(sql).unwrap();
            assert_eq!(statement.params, 6);
            let long = "x".repeat(70_000);
            let values = [
                Value::Int(-7),
                Value::Double(2.5),
                Value::from(long.as_str()),
                Value::from("2024-02-29 12:13:14.000015"),
                Value::Null,
                Value::from("-01:02:03"),
            ];
            let expected = ["-7", "2.5", &long, "2024-02-29 12:13:14.000015", "1", "-01:02:03"];
            for _twice in 0..2 {
                let results = client.execute(&statement, &values, false).unwrap();
                assert_eq!(results.len(), 1, "{version} {transport}: {results:?}");
                assert_eq!(results[0].error, None, "{version} {transport}");
                let row: Vec<String> =
                    (0..6).map(|column| results[0].text(0, column).unwrap()).collect();
                assert_eq!(row, expected, "{version} {transport}");
            }
            client.close_statement(statement).unwrap();
            assert_eq!(text(&mut client, "SELECT DATABASE()"), "test");
        }
    }
}

#[test]
fn a_cursor_hands_out_its_rows_in_parts() {
    for version in Version::ALL {
        let server = shared(version);
        for eof in [false, true] {
            let builder = Client::builder().deprecate_eof(eof).database("test");
            let mut client = builder.connect(server, Transport::Tcp, Account::APP).unwrap();
            client.run("CREATE OR REPLACE VIEW five AS SELECT 1 n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5").unwrap();
            let statement = client.prepare("SELECT n FROM five WHERE n < ?").unwrap();
            let opened = client.execute(&statement, &[Value::Int(5)], true).unwrap();
            assert!(opened[0].has_cursor() && opened[0].rows.is_empty(), "{version} {opened:?}");
            let parts: Vec<usize> =
                (0..2).map(|_| client.fetch(&statement, 3).unwrap().rows.len()).collect();
            assert_eq!(parts, [3, 1], "{version}");
            assert_eq!(client.reset_statement(&statement).unwrap().error, None);
            assert_eq!(client.ping().unwrap().error, None);
        }
    }
}

#[test]
fn long_data_arrives_in_pieces() {
    for version in Version::ALL {
        let server = shared(version);
        let mut client = Client::connect(server, Transport::Unix, Account::APP).unwrap();
        let statement = client.prepare("SELECT LENGTH(?), RIGHT(?, 3)").unwrap();
        for _piece in 0..3 {
            client.send_long_data(&statement, 0, &[b'a'; 100_000]).unwrap();
        }
        let values = [Value::Long, Value::from("abcdef")];
        let results = client.execute(&statement, &values, false).unwrap();
        assert_eq!(results[0].text(0, 0).as_deref(), Some("300000"), "{version} {results:?}");
        assert_eq!(results[0].text(0, 1).as_deref(), Some("def"), "{version}");
    }
}

#[test]
fn a_multi_statement_ends_at_its_error() {
    for version in Version::ALL {
        let server = shared(version);
        let mut client = Client::connect(server, Transport::Tcp, Account::APP).unwrap();
        let results = client.query("SELECT 1; DO 2; SELECT * FROM test.nothing; SELECT 4").unwrap();
        let errors: Vec<u16> =
            results.iter().map(|result| result.error.as_ref().map_or(0, |e| e.0)).collect();
        assert_eq!(errors, [0, 0, 1146], "{version} {results:?}");
        let off = client.set_option_multi_statements(false).unwrap();
        assert_eq!(off.error, None, "{version}");
        assert_eq!(client.query("SELECT 1; SELECT 2").unwrap()[0].error.as_ref().unwrap().0, 1064);
    }
}

#[test]
fn a_call_returns_each_result_set_and_its_own_end() {
    for version in Version::ALL {
        let server = shared(version);
        let builder = Client::builder().database("test");
        let mut client = builder.connect(server, Transport::Tcp, Account::APP).unwrap();
        client.run("CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2, 3; END").unwrap();
        let call = client.prepare("CALL two()").unwrap();
        for results in [client.query("CALL two()"), client.execute(&call, &[], false)] {
            let results = results.unwrap();
            let columns: Vec<usize> = results.iter().map(|result| result.columns.len()).collect();
            assert_eq!(columns, [1, 2, 0], "{version}");
        }
    }
}

#[test]
fn a_large_result_is_counted_without_being_kept() {
    for version in Version::ALL {
        let server = shared(version);
        for transport in Transport::ALL {
            let mut client = Client::connect(server, transport, Account::APP).unwrap();
            let rows = client
                .query_discard("SELECT REPEAT('x', 100) FROM information_schema.collations a, information_schema.collations b LIMIT 20000")
                .unwrap();
            assert_eq!(rows, 20_000, "{version} {transport}");
            assert_eq!(client.ping().unwrap().error, None);
        }
    }
}

#[test]
fn a_statement_longer_than_a_packet_arrives_whole() {
    let builder = Server::builder(Version::Mysql80).arg("--max-allowed-packet=128M");
    let server = builder.start().unwrap();
    for transport in Transport::ALL {
        let mut client = Client::connect(&server, transport, Account::APP).unwrap();
        let sql = format!("SELECT LENGTH('{}')", "y".repeat(17 << 20));
        assert_eq!(text(&mut client, &sql), (17 << 20).to_string(), "{transport}");
    }
}

#[test]
fn load_data_local_reads_the_bytes_given() {
    for version in Version::ALL {
        let server = shared(version);
        let mut client = Client::connect(server, Transport::Tls, Account::APP).unwrap();
        client.run("CREATE TABLE test.lines (n INT)").unwrap();
        let sql = "LOAD DATA LOCAL INFILE 'any' INTO TABLE test.lines";
        let results = client.load_local(sql, b"1\n2\n3\n").unwrap();
        assert_eq!((results[0].affected, &results[0].error), (3, &None), "{version}");
        assert_eq!(text(&mut client, "SELECT SUM(n) FROM test.lines"), "6", "{version}");
    }
}

#[test]
fn session_commands_do_what_they_say() {
    for version in Version::ALL {
        let server = shared(version);
        for transport in [Transport::Tcp, Transport::TlsCompressed] {
            let mut client = Client::connect(server, transport, Account::APP).unwrap();
            assert_eq!(client.init_db("test").unwrap().error, None);
            assert_eq!(text(&mut client, "SELECT DATABASE()"), "test", "{version}");
            assert_eq!(client.init_db("nowhere").unwrap().error.unwrap().0, 1049, "{version}");
            client.run("SET @kept = 1").unwrap();
            assert_eq!(client.reset_connection().unwrap().error, None, "{version}");
            assert_eq!(client.run("SELECT @kept").unwrap()[0].text(0, 0), None, "{version}");
            assert!(client.statistics().unwrap().contains("Uptime"), "{version}");
            for account in [Account::SECRET, Account::APP, Account::SECRET] {
                client.change_user(account, "mysql").unwrap();
                let user = text(&mut client, "SELECT SUBSTRING_INDEX(USER(), '@', 1)");
                assert_eq!(user, account.user, "{version} {transport}");
            }
            client.send(Command::Ping, &[]).unwrap();
            assert_eq!(client.read_packet().unwrap()[0], 0, "{version}");
        }
    }
}

#[test]
fn the_server_tells_a_quit_from_a_client_that_is_gone() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut watcher = server.root().unwrap();
        let aborted = |watcher: &mut Client| -> u32 {
            let sql = "SHOW GLOBAL STATUS LIKE 'Aborted_clients'";
            watcher.run(sql).unwrap()[0].text(0, 1).unwrap().parse().unwrap()
        };
        let open = |transport| Client::connect(&server, transport, Account::APP).unwrap();
        for transport in Transport::ALL {
            open(transport).quit().unwrap();
            drop(open(transport));
        }
        let gone = |watcher: &mut Client| {
            while text(
                watcher,
                "SELECT COUNT(*) FROM information_schema.processlist WHERE USER = 'app'",
            ) != "0"
            {}
        };
        gone(&mut watcher);
        let before = aborted(&mut watcher);
        assert_eq!(before, 0, "{version}");
        for transport in Transport::ALL {
            open(transport).hang_up();
            open(transport).abort().unwrap();
        }
        gone(&mut watcher);
        assert_eq!(aborted(&mut watcher), 10, "{version}");
    }
}
