//! What must hold under every kernel.

use std::thread;
use std::time::Duration;

use waggle_model::TimeClass;
use waggle_testkit::{Server, Version};

use super::bad_days::{held, waiter};
use super::{run, shown, text, watching};

/// Also run under Debian's 6.1 kernel (`cargo xtask test --long 6.1`). A kernel that has not what it needs says what.
#[test]
fn a_row_lock_is_told_as_that_or_it_is_told_why_not() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let mut holder = held(&server);
    let mut capture = watching(&server);
    // One waits already, and one waits later.
    let texts = ["UPDATE held SET v = v + 2", "UPDATE held SET v = v + 1"];
    let already = waiter(&server, &mut capture, texts[0]);
    capture.attach();
    let waits = capture.tap.waits(server.pid()).unwrap().clone();
    println!("{waits:?}");
    let waiting = waiter(&server, &mut capture, texts[1]);
    thread::sleep(Duration::from_millis(300));
    run(&mut holder, "COMMIT");
    already.join().unwrap();
    waiting.join().unwrap();
    let seen = capture.at_rest();
    for sql in texts {
        let seen = seen.iter().rfind(|seen| text(seen) == sql).unwrap();
        let Some(parts) = seen.parts else {
            let why = waits.parts.why().or(waits.already.why()).expect("no reason is told");
            assert!(!why.is_empty());
            continue;
        };
        println!("{sql}: {}", shown(&parts));
        assert_eq!(waits.parts.why(), None);
        assert_eq!(Some(parts.total()), seen.latency_ns);
        assert!(parts.get(TimeClass::RowLock) >= 250_000_000, "{sql}: {}", shown(&parts));
    }
    assert_eq!(capture.tap.overdrawn(), 0);
}
