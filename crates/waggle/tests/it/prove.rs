//! `waggle prove`: what looking costs, by a coin for each statement.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use serde_json::Value;
use waggle_testkit::client::Client;
use waggle_testkit::{Account, Server, Transport, Version, wait_until};

use crate::load;
use crate::watching::{Ended, Waggle};

/// A statement that leaves the processors to others: what is counted here is no matter of speed.
const PACED: &str = "DO SLEEP(0.0005)";

/// What a trial said. Beside it the calls of the work: from when the trial was seen to go on, and in all.
struct Tried {
    ended: Ended,
    since: u64,
    in_all: u64,
}

/// A trial of a server under load: each thread calls `work` with its number, again and again. The trial ends after
/// `calls` calls, however long they take.
fn trial(
    server: &Server,
    arguments: &[&str],
    (threads, calls): (usize, u64),
    work: impl Fn(usize) + Sync,
) -> Tried {
    let pid = server.pid().to_string();
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let so_far = || done.load(Ordering::SeqCst);
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, is_over, done) = (&work, &is_over, &done);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    work(number);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let common = ["prove", "--json", "--pid", &pid, "--for", "600s", "--within", "0ns"];
        let mut waggle = Waggle::start(&[&common, arguments].concat());
        waggle.wait_for("the trial", |waggle| waggle.err().contains("statements"));
        let begun = so_far();
        wait_until("enough calls", || so_far() >= begun + calls);
        let since = so_far() - begun;
        let ended = waggle.interrupt();
        is_over.store(true, Ordering::SeqCst);
        Tried { ended, since, in_all: so_far() + threads as u64 }
    })
}

/// Sessions that are used by one thread each.
fn sessions(server: &Server, count: usize) -> Vec<Mutex<Client>> {
    (0..count).map(|_| Mutex::new(load::session(server))).collect()
}

/// The only line, of a trial that has an answer.
fn answer(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    ended.lines().remove(0)
}

fn number(json: &Value, path: &str) -> u64 {
    json.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {json}"))
}

/// Enough that each arm of four has hundreds.
const CALLS: u64 = 2_000;

/// Each arm has its share of the statements, and as many were captured as the arms say. Statements that run when the trial
/// begins or ends may be missing.
fn assert_sound(version: Version, json: &Value, sessions: u64) {
    let all_arms = json["arms"].as_array().unwrap();
    let arms: Vec<u64> = all_arms.iter().map(|arm| number(arm, "/statements")).collect();
    let (all, left_out) = (number(json, "/statements"), number(json, "/left_out"));
    assert_eq!((arms.iter().sum::<u64>(), arms[0]), (all, left_out), "{version}: {json}");
    let captured = number(json, "/captured");
    assert!(captured.abs_diff(all - left_out) <= 2 * sessions, "{version}: {json}");
    assert_eq!(number(json, "/lost"), 0, "{version}: {json}");
    for (arm, count) in all_arms.iter().zip(&arms) {
        let share = arm["share"].as_f64().unwrap();
        let expected = share * all as f64;
        // Six standard deviations.
        let most = 6.0 * (expected * (1.0 - share)).sqrt();
        assert!((*count as f64 - expected).abs() <= most, "{version}: {arm} of {all}");
    }
    let half_width = |price: &str| json.pointer(&format!("{price}/half_width_ns"))?.as_f64();
    for price in ["/total", "/carried_over", "/steps/0/price"] {
        assert!(half_width(price).is_some_and(|it| it > 0.0), "{version}: {price}: {json}");
    }
}

/// Every call is a statement of the trial. Those that run when it begins or ends may be missing.
fn assert_counted(version: Version, tried: &Tried, per_call: u64, sessions: u64) -> Value {
    let json = answer(&tried.ended);
    let all = number(&json, "/statements");
    let (least, most) = (tried.since * per_call, tried.in_all * per_call);
    assert!(
        all + 2 * sessions * per_call >= least && all <= most + sessions,
        "{version}: {least} to {most}: {json}"
    );
    json
}

#[test]
fn each_statement_is_in_one_arm_on_every_server() {
    for version in Version::ALL {
        let server = Server::builder(version).lease().unwrap();
        let clients = sessions(&server, 2);
        let tried = trial(&server, &[], (2, CALLS), |number| {
            clients[number].lock().unwrap().run(PACED).unwrap();
        });
        let json = assert_counted(version, &tried, 1, 2);
        assert_sound(version, &json, 2);
        let arms = json["arms"].as_array().unwrap().iter();
        let arms: Vec<String> = arms.map(|arm| arm["collectors"].to_string()).collect();
        let expected = [
            "[]",
            "[\"statements\"]",
            "[\"statements\",\"long texts\"]",
            "[\"statements\",\"long texts\",\"waits\"]",
        ];
        assert_eq!(arms, expected, "{version}");
    }
}

#[test]
fn what_is_priced_and_its_share_are_what_was_asked_for() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let clients = sessions(&server, 1);
    let arguments = ["--share", "1/8", "--no-waits", "--text-limit", "256"];
    let tried = trial(&server, &arguments, (1, CALLS), |_| {
        clients[0].lock().unwrap().run(PACED).unwrap();
    });
    let json = answer(&tried.ended);
    assert_sound(Version::Mysql9, &json, 1);
    let stacks = trial(&server, &["--wait-stacks"], (1, CALLS), |_| {
        clients[0].lock().unwrap().run(PACED).unwrap();
    });
    let stacks = answer(&stacks.ended);
    assert_sound(Version::Mysql9, &stacks, 1);
    assert_eq!(stacks["steps"][3]["collector"], "wait stacks", "{stacks}");
    let shares = json["arms"].as_array().unwrap().iter().map(|arm| &arm["share"]);
    assert_eq!(shares.collect::<Vec<_>>(), [&Value::from(0.125), &Value::from(0.875)], "{json}");
    assert_eq!(json["steps"].as_array().unwrap().len(), 1, "{json}");
}

/// Results of many sends, several results of one statement, prepared statements, TLS, and a pool of threads.
#[test]
fn whatever_is_sent_each_statement_counts_once() {
    for (version, argument) in [
        (Version::Mysql57, "--skip-name-resolve"),
        (Version::Mysql9, "--skip-name-resolve"),
        (Version::Mariadb1011, "--thread-handling=pool-of-threads"),
    ] {
        let server = Server::builder(version).arg(argument).start().unwrap();
        let mut root = load::session(&server);
        root.run("CREATE PROCEDURE test.twice() BEGIN SELECT 1; SELECT 2; END").unwrap();
        root.run("CREATE TABLE test.long_texts (t LONGTEXT)").unwrap();
        root.run("INSERT INTO test.long_texts VALUES (REPEAT('x', 1000000))").unwrap();
        for statements in [
            &["CALL test.twice()", "SELECT 1"][..],
            &["SELECT t FROM test.long_texts", "SELECT 1"],
            &["PREPARE p FROM 'SELECT 1'", "EXECUTE p", "DEALLOCATE PREPARE p"],
        ] {
            let connect = |transport| Client::connect(&server, transport, Account::APP).unwrap();
            let clients = [Transport::Tcp, Transport::Tls, Transport::Unix];
            let clients = clients.map(connect).map(Mutex::new);
            let tried = trial(&server, &["--no-waits"], (3, 300), |number| {
                let mut client = clients[number].lock().unwrap();
                for statement in statements {
                    client.run(statement).unwrap();
                }
            });
            let json = assert_counted(version, &tried, statements.len() as u64, 3);
            assert_eq!(number(&json, "/lost"), 0, "{version}: {json}");
        }
    }
}

/// The digests of a trial with the number of their statements, and how many others begin alike.
fn digests(json: &Value) -> BTreeMap<String, (u64, u64)> {
    let digest = |one: &Value| {
        let text = one["digest_text"].as_str().unwrap().to_owned();
        (text, (number(one, "/statements"), number(one, "/begin_alike")))
    };
    json["digests"].as_array().unwrap().iter().map(digest).collect()
}

#[test]
fn each_digest_has_a_price_of_its_own_on_every_server() {
    for version in Version::ALL {
        let server = Server::builder(version).start().unwrap();
        // What runs inside is the same as outside, and counts there no more.
        let body = "BEGIN SELECT 1, 'no 1' AS text_1; END";
        load::session(&server).run(format!("CREATE PROCEDURE test.inside() {body}")).unwrap();
        let clients = sessions(&server, 2);
        let calls = AtomicU64::new(0);
        let tried = trial(&server, &["--by-digest", "--no-waits"], (2, CALLS), |number| {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            let mut client = clients[number].lock().unwrap();
            client.run(PACED).unwrap();
            client.run("CALL test.inside()").unwrap();
            client.run(format!("SELECT {call}, 'no {call}' AS text_1")).unwrap();
        });
        let json = assert_counted(version, &tried, 3, 2);
        let mut digests = digests(&json);
        // Where all of its reply is sent at once, it is told apart.
        digests.retain(|text, _| !text.starts_with("CALL"));
        let [(sleep, slept), (select, selected)] = &digests.iter().collect::<Vec<_>>()[..] else {
            panic!("{version}: {json}")
        };
        assert!(sleep.starts_with("DO ") && select.starts_with("SELECT "), "{version}: {json}");
        // The first of each session does not count.
        assert!(slept.0.abs_diff(selected.0) <= 4 && slept.0 >= CALLS / 2, "{version}: {json}");
        assert_eq!((slept.1, selected.1), (0, 0), "{version}: {json}");
        for one in json["digests"].as_array().unwrap() {
            let half_width = one["price"]["half_width_ns"].as_f64();
            assert!(half_width.is_some_and(|it| it > 0.0), "{version}: {one}");
        }
    }
}

#[test]
fn digests_that_begin_alike_are_one_row_that_says_so() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let clients = sessions(&server, 1);
    let long = format!("DO SLEEP(0.0005){}", ", 1 + 1".repeat(30));
    let tried = trial(&server, &["--by-digest", "--no-waits"], (1, CALLS), |_| {
        let mut client = clients[0].lock().unwrap();
        client.run(format!("{long}, SLEEP(0)")).unwrap();
        client.run(format!("{long}, 5 - 3")).unwrap();
    });
    let json = answer(&tried.ended);
    let digests = digests(&json);
    assert_eq!(digests.values().map(|(_, alike)| *alike).collect::<Vec<_>>(), [1], "{json}");
    assert!(digests.values().all(|(count, _)| *count >= 2 * CALLS / 2), "{json}");
}

/// The thread of a session that ends serves the next one.
#[test]
fn sessions_that_come_and_go_with_each_statement_are_priced() {
    for version in [Version::Mysql80, Version::Mariadb1011] {
        let server = Server::builder(version).lease().unwrap();
        let tried = trial(&server, &["--no-waits"], (2, 600), |_| {
            let mut client = load::session(&server);
            client.run(PACED).unwrap();
            client.quit().unwrap();
        });
        // The login and the statement; its end has no answer.
        let json = assert_counted(version, &tried, 2, 2);
        assert_eq!(number(&json, "/lost"), 0, "{json}");
    }
}

#[test]
fn what_was_found_stands_in_the_header_of_the_watch() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let pid = server.pid().to_string();
    let dir = tempfile::tempdir().unwrap();
    let state = format!("WAGGLE_STATE_DIR={}", dir.path().display());
    let waggle =
        |words: &[&str]| Waggle::through(&["env", &state], &[words, &["--pid", &pid]].concat());
    let header = || waggle(&["watch", "--table", "--for", "2s"]).end().out;
    assert!(!header().contains(", measured "), "nobody has measured it");
    let mut trial = waggle(&["prove", "--for", "600s", "--within", "0ns"]);
    let ended = load::at_work(&server, PACED, |_| {
        trial.wait_for("a price", |trial| trial.err().contains(" ns each"));
        trial.interrupt()
    });
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let header = header();
    let line = header.lines().find(|line| line.contains(" costs ")).unwrap_or_default();
    assert!(line.contains(", measured ") && line.contains(&pid), "{header}");
}

#[test]
fn two_trials_at_once_do_not_disturb_each_other() {
    let server = Server::builder(Version::Mysql80).lease().unwrap();
    let clients = sessions(&server, 1);
    let pid = server.pid().to_string();
    let common = ["prove", "--json", "--pid", &pid, "--for", "600s", "--within", "0ns"];
    let mut other = Waggle::start(&common);
    let tried = trial(&server, &[], (1, CALLS), |_| {
        clients[0].lock().unwrap().run(PACED).unwrap();
    });
    assert_sound(Version::Mysql80, &answer(&tried.ended), 1);
    other.wait_for("the other one", |waggle| waggle.err().contains("statements"));
    assert_eq!(number(&answer(&other.interrupt()), "/lost"), 0);
}

#[test]
fn without_statements_nothing_is_said_of_a_price() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let pid = server.pid().to_string();
    let ended = Waggle::start(&["prove", "--json", "--pid", &pid, "--for", "1s"]).end();
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
    assert!(ended.err.contains("the server has ended: SIGKILL from pid "), "{}", ended.err);
    assert!(ended.out.contains("Not measured"), "{}", ended.out);
}

#[test]
fn what_cannot_be_priced_is_refused() {
    let [one, _other] = [Version::Mysql9, Version::Mysql80]
        .map(|version| Server::builder(version).lease().unwrap());
    let several = Waggle::start(&["prove"]).end();
    assert_eq!(several.code, Some(2), "{}", several.err);
    let said = &several.err;
    assert!(said.contains("choose one of") && said.contains("--pid"), "{said}");
    let pid = one.pid().to_string();
    let trap = Waggle::start(&["prove", "--pid", &pid, "--hook", "uprobe"]).end();
    assert_eq!(trap.code, Some(4), "{}", trap.err);
    let said = &trap.err;
    assert!(said.contains("a breakpoint does not tell when a request comes"), "{said}");
    for (wrong, words) in [
        (&["--share", "2"][..], "no share"),
        (&["--within", "5 parsecs"], "no time"),
        (&["--within", "100"], "write 100ns"),
        (&["--for", "0s"], "too short"),
        (&["--nested"], "cannot be switched"),
    ] {
        let ended = Waggle::start(&[&["prove"][..], wrong].concat()).end();
        assert_eq!(ended.code, Some(2), "{wrong:?}: {}", ended.err);
        assert!(ended.err.contains(words), "{wrong:?}: {}", ended.err);
    }
}

/// Measures: in the long tier.
#[test]
fn a_time_that_is_injected_is_found() {
    let server = Server::builder(Version::Mysql9).lease().unwrap();
    let clients = sessions(&server, 4);
    let tried = trial(&server, &["--inject", "5us"], (4, 300_000), |number| {
        clients[number].lock().unwrap().run("SELECT 1").unwrap();
    });
    let json = answer(&tried.ended);
    let [found, half_width] =
        ["ns", "half_width_ns"].map(|key| json["total"][key].as_f64().unwrap());
    let injected = json["injected_ns"].as_f64().unwrap();
    assert!((found - injected).abs() <= half_width + 0.05 * injected, "{json}");
}
