//! Times, which are compared with a tolerance.

use waggle_model::{Histogram, Reading};

use super::{captured, server};
use crate::Difference;
use crate::counters::Bucket;
use crate::verify::{Field, Why, verify};

/// A server with calls of one digest that took so long, ns.
fn timed_server(calls: u64, sum_ns: u64, histogram: &[Bucket]) -> Difference {
    let mut server = server("9.7.4", &[("SELECT ?", calls)], calls, 0);
    let Reading::Value(digests) = &mut server.digests else { panic!("no digests") };
    digests[0].histogram = histogram.to_vec();
    digests[0].sums.timer_wait_ps = sum_ns * 1000;
    server
}

#[test]
fn where_the_end_of_the_work_is_known_the_times_of_the_server_lie_before_it() {
    for (replied, done, theirs, within, why) in [
        (10_000, 40_000, 39_000, true, None),
        (10_000, 40_000, 25_000, false, Some(Why::TimedBetween)),
        (10_000, 40_000, 50_000, false, None),
        (20_000, 40_000, 10_000, false, None),
    ] {
        let server = timed_server(1, theirs, &[]);
        let mut timed = captured(&[("SELECT ?", false, 1)]);
        for one in timed.digests.values_mut() {
            one.latency_ns.record(replied);
            one.duration_ns.record(done);
        }
        let report = verify(&timed, &server);
        assert_eq!(report.differing.is_empty(), within, "{theirs}");
        assert_eq!(report.differing.first().and_then(|one| one.why), why);
    }
}

#[test]
fn times_have_a_tolerance_and_do_not_decide() {
    for (ours_ns, theirs_ns, within, why) in [
        (1_000_000, 1_029_000, true, None),
        (10_000, 12_900, true, None),
        (10_000, 40_000, false, Some(Why::TimedLonger)),
        (40_000, 10_000, false, None),
        (1_000_000, 9_000_000, false, None),
    ] {
        let server = timed_server(1, theirs_ns, &[]);
        let mut timed = captured(&[("SELECT ?", false, 1)]);
        timed.digests.values_mut().for_each(|one| one.latency_ns.record(ours_ns));
        let report = verify(&timed, &server);
        assert!(report.passed());
        assert_eq!(report.differing.is_empty(), within, "{ours_ns} {theirs_ns}");
        assert_eq!(report.differing.first().and_then(|one| one.why), why);
    }
}

#[test]
fn percentiles_lie_within_one_bucket() {
    let mut histogram = Histogram::default();
    (0..990).for_each(|_| histogram.record(1_000_000));
    (0..10).for_each(|_| histogram.record(200_000_000));
    let bucket = |low_us: u64, high_us: u64, count| Bucket {
        low_ps: low_us * 1_000_000,
        high_ps: high_us * 1_000_000,
        count,
    };
    for (buckets, within) in [
        ([bucket(990, 1050, 990), bucket(199_000, 205_000, 10)], true),
        ([bucket(1050, 1110, 990), bucket(199_000, 205_000, 10)], true),
        ([bucket(1110, 1170, 990), bucket(199_000, 205_000, 10)], false),
        ([bucket(990, 1050, 980), bucket(199_000, 205_000, 20)], false),
    ] {
        let server = timed_server(1000, histogram.sum(), &buckets);
        let mut timed = captured(&[("SELECT ?", false, 1000)]);
        timed.digests.values_mut().for_each(|one| one.latency_ns = histogram.clone());
        let report = verify(&timed, &server);
        assert_eq!(report.fields[&Field::LatencyPercentiles].equal == 1, within, "{buckets:?}");
    }
}

#[test]
fn lock_time_is_compared_only_where_it_means_the_same() {
    let both = captured(&[("SELECT ?", false, 4)]);
    for (version, compared) in [("9.7.4", true), ("8.0.12", false), ("11.4.5-MariaDB", false)] {
        let report = verify(&both, &server(version, &[("SELECT ?", 4)], 4, 0));
        assert_eq!(report.fields.contains_key(&Field::LockTime), compared, "{version}");
        let named = report.not_compared.iter().any(|why| why.starts_with("lock_time"));
        assert_eq!(named, !compared, "{version}");
    }
}
