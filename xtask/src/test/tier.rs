//! Which tests the gate runs, and which the long tier.

use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// `make test`: every kind of truth; no verdict depends on speed.
    Gate,
    /// `make test-long`: what measures, and what takes minutes.
    Long,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Gate => "gate",
            Tier::Long => "long tier",
        })
    }
}

impl Tier {
    /// A test that takes longer hangs.
    pub(crate) fn longest_test(self) -> Duration {
        match self {
            Tier::Gate => Duration::from_secs(300),
            Tier::Long => Duration::from_secs(1200),
        }
    }

    /// That of a test of a program: the directory of the package, and the name of the program.
    pub(crate) fn of(package: &str, program: &str, test: &str) -> Tier {
        let is_of = |long: &Long| {
            long.is_program(package, program)
                && (long.tests.is_empty() || long.tests.iter().any(|name| is_named(test, name)))
        };
        let is_long = package.starts_with(BENCHES) || LONG.iter().any(is_of);
        if is_long { Tier::Long } else { Tier::Gate }
    }

    /// Whether it may have tests of this program.
    pub(crate) fn has_some_of(self, package: &str, program: &str) -> bool {
        let is_bench = package.starts_with(BENCHES);
        let mut of_program = LONG.iter().filter(|long| long.is_program(package, program));
        match self {
            Tier::Gate => !is_bench && of_program.all(|long| !long.tests.is_empty()),
            Tier::Long => is_bench || of_program.next().is_some(),
        }
    }
}

/// A name in the list that is none of the tests of a program.
pub(crate) fn unknown(package: &str, program: &str, tests: &[&str]) -> Option<&'static str> {
    let lists = LONG.iter().filter(|long| long.is_program(package, program));
    let mut names = lists.flat_map(|long| long.tests);
    names.find(|name| !tests.iter().any(|test| is_named(test, name))).copied()
}

/// A name stands for a test, or for all tests of a module if it ends with `::`.
fn is_named(test: &str, name: &str) -> bool {
    test == name || (name.ends_with("::") && test.starts_with(name))
}

/// Tests of the long tier.
struct Long {
    package: &'static str,
    program: &'static str,
    /// Their names; all tests of the program where none is named.
    tests: &'static [&'static str],
}

impl Long {
    fn is_program(&self, package: &str, program: &str) -> bool {
        self.package == package && self.program == program
    }
}

const fn all(package: &'static str, program: &'static str) -> Long {
    Long { package, program, tests: &[] }
}

const fn some(
    package: &'static str,
    program: &'static str,
    tests: &'static [&'static str],
) -> Long {
    Long { package, program, tests }
}

/// Where the packages are of which the gate tests nothing.
const BENCHES: &str = "bench/";

const LONG: &[Long] = &[
    all("crates/lab", "coverage"),
    all("crates/lab", "noise_floor"),
    all("crates/lab", "pictures"),
    all("crates/lab", "published_effects"),
    all("crates/lab", "reckoned"),
    all("crates/stats", "coverage"),
    all("crates/waggle", "clock"),
    some(
        "crates/lab",
        "it",
        &["load::transactions_that_arrive_keep_their_rate_and_wait_for_a_free_session"],
    ),
    some("crates/probes", "it", &["waits::counted::"]),
    some("crates/waggle", "guide", &["a_price_is_told_as_the_guide_says"]),
    some("crates/waggle", "ddl", &["side_by_side::both_tell_the_same_times::"]),
    some(
        "crates/waggle",
        "it",
        &[
            "bad_days::standstill::a_server_that_a_debugger_holds_is_shown_so",
            "bad_days::leaving::attaching_and_detaching_a_hundred_times_under_load_leaks_nothing",
            "busy::a_load_that_does_not_stop_is_proven_per_digest",
            "hostile::held_up::memory_that_never_answers_costs_its_process",
            "hostile::processes::hostile_processes_of_three_users_cost_themselves",
            "prove::a_time_that_is_injected_is_found",
            "secrets::no_secret_leaves_waggle_by_any_output",
        ],
    ),
    some(
        "crates/waggle",
        "lab",
        &[
            "disturbed::",
            "foreign::under_the_load_of_others_statements_are_measured_and_transactions_are_not",
            "foreign::what_can_be_changed_while_a_server_runs_is_measured_and_all_is_as_before",
            "interrupted::",
            "limits::a_load_at_a_fixed_rate_has_one_where_the_baseline_can_hold_it_and_else_is_not_run",
            "reported::memory_is_read_on_servers_that_were_just_started_and_is_0_where_there_is_none",
            "reported::servers_side_by_side_are_measured_and_reported_in_the_shape_of_the_source",
            "reported::where_every_arm_has_a_restart_servers_come_one_after_another",
            "set_first::",
        ],
    ),
    some(
        "crates/waggle",
        "pfs",
        &[
            "calibrating::a_calibration_prices_the_server_and_leaves_no_server_behind",
            "calibrating::a_private_server_does_not_outlive_a_killed_waggle_and_its_files_not_the_next",
            "guarding::what_costs_nothing_stays",
            "guarding::what_ends_statements_is_undone_at_once",
            "guarding::what_makes_statements_wait_is_undone_at_once",
            "guarding::what_makes_the_server_slower_is_undone_at_once",
            "guarding::what_somebody_else_changes_while_the_server_is_measured_is_what_comes_back",
            "guarding::who_may_change_settings_may_guard_them",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_of_the_long_tier_by_its_name_its_module_or_its_program() {
        let of = |program, test| Tier::of("crates/waggle", program, test);
        assert_eq!(of("clock", "anything"), Tier::Long);
        assert_eq!(Tier::of("bench/tap", "waggle_bench", "a_unit_test"), Tier::Long);
        assert_eq!(of("pfs", "guarding::what_costs_nothing_stays"), Tier::Long);
        assert_eq!(of("pfs", "guarding::what_costs_nothing_stays_more"), Tier::Gate);
        assert!(is_named("a::b", "a::") && !is_named("ab::b", "a::"));
        let has_some_of = |program| {
            [Tier::Gate, Tier::Long].map(|tier| tier.has_some_of("crates/waggle", program))
        };
        assert_eq!(has_some_of("clock"), [false, true]);
        assert_eq!(has_some_of("pfs"), [true, true]);
        assert_eq!(has_some_of("locks"), [true, false]);
    }
}
