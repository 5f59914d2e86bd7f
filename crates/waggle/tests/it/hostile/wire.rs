//! Somebody between waggle and a server.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;
use waggle_testkit::fake::{Key, Peer};
use waggle_testkit::{Server, Version};

use super::{LOGIN_BYTES_MIN, PASSWORD, assert_told, option_file, run};

/// What the clients of one server say to it, as somebody in between hears it.
struct Between {
    port: u16,
    loot: Arc<Mutex<Vec<u8>>>,
}

impl Between {
    /// Stands before a server: takes TLS out of its greeting, and asks each client for the password by its own key,
    /// and the next one in clear.
    fn of(server: &Server) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let loot = Arc::<Mutex<Vec<u8>>>::default();
        let (keep, server_port) = (loot.clone(), server.port());
        thread::spawn(move || {
            let (key, mut logins) = (Key::new().unwrap(), 0);
            for client in listener.incoming().flatten() {
                let mut hear = |said: &[u8]| keep.lock().unwrap().extend(said);
                // A client that takes fright goes.
                let _ = listen(client, server_port, &key, &mut logins, &mut hear);
            }
        });
        Between { port, loot }
    }

    /// Whether it has the password by now. It forgets what it has heard.
    fn has_password(&self) -> bool {
        let heard = std::mem::take(&mut *self.loot.lock().unwrap());
        heard.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes())
    }
}

fn listen(
    client: TcpStream,
    port: u16,
    key: &Key,
    logins: &mut u32,
    hear: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    let mut greeting = greeting_of(port)?;
    let nonce = without_tls(&mut greeting);
    let mut peer = Peer::new(client);
    peer.send(&greeting)?;
    let login = peer.receive()?;
    if login.len() < LOGIN_BYTES_MIN {
        return Ok(());
    }
    hear(&login);
    *logins += 1;
    if logins.is_multiple_of(2) {
        peer.send(b"\xfemysql_clear_password\0")?;
    } else {
        peer.send(&[1, 4])?;
    }
    let mut said = peer.receive()?;
    if said == [2] {
        peer.send(&key.offer().unwrap())?;
        said = peer.receive()?;
    }
    hear(&said);
    hear(&key.open(&said, &nonce).unwrap_or_default());
    Ok(())
}

/// What the server itself says first.
fn greeting_of(port: u16) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    let mut head = [0; 4];
    server.read_exact(&mut head)?;
    let mut packet = vec![0; usize::from(u16::from_le_bytes([head[0], head[1]]))];
    server.read_exact(&mut packet)?;
    Ok(packet)
}

/// Takes CLIENT_SSL out of a `Protocol::HandshakeV10`. Gives the bytes with which a password is mixed.
fn without_tls(greeting: &mut [u8]) -> Vec<u8> {
    const CLIENT_SSL_IN_BYTE_2: u8 = 0x08;
    let version_end = 1 + greeting[1..].iter().position(|byte| *byte == 0).unwrap();
    let first = version_end + 5..version_end + 13;
    let capabilities = first.end + 1;
    let second = capabilities + 18..capabilities + 30;
    assert!(greeting[capabilities + 1] & CLIENT_SSL_IN_BYTE_2 != 0, "the server has TLS");
    greeting[capabilities + 1] &= !CLIENT_SSL_IN_BYTE_2;
    [&greeting[first], &greeting[second]].concat()
}

#[test]
fn who_takes_tls_out_of_a_connection_gets_no_password() {
    let server = Server::start(Version::Mysql80).unwrap();
    let between = Between::of(&server);
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let own_key = server.datadir().join("public_key.pem");
    assert!(own_key.is_file());
    let authority = format!("ssl-ca={}", server.ca_certificate().display());
    let account =
        format!("user=secret\npassword={PASSWORD}\nhost=127.0.0.1\nport={}", between.port);
    // By its own key, and in clear.
    let ask_twice = |about: &str, words: &[&str]| {
        let file = option_file(dir.path(), "c.cnf", &format!("{account}\n{about}"));
        for _ in 0..2 {
            assert_told(&run(&["locks"], &file), about, 3, words);
        }
        between.has_password()
    };
    let (clear, tls) = ("the connection is not encrypted", "TLS failed");
    let verify_ca = format!("ssl-mode=VERIFY_CA\n{authority}");
    let verify = format!("ssl-mode=VERIFY_IDENTITY\n{authority}");
    let with_key = format!("server-public-key-path={}", own_key.display());
    for (about, word) in [
        ("", ""),
        ("ssl-mode=DISABLED", ""),
        ("ssl-mode=REQUIRED", tls),
        (&verify_ca, tls),
        (&verify, tls),
        ("ssl-verify-server-cert", tls),
        // It is sent, and only the server itself can read it.
        (&with_key, ""),
    ] {
        assert!(!ask_twice(about, &[word]), "{about}");
    }
    let file = option_file(dir.path(), "c.cnf", &account);
    let said = [run(&["locks"], &file), run(&["locks"], &file)].map(|ended| ended.err);
    assert!(said.iter().any(|said| said.contains(clear)), "{said:?}");
    // Who asks the server for its key trusts who answers: so it is told in the manual of MySQL, too.
    assert!(ask_twice("get-server-public-key", &[]));
}
