//! A field of the layout that turns out not to fit while the server is watched.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use waggle_model::{Losses, Reading, RunningStatement};
use waggle_probes::servers::layout::{Field, Layout};
use waggle_probes::sessions::fits;
use waggle_testkit::client::{Client, Transport};
use waggle_testkit::{Account, Server, Version, wait_for};

use crate::capture::Capture;

const CLIENTS: usize = 4;
const STATEMENTS: usize = 1000;

fn connect(server: &Server) -> Client {
    Client::connect(server, Transport::Tcp, Account::APP).unwrap()
}

/// The layout with the flags of the session where the start of its statement is.
fn with_wrong_flags(layout: &Layout) -> Layout {
    let mut wrong = layout.clone();
    let start = layout.fields[&Field::StartTime].clone();
    wrong.fields.insert(Field::ServerStatus, start);
    wrong
}

/// The session that sleeps.
fn asleep(capture: &mut Capture) -> RunningStatement {
    wait_for("the statement that sleeps", || {
        let mut running = capture.running().into_iter();
        running.find(|one| one.state.as_deref() == Some(b"User sleep".as_slice()))
    })
}

#[test]
fn a_start_that_does_not_fit_is_replaced_by_the_request_of_the_statement() {
    for version in [Version::Mysql9, Version::Mariadb118] {
        let server = Server::start(version).unwrap();
        let mut capture = Capture::of(&server);
        let mut wrong = Layout::clone(&capture.recognised.layout);
        let rows = wrong.fields[&Field::RowsSent].clone();
        wrong.fields.insert(Field::StartTime, rows);
        capture.show(wrong);
        capture.attach();
        let mut sleeper = connect(&server);
        let sleeps = thread::spawn(move || sleeper.query("SELECT SLEEP(1)").map(drop));
        let asleep = asleep(&mut capture);
        let recognised = &capture.recognised;
        let fitting = fits(&recognised.layout, &recognised.instance, &asleep).unwrap();
        assert_eq!(fitting.offset(Field::StartTime), None, "{version}");
        capture.show(fitting);
        let recognised = &capture.recognised;
        capture.tap.narrow(&recognised.instance, &recognised.layout).unwrap();
        sleeps.join().unwrap().unwrap();
        drop(capture.at_rest());
        let mut client = connect(&server);
        (0..STATEMENTS).for_each(|number| drop(client.query(format!("SELECT {number}")).unwrap()));
        let seen = capture.at_rest();
        let selects: Vec<_> = seen.iter().filter(|one| one.command.is_statement()).collect();
        assert_eq!(selects.len(), STATEMENTS, "{version}: {:?}", capture.losses());
        assert!(selects.iter().all(|one| one.latency_ns.is_some()), "{version}");
    }
}

#[test]
fn a_field_that_does_not_fit_is_absent_from_then_on_and_no_statement_is_missed() {
    for version in Version::ALL {
        let server = Server::start(version).unwrap();
        let mut capture = Capture::of(&server);
        let layout = with_wrong_flags(&capture.recognised.layout);
        capture.recognised.layout = Arc::new(layout);
        capture.attach();

        let mut sleeper = connect(&server);
        let sleeps = thread::spawn(move || sleeper.query("SELECT SLEEP(2)").map(drop));
        let mut clients: Vec<Client> = (0..CLIENTS).map(|_| connect(&server)).collect();
        let asleep = asleep(&mut capture);
        let work = |mut client: Client| {
            thread::spawn(move || {
                for number in 0..STATEMENTS {
                    client.query(format!("SELECT {number}")).unwrap();
                }
            })
        };
        let working: Vec<_> = clients.drain(..).map(work).collect();
        thread::sleep(Duration::from_millis(50));
        capture.drain();
        let before = capture.seen.len();

        let recognised = &mut capture.recognised;
        let fitting = fits(&recognised.layout, &recognised.instance, &asleep).unwrap();
        let absent: Vec<Field> = fitting
            .fields
            .iter()
            .filter(|(field, place)| {
                matches!(place, Reading::Absent(_)) && recognised.layout.offset(**field).is_some()
            })
            .map(|(field, _)| *field)
            .collect();
        assert_eq!(absent, [Field::ServerStatus], "{version}");
        recognised.layout = Arc::new(fitting);
        capture.tap.narrow(&recognised.instance, &recognised.layout).unwrap();

        working.into_iter().for_each(|worker| worker.join().unwrap());
        sleeps.join().unwrap().unwrap();
        let seen = capture.at_rest();
        let selects = seen
            .iter()
            .filter(|one| one.text.as_ref().is_some_and(|text| text.len() < b"SELECT 1000".len()));
        assert_eq!(selects.count(), CLIENTS * STATEMENTS, "{version}: {:?}", capture.losses());
        assert_eq!(capture.losses(), Losses::default(), "{version}");
        assert!(seen[..before].iter().all(|one| one.status.is_some()), "{version}");
        assert!(seen[before..].iter().all(|one| one.status.is_none()), "{version}");
        assert!(seen.iter().skip(before).all(|one| one.identity.user.is_some()), "{version}");
    }
}
