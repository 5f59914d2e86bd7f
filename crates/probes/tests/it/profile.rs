//! Samples of processor time, from real servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use waggle_model::{Loss, ProcessorSample};
use waggle_probes::capture::{Amount, Tap, TapOptions};
use waggle_probes::servers::recognise::Recognised;
use waggle_probes::tap::Event;
use waggle_testkit::{Server, Version, wait_until};

use crate::recognised;

/// A server that hashes, as long as `meanwhile` takes.
fn busy(server: &Server, meanwhile: impl FnOnce()) {
    let mut session = server.root().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let flag = is_over.clone();
    let load = spawn(move || {
        while !flag.load(Ordering::Relaxed) {
            session.run("DO BENCHMARK(20000, SHA2(CONCAT(RAND(), 'x'), 512))").unwrap();
        }
    });
    meanwhile();
    is_over.store(true, Ordering::Relaxed);
    load.join().unwrap();
}

fn tap(server: &Server, hz: u32) -> (Tap, Recognised) {
    let recognised = recognised(server);
    let options = TapOptions { profile_hz: Some(hz), ..TapOptions::default() };
    let mut tap = Tap::new(options).unwrap();
    tap.attach(&recognised.instance, &recognised.layout).unwrap();
    assert_eq!(tap.profile_refusal(server.pid()), None);
    (tap, recognised)
}

#[test]
fn a_sample_has_the_key_of_the_statement_that_ends_after_it() {
    Version::each(|version| {
        let server = Server::start(version).unwrap();
        let (mut tap, _) = tap(&server, 499);
        let (mut samples, mut keys) = (Vec::<ProcessorSample>::new(), Vec::new());
        busy(&server, || {
            for _ in 0..40 {
                sleep(Duration::from_millis(25));
                tap.drain_events(Amount::UpToNow, |event| match event {
                    Event::Ended(statement) => keys.push(statement.key()),
                    Event::Sampled(sample) => samples.push(sample.clone()),
                    Event::Ready(_) | Event::Waits(_) => {}
                });
            }
        });
        tap.drain_events(Amount::UpToNow, |event| {
            if let Event::Ended(statement) = event {
                keys.push(statement.key());
            }
        });
        let of_sessions: Vec<_> = samples.iter().filter_map(|sample| sample.statement).collect();
        let known = of_sessions.iter().filter(|key| keys.contains(key)).count();
        assert!(of_sessions.len() > 20, "{version}: {} samples", of_sessions.len());
        assert!(
            known * 100 >= of_sessions.len() * 95,
            "{version}: {known} of {}",
            of_sessions.len()
        );
        let deepest = samples.iter().map(|sample| sample.user.len()).max();
        assert!(deepest > Some(4), "{version}: {deepest:?}");
        assert!(samples.iter().all(|sample| sample.pid == server.pid() && sample.tid > 0));
        assert!(samples.iter().all(|sample| sample.took_ns > 0));
    });
}

#[test]
fn samples_that_nobody_reads_in_time_are_counted_and_cost_no_more() {
    let server = Server::start(Version::Mysql9).unwrap();
    let (mut tap, _) = tap(&server, 999);
    let pid = server.pid();
    busy(&server, || {
        wait_until("a ring is full", || tap.losses(pid).get(Loss::ProfileSample) > 0);
    });
    let mut samples = 0;
    tap.drain_events(Amount::UpToNow, |event| {
        samples += u64::from(matches!(event, Event::Sampled(_)));
    });
    assert!(samples > 100, "{samples}");
    // A full ring loses the statements of its processor, too; a lost sample is none.
    let lost = tap.losses(pid);
    assert_eq!(lost.statements(), lost.get(Loss::RingFull));
    let all = tap.detach(pid);
    assert!(all.get(Loss::ProfileSample) >= lost.get(Loss::ProfileSample));
}

#[test]
fn nothing_is_sampled_unless_that_is_asked_for() {
    let server = Server::start(Version::Mysql57).unwrap();
    let Recognised { instance, layout, .. } = recognised(&server);
    let mut tap = Tap::new(TapOptions::default()).unwrap();
    tap.attach(&instance, &layout).unwrap();
    let mut samples = 0;
    busy(&server, || {
        sleep(Duration::from_millis(200));
        tap.drain_events(Amount::UpToNow, |event| {
            samples += u32::from(matches!(event, Event::Sampled(_)));
        });
    });
    assert_eq!(samples, 0);
}
