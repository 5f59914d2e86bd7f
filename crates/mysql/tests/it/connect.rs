//! Connecting as the option files say.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use waggle_model::Flavour;
use waggle_mysql::{Connection, ConnectionError, Options, Sources};
use waggle_testkit::{Account, PATIENCE, Server, Version, on_each_server};

fn options(file: PathBuf) -> Options {
    Options::read(&Sources { defaults_file: Some(file), ..Sources::default() }).unwrap()
}

/// An option file beside the server's own files.
fn written(server: &Server, name: &str, text: &str) -> Options {
    let path = server.defaults_file().with_file_name(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    options(path)
}

fn an_option_file_leads_to_the_server(version: Version) {
    let server = Server::start(version).unwrap();
    let mut connection = Connection::open(&options(server.defaults_file())).unwrap();
    let identity = connection.server_identity().clone();
    assert_eq!(identity.version, server.version_string());
    assert_eq!(identity.flavour == Flavour::Mariadb, version.is_mariadb());
    assert_eq!(identity.port, Some(server.port()));
    assert!(identity.connection_id > 0 && identity.account.starts_with("root@"), "{identity:?}");
    let before = connection.statements();
    connection.say("marker_1").unwrap();
    assert_eq!(connection.statements(), before + 1);

    // A password, by the version's own kind of account, over the unix socket.
    let secret = options(server.option_file(Account::SECRET).unwrap());
    let opened = Connection::open(&secret).unwrap();
    assert!(opened.server_identity().account.starts_with("secret@"));

    let tcp = |mode: &str| {
        let text = format!(
            "[client]\nuser=secret\npassword=\"s3cret pass\"\nhost=127.0.0.1\nport={}\n{mode}\n",
            server.port()
        );
        Connection::open(&written(&server, "tcp.cnf", &text))
    };
    for mode in ["", "ssl-mode=DISABLED"] {
        let opened = tcp(mode).unwrap_or_else(|error| panic!("{version:?} {mode}: {error}"));
        assert_eq!(opened.server_identity().port, Some(server.port()), "{mode}");
    }
    let required = tcp("ssl-mode=REQUIRED");
    match version {
        // yaSSL speaks TLS 1.1 at most, which OpenSSL refuses; the message says what to do.
        Version::Mysql57 => {
            let message = required.err().unwrap().to_string();
            assert!(message.contains("unix socket"), "{message}");
        }
        _ => {
            let mut opened = required.unwrap();
            let ca = server.ca_certificate();
            tcp(&format!("ssl-mode=VERIFY_CA\nssl-ca={}", ca.display())).unwrap();
            opened.say("over_tls").unwrap();
        }
    }

    if matches!(version, Version::Mysql80 | Version::Mysql9) {
        // The server forgets the passwords that it has seen, and asks for them again.
        let mut forgets = || connection.rows("FLUSH PRIVILEGES").unwrap();
        forgets();
        let error = tcp("ssl-mode=DISABLED").err().unwrap();
        assert!(matches!(error, ConnectionError::NotEncrypted { .. }), "{error}");
        tcp("ssl-mode=DISABLED\nget-server-public-key=ON").unwrap();
        forgets();
        let key = server.datadir().join("public_key.pem");
        tcp(&format!("ssl-mode=DISABLED\nserver-public-key-path={}", key.display())).unwrap();
    }

    let wrong = written(
        &server,
        "wrong.cnf",
        &format!("[client]\nuser=secret\npassword=hunter2\nsocket={}\n", server.socket().display()),
    );
    let error = Connection::open(&wrong).err().unwrap();
    assert!(matches!(error, ConnectionError::LoginRefused { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}

on_each_server!(an_option_file_leads_to_the_server);

/// Which option opens the entrance that is left when all connections are in use.
fn second_entrance(version: Version) -> &'static [&'static str] {
    match version {
        Version::Mysql57 | Version::Mysql80 => &[],
        Version::Mysql9 => &["--admin-address=127.0.0.1", "--admin-port"],
        _ => &["--extra-port"],
    }
}

fn a_full_server_says_which_limit_is_reached_and_where_there_is_room(version: Version) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let entrance = second_entrance(version);
    let mut builder = Server::builder(version).max_connections(5);
    if let Some((named_by, more)) = entrance.split_last() {
        builder = more.iter().fold(builder, |builder, more| builder.arg(*more));
        builder = builder.arg(format!("{named_by}={port}"));
    }
    let server = builder.start().unwrap();
    let mut root = Connection::open(&options(server.defaults_file())).unwrap();
    // One connection more is kept for who may administrate the server: not for this account.
    let few = options(server.few(&["USAGE ON *.*"]).unwrap());
    let until_refused = || {
        let mut held = Vec::new();
        loop {
            assert!(held.len() < 10, "nothing was refused");
            match Connection::open(&few) {
                Ok(connection) => held.push(connection),
                Err(error) => return (held, error.to_string()),
            }
        }
    };
    let (held, error) = until_refused();
    for words in ["error 1040: Too many connections", "max_connections", "extra_port", "admin_port"]
    {
        assert!(error.contains(words), "{version:?}: {error}");
    }
    if !entrance.is_empty() {
        let text = format!("[client]\nuser=app\nhost=127.0.0.1\nport={port}\n");
        let there = Connection::open(&written(&server, "entrance.cnf", &text));
        there.unwrap_or_else(|error| panic!("{version:?}: {error}"));
    }
    drop(held);

    // The server takes a moment to end their sessions.
    let begun = Instant::now();
    while root.global_status("Threads_connected").unwrap() > Some(1) {
        assert!(begun.elapsed() < PATIENCE, "they do not end");
        thread::sleep(Duration::from_millis(20));
    }
    root.rows("ALTER USER few@localhost WITH MAX_USER_CONNECTIONS 1").unwrap();
    let (_held, error) = until_refused();
    for words in ["error 1226", "this account has reached its own limit"] {
        assert!(error.contains(words), "{version:?}: {error}");
    }
}

on_each_server!(a_full_server_says_which_limit_is_reached_and_where_there_is_room);

#[test]
fn a_server_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { socket: Some(folder.path().join("none.sock")), ..Options::default() };
    let error = Connection::open(&options).err().unwrap().to_string();
    assert!(error.contains("none.sock") && error.contains("(--defaults-file FILE)"), "{error}");
}

fn a_refused_login_says_what_is_with_the_account(version: Version) {
    let server = Server::start(version).unwrap();
    let mut root = Connection::open(&options(server.defaults_file())).unwrap();
    let mut sql = |statement: &str| drop(root.rows(statement).unwrap());
    let socket = format!("socket={}", server.socket().display());
    let tcp = format!("host=127.0.0.1\nport={}\nssl-mode=", server.port());
    let is_told = |place: &str, words: &[&str]| {
        let text = format!("[client]\nuser=w\npassword=Pw-1234x\n{place}\n");
        let error = Connection::open(&written(&server, "refused.cnf", &text)).err().unwrap();
        let error = error.to_string();
        for words in words {
            assert!(error.contains(words), "{version:?} {words:?}: {error}");
        }
        assert!(!error.contains("check that it runs"), "{version:?}: {error}");
        assert!(!error.contains("may tell more"), "{version:?}: {error}");
    };
    let can_be_encrypted = version != Version::Mysql57;

    sql("CREATE USER w@localhost IDENTIFIED BY 'Pw-1234x'");
    sql("SET GLOBAL init_connect = 'SELECT * FROM not_there.t'");
    is_told(&socket, &["error 1184", "init_connect"]);
    sql("SET GLOBAL init_connect = ''");
    sql("ALTER USER w@localhost REQUIRE SSL");
    for place in [socket.clone(), format!("{tcp}DISABLED")] {
        is_told(&place, &["login of user w", "not encrypted", "ssl-mode = REQUIRED"]);
    }
    if can_be_encrypted {
        sql("ALTER USER w@localhost REQUIRE X509");
        is_told(&format!("{tcp}REQUIRED"), &["login of user w", "no certificate", "ssl-cert"]);
    }
    sql("ALTER USER w@localhost REQUIRE NONE PASSWORD EXPIRE");
    is_told(&socket, &["password", "ALTER USER ... IDENTIFIED BY"]);
    sql("DROP USER w@localhost");
    if version.is_mariadb() {
        sql("CREATE USER w@localhost IDENTIFIED VIA unix_socket");
        is_told(&socket, &["login of user w", "unix_socket", "user of the system"]);
    } else {
        sql("CREATE USER w@localhost IDENTIFIED WITH sha256_password BY 'Pw-1234x'");
        is_told(&socket, &["login of user w", "sha256_password", "another plugin"]);
    }
}

on_each_server!(a_refused_login_says_what_is_with_the_account);
