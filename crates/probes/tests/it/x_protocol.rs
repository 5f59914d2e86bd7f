//! Clients of the X protocol: MySQL 9 answers them as a session does, MySQL 8.0 after the session was left. What becomes
//! no statement is counted apart, and says nothing of how the server is read.

use std::net::TcpListener;

use waggle_model::Loss;
use waggle_probes::servers::x_protocol::XEndpoint;
use waggle_testkit::x_client::XClient;
use waggle_testkit::{Account, Client, Server, Transport, Version, wait_for};

use crate::capture::Capture;

/// Of each of two connections.
const STATEMENTS: usize = 30;
/// A reply that goes out in parts.
const LONG: &str = "SELECT REPEAT('x', 100000)";

fn start(version: Version) -> (Server, u16) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = ["--mysqlx=1", "--mysqlx-socket=x.sock", &format!("--mysqlx-port={free}")];
    let builder = options.into_iter().fold(Server::builder(version), |it, option| it.arg(option));
    (builder.start().unwrap(), free)
}

fn replies_that_become_no_statement_are_counted_apart(version: Version) {
    let (server, port) = start(version);
    let pid = server.pid();
    let mut capture = Capture::of(&server);
    capture.attach();
    let endpoint = capture.recognised.x_protocol.read(pid);
    assert_eq!(endpoint, XEndpoint { port, socket: b"x.sock".to_vec() });
    capture.tap.expect_x_protocol(pid, &endpoint);
    let socket = server.datadir().join("x.sock");
    for is_tcp in [false, true] {
        let mut client = wait_for("the X protocol", || {
            let connected = match is_tcp {
                true => XClient::over_tcp(port, Account::SECRET),
                false => XClient::over_unix(&socket, Account::SECRET),
            };
            connected.ok()
        });
        for number in 0..STATEMENTS {
            client.run(&format!("SELECT {number}, 'by X'")).unwrap();
            client.run(LONG).unwrap();
        }
        client.close().unwrap();
    }
    let captured = texts(&mut capture);
    let losses = capture.losses();
    let [without, by_x] = [Loss::NoStatement, Loss::XProtocol].map(|kind| losses.get(kind));
    assert_eq!((without, losses.statements()), (0, 0), "{losses:?}");
    if version == Version::Mysql80 {
        assert_eq!(captured, [""; 0]);
        assert!(by_x as usize >= 4 * STATEMENTS, "{by_x}");
    } else {
        let one = |number| [format!("SELECT {number}, 'by X'"), LONG.to_owned()];
        let mut wanted: Vec<_> = (0..STATEMENTS).chain(0..STATEMENTS).flat_map(one).collect();
        wanted.sort();
        assert_eq!(captured, wanted);
        assert!((1..=8).contains(&by_x), "{by_x} replies of two logins");
    }
    for transport in [Transport::Unix, Transport::Tcp] {
        Client::connect(&server, transport, Account::APP).unwrap().run("SELECT 7").unwrap();
    }
    assert_eq!(texts(&mut capture), ["SELECT 7"; 2]);
    assert_eq!(capture.losses().get(Loss::XProtocol), by_x);
}

/// What was captured, sorted: a reply that is held back comes late.
fn texts(capture: &mut Capture) -> Vec<String> {
    let texts = capture.at_rest().into_iter().filter_map(|seen| seen.text);
    let mut texts: Vec<String> =
        texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect();
    texts.sort();
    texts
}

#[test]
fn of_mysql_8_0_replies_that_become_no_statement_are_counted_apart() {
    replies_that_become_no_statement_are_counted_apart(Version::Mysql80);
}

#[test]
fn of_mysql_9_replies_that_become_no_statement_are_counted_apart() {
    replies_that_become_no_statement_are_counted_apart(Version::Mysql9);
}

#[test]
fn a_server_without_it_has_no_endpoint() {
    for version in [Version::Mysql57, Version::Mariadb1011] {
        let server = Server::start(version).unwrap();
        let endpoint = crate::recognised(&server).x_protocol.read(server.pid());
        assert_eq!(endpoint, XEndpoint::default(), "{version}");
    }
}
