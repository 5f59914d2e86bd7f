//! Servers that mean harm.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Instant;

use waggle_testkit::PATIENCE;
use waggle_testkit::fake::{self, NATIVE};

use super::*;
use crate::Connection;

type Peer = fake::Peer<UnixStream>;

/// A server that logs anybody in, and answers the first statement with harm.
fn answers<H: Fn(&mut Peer) -> io::Result<()>>(harm: H) -> impl Fn(&mut Peer) -> io::Result<()> {
    move |peer| {
        peer.admit()?;
        peer.receive()?;
        harm(peer)?;
        peer.receive().map(drop)
    }
}

/// Why nobody can be reached there, within a few seconds.
fn met(serve: impl Fn(&mut Peer) -> io::Result<()> + Send + 'static) -> ConnectionError {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    // It ends with its connection.
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let _ = serve(&mut Peer::new(stream));
    });
    let options = Options { socket: Some(socket), ..Options::default() };
    let begin = Instant::now();
    let error = Connection::open(&options).err().unwrap();
    assert!(begin.elapsed() < PATIENCE, "{error}");
    error
}

#[test]
fn a_greeting_that_is_none_is_an_error() {
    for packet in [&b""[..], b"\n", b"\xff", b"\n8", b"\0", &[0xff; 300]] {
        let packet = packet.to_vec();
        met(move |peer| peer.send(&packet));
    }
    let greeting = fake::greeting(NATIVE);
    for end in 0..greeting.len() {
        let part = greeting[..end].to_vec();
        met(move |peer| peer.send(&part));
    }
}

#[test]
fn a_login_that_goes_on_in_a_strange_way_is_an_error() {
    for packet in
        [&b""[..], b"\x01", b"\x01\x04", b"\x02", b"\xfe", b"\xfe\0", b"\xffa", b"\xfb/etc/passwd"]
    {
        let packet = packet.to_vec();
        met(move |peer| {
            peer.send(&fake::greeting(NATIVE))?;
            peer.receive()?;
            peer.send(&packet)?;
            peer.receive().map(drop)
        });
    }
}

#[test]
fn an_answer_that_is_none_is_an_error() {
    met(answers(|peer| peer.send(b"")));
    // The number of columns, as a length of eight bytes.
    met(answers(|peer| peer.send(&[0xfe; 9])));
    met(answers(|peer| peer.send(&[1]).and_then(|()| peer.send(b""))));
    met(answers(|peer| {
        peer.begin_rows(1)?;
        // A value of 16 EiB.
        peer.send(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255])
    }));
    // It asks for a file of ours.
    met(answers(|peer| peer.send(b"\xfb/etc/passwd")));
}

#[test]
fn an_answer_without_end_is_given_up() {
    let error = met(answers(|peer| {
        peer.begin_rows(1)?;
        loop {
            peer.send_row(&[Some(&[b'x'; 200])])?;
        }
    }));
    assert!(matches!(error, ConnectionError::TooMuch { .. }), "{error}");
    let error = met(answers(|peer| {
        peer.begin_rows(1)?;
        peer.send_raw(&[0xff, 0xff, 0xff, 4])?;
        loop {
            peer.send_raw(b"x")?;
            thread::sleep(Duration::from_millis(100));
        }
    }));
    assert!(matches!(error, ConnectionError::TooSlow), "{error}");
}
