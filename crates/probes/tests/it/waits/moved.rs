//! Threads that sleep, and that the kernel moves to another processor meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use waggle_model::TimeClass;
use waggle_testkit::{Server, Version};

use super::{client, run, shown, text, watching};

const SESSIONS: usize = 40;
const ROUNDS: usize = 6;
/// Who has worked more than its share stays queued when it goes to sleep.
const SLEEP: &str = "SELECT BENCHMARK(300000, 1 + 1), SLEEP(0.3)";
/// All of it, but for what it may be queued between the start of the timer and the sleep.
const LEAST_NS: u64 = 150_000_000;

/// Since Linux 6.12 a sleeper may stay in the queue of a processor for a while. If it is moved then, the kernel counts it as
/// queued until it comes back.
#[test]
fn who_is_moved_while_it_sleeps_is_told_to_have_slept() {
    let server = Server::start(Version::Mysql9).unwrap();
    let mut capture = watching(&server);
    capture.attach();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // Others for whose sake sleepers stay queued, and are moved.
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        thread::scope(|sleepers| {
            for _ in 0..SESSIONS {
                let mut session = client(&server);
                sleepers.spawn(move || (0..ROUNDS).for_each(|_| run(&mut session, SLEEP)));
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
    let seen: Vec<_> = capture.at_rest().into_iter().filter(|seen| text(seen) == SLEEP).collect();
    assert_eq!(seen.len(), SESSIONS * ROUNDS);
    for seen in &seen {
        let parts = seen.parts.unwrap();
        assert_eq!(Some(parts.total()), seen.latency_ns);
        assert!(parts.get(TimeClass::Sleep) >= LEAST_NS, "{}", shown(&parts));
    }
}
