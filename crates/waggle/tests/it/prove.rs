//! `waggle prove`: what looking costs, by a coin for each statement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use waggle_testkit::client::Client;
use waggle_testkit::{Account, Server, Transport, Version};

use crate::load;
use crate::watching::{Ended, Waggle};

/// A statement that leaves the processors to others: what is counted here is no matter of speed.
const PACED: &str = "DO SLEEP(0.0005)";

/// A trial of a server, while `work` is called again and again by each of so many threads, with the number of the thread.
fn trial(
    server: &Server,
    arguments: &[&str],
    threads: usize,
    work: impl Fn(usize) + Sync,
) -> Ended {
    let pid = server.pid().to_string();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, is_over) = (&work, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    work(number);
                }
            });
        }
        let waggle = Waggle::start(&[&["prove", "--json", "--pid", &pid], arguments].concat());
        let ended = waggle.end();
        is_over.store(true, Ordering::Relaxed);
        ended
    })
}

/// Sessions that are used by one thread each.
fn sessions(server: &Server, count: usize) -> Vec<std::sync::Mutex<Client>> {
    (0..count).map(|_| std::sync::Mutex::new(load::session(server))).collect()
}

/// The only line, of a trial that has an answer.
fn answer(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    ended.lines().remove(0)
}

fn number(json: &Value, path: &str) -> u64 {
    json.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {json}"))
}

/// Every statement is in one arm, and what is captured is what the arms say, but for those that run at either end of the
/// trial; each arm has its share.
fn assert_sound(version: Version, json: &Value, sessions: u64) {
    let arms: Vec<u64> =
        json["arms"].as_array().unwrap().iter().map(|arm| number(arm, "/statements")).collect();
    let (all, left_out) = (number(json, "/statements"), number(json, "/left_out"));
    assert_eq!((arms.iter().sum::<u64>(), arms[0]), (all, left_out), "{version}: {json}");
    let captured = number(json, "/captured");
    assert!(captured.abs_diff(all - left_out) <= 2 * sessions, "{version}: {json}");
    assert_eq!(number(json, "/lost"), 0, "{version}: {json}");
    for (arm, count) in json["arms"].as_array().unwrap().iter().zip(&arms) {
        let share = arm["share"].as_f64().unwrap();
        let expected = share * all as f64;
        // Six standard deviations.
        let most = 6.0 * (expected * (1.0 - share)).sqrt();
        assert!((*count as f64 - expected).abs() <= most, "{version}: {arm} of {all}");
    }
    for price in ["/total", "/carried_over", "/steps/0/price", "/steps/2/price"] {
        let half_width = json.pointer(&format!("{price}/half_width_ns")).and_then(Value::as_f64);
        assert!(half_width.is_some_and(|it| it > 0.0), "{version}: {price}: {json}");
    }
}

#[test]
fn each_statement_is_in_one_arm_on_every_server() {
    for version in Version::ALL {
        let server = Server::builder(version).lease().unwrap();
        let clients = sessions(&server, 2);
        let ended = trial(&server, &["--for", "4s", "--within", "0ns"], 2, |number| {
            clients[number].lock().unwrap().run(PACED).unwrap();
        });
        let json = answer(&ended);
        assert_sound(version, &json, 2);
        let arms: Vec<&Value> =
            json["arms"].as_array().unwrap().iter().map(|arm| &arm["collectors"]).collect();
        let expected = [
            "[]",
            "[\"statements\"]",
            "[\"statements\",\"long texts\"]",
            "[\"statements\",\"long texts\",\"waits\"]",
        ];
        assert_eq!(
            arms.iter().map(|arm| arm.to_string()).collect::<Vec<_>>(),
            expected,
            "{version}"
        );
    }
}

#[test]
fn a_share_is_what_was_asked_for_and_waits_that_are_off_have_no_price() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let clients = sessions(&server, 1);
    let arguments =
        ["--for", "4s", "--within", "0ns", "--share", "1/8", "--no-waits", "--text-limit", "256"];
    let ended = trial(&server, &arguments, 1, |_| {
        clients[0].lock().unwrap().run(PACED).unwrap();
    });
    let json = answer(&ended);
    let shares: Vec<&Value> =
        json["arms"].as_array().unwrap().iter().map(|arm| &arm["share"]).collect();
    assert_eq!(shares, [&Value::from(0.125), &Value::from(0.875)], "{json}");
    assert_eq!(json["steps"].as_array().unwrap().len(), 1, "{json}");
}

/// Results of many sends, statements that are prepared, several results of one statement, TLS, and a pool of threads.
#[test]
fn whatever_is_sent_no_statement_is_counted_twice() {
    for (version, argument) in [
        (Version::Mysql57, "--skip-name-resolve"),
        (Version::Mysql9, "--skip-name-resolve"),
        (Version::Mariadb1011, "--thread-handling=pool-of-threads"),
    ] {
        let server = Server::builder(version).arg(argument).start().unwrap();
        let mut root = load::session(&server);
        root.run("CREATE PROCEDURE test.twice() BEGIN SELECT 1; SELECT 2; END").unwrap();
        root.run("CREATE TABLE test.long (t LONGTEXT)").unwrap();
        root.run("INSERT INTO test.long VALUES (REPEAT('x', 1000000))").unwrap();
        let transports = [Transport::Tcp, Transport::Tls, Transport::Unix];
        let clients: Vec<_> = transports
            .map(|transport| Client::connect(&server, transport, Account::APP).unwrap())
            .map(std::sync::Mutex::new)
            .into_iter()
            .collect();
        let statements = ["CALL test.twice()", "SELECT t FROM test.long", PACED];
        let ended = trial(&server, &["--for", "4s", "--within", "0ns"], 3, |number| {
            let mut client = clients[number].lock().unwrap();
            for statement in statements {
                client.run(statement).unwrap();
            }
        });
        // Of a CALL each result is a statement to the tap.
        let json = answer(&ended);
        let (all, left_out) = (number(&json, "/statements"), number(&json, "/left_out"));
        assert!(all > 0 && left_out > 0 && number(&json, "/lost") == 0, "{version}: {json}");
    }
}

#[test]
fn sessions_that_come_and_go_with_each_statement_are_priced() {
    let server = Server::builder(Version::Mariadb1011).lease().unwrap();
    let ended = trial(&server, &["--for", "5s", "--within", "0ns"], 2, |_| {
        let mut client = load::session(&server);
        client.run(PACED).unwrap();
        client.quit().unwrap();
    });
    let json = answer(&ended);
    assert!(number(&json, "/captured") > 0 && number(&json, "/lost") == 0, "{json}");
}

#[test]
fn two_trials_at_once_do_not_disturb_each_other() {
    let server = Server::builder(Version::Mysql80).lease().unwrap();
    let clients = sessions(&server, 1);
    let pid = server.pid().to_string();
    let other =
        Waggle::start(&["prove", "--json", "--pid", &pid, "--for", "5s", "--within", "0ns"]);
    let ended = trial(&server, &["--for", "5s", "--within", "0ns"], 1, |_| {
        clients[0].lock().unwrap().run(PACED).unwrap();
    });
    assert_sound(Version::Mysql80, &answer(&ended), 1);
    let other = other.end();
    assert_eq!(number(&answer(&other), "/lost"), 0);
}

#[test]
fn without_statements_nothing_is_said_of_a_price() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let ended = trial(&server, &["--for", "1s"], 0, |_| ());
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let json = ended.lines().remove(0);
    assert!(json["total"].is_null() && json["carried_over"].is_null(), "{json}");
    assert_eq!(number(&json, "/statements"), 0);
}

#[test]
fn a_server_that_ends_in_the_middle_is_told() {
    let mut server = Server::builder(Version::Mariadb114).start().unwrap();
    let pid = server.pid().to_string();
    let mut waggle = Waggle::start(&["prove", "--pid", &pid, "--for", "600s"]);
    waggle.wait_for("the trial", |waggle| waggle.err().contains("statements"));
    server.kill9().unwrap();
    let ended = waggle.end();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(ended.err.contains("the server has ended after"), "{}", ended.err);
    assert!(ended.out.contains("Not measured"), "{}", ended.out);
}

#[test]
fn what_cannot_be_priced_is_refused() {
    let [one, _other] = [Version::Mysql9, Version::Mysql80]
        .map(|version| Server::builder(version).lease().unwrap());
    let several = Waggle::start(&["prove"]).end();
    assert_eq!(several.code, Some(2), "{}", several.err);
    assert!(
        several.err.contains("choose one of") && several.err.contains("--pid"),
        "{}",
        several.err
    );
    let pid = one.pid().to_string();
    let trap = Waggle::start(&["prove", "--pid", &pid, "--hook", "uprobe"]).end();
    assert_eq!(trap.code, Some(4), "{}", trap.err);
    assert!(trap.err.contains("a breakpoint does not tell when a request comes"), "{}", trap.err);
    for wrong in [["--share", "2"], ["--within", "5 parsecs"], ["--for", "0s"]] {
        let ended = Waggle::start(&[&["prove"][..], &wrong].concat()).end();
        assert_eq!(ended.code, Some(2), "{wrong:?}: {}", ended.err);
    }
}

/// Measures: in the long tier.
#[test]
fn a_time_that_is_injected_is_found() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let clients = sessions(&server, 4);
    let ended =
        trial(&server, &["--for", "20s", "--within", "100ns", "--inject", "5us"], 4, |number| {
            clients[number].lock().unwrap().run("SELECT 1").unwrap();
        });
    let json = answer(&ended);
    let [found, half_width] =
        ["ns", "half_width_ns"].map(|key| json["total"][key].as_f64().unwrap());
    let injected = json["injected_ns"].as_f64().unwrap();
    assert!((found - injected).abs() <= half_width + 0.05 * injected, "{json}");
}
