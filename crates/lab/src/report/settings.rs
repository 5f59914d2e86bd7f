//! Which rows the profiles of the scenarios set.

use waggle_instrumentation::profile::{
    Base, ConsumerRule, Family, InstrumentRule, MetricRule, Profile, Servers,
};

use crate::suite::{DEFAULT, Suite};

/// How to read what [`profiles`] says.
pub(super) const RULE: &str = "What each profile sets: rows of setup_instruments, of setup_consumers and of \
                               INNODB_METRICS; % stands for any characters, and of two rules that name \
                               a row the later one wins. What that needs is set with it (the abstract \
                               statements of a statement, the consumers above a consumer), and what a \
                               server ignores is left out (times of memory and of errors). What does \
                               not read as set after a turn voids the window.";

/// A line for each profile of a suite; that of the default is among them where another begins with it.
pub(super) fn profiles(suite: &Suite) -> Vec<String> {
    let line = |(name, profile): (&str, Profile)| format!("{name}: {}", in_words(&profile));
    suite.profiles().into_iter().map(line).collect()
}

fn in_words(profile: &Profile) -> String {
    let mut rules = vec![match profile.base {
        Base::Current => "what is set stays".to_owned(),
        Base::Off => "all instruments: ENABLED NO, TIMED NO; all consumers: ENABLED NO".to_owned(),
        Base::Default => format!("first as {DEFAULT}"),
    }];
    rules.extend(profile.instruments.iter().map(instruments));
    rules.extend(profile.consumers.iter().map(consumers));
    rules.extend(profile.metrics.iter().map(metrics));
    rules.join("; ")
}

fn instruments(rule: &InstrumentRule) -> String {
    let InstrumentRule { names, except, enabled, timed, on } = rule;
    let except = match except.is_empty() {
        true => String::new(),
        false => format!(" without {}", except.join(", ")),
    };
    let enabled = enabled.map(|is_on| format!("ENABLED {}", yes(is_on)));
    let timed = timed.map(|is_on| format!("TIMED {}", yes(is_on)));
    let set: Vec<String> = enabled.into_iter().chain(timed).collect();
    format!("instruments {}{except}{}: {}", names.join(", "), servers(on), set.join(", "))
}

fn consumers(rule: &ConsumerRule) -> String {
    let ConsumerRule { names, enabled, on } = rule;
    format!("consumers {}{}: ENABLED {}", names.join(", "), servers(on), yes(*enabled))
}

fn metrics(rule: &MetricRule) -> String {
    let status = if rule.enabled { "enabled" } else { "disabled" };
    format!("counters of InnoDB {}: STATUS {status}", rule.names.join(", "))
}

fn yes(is_on: bool) -> &'static str {
    if is_on { "YES" } else { "NO" }
}

/// On which servers a rule holds; nothing where it does on all.
fn servers(on: &Servers) -> String {
    let Servers { family, since, before } = on;
    if *on == Servers::default() {
        return String::new();
    }
    let family = match family {
        Some(Family::Mysql) => "MySQL",
        Some(Family::Mariadb) => "MariaDB",
        None => "servers",
    };
    let since = since.as_ref().map_or_else(String::new, |since| format!(" from {since}"));
    let before = before.as_ref().map_or_else(String::new, |before| format!(" before {before}"));
    format!(" (on {family}{since}{before})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(suite: &str, profile: &str) -> String {
        let begin = format!("{profile}: ");
        let lines = profiles(&Suite::find(suite).unwrap());
        let own: Vec<&String> = lines.iter().filter(|line| line.starts_with(&begin)).collect();
        assert_eq!(own.len(), 1, "{lines:?}");
        own[0].clone()
    }

    #[test]
    fn every_profile_of_every_suite_has_one_line() {
        for (name, _) in Suite::builtin() {
            let suite = Suite::find(name).unwrap();
            for profile in suite.scenarios.iter().filter_map(|one| one.profile.as_deref()) {
                assert!(line(name, profile).len() > profile.len() + 2, "{name}: {profile}");
            }
        }
    }

    #[test]
    fn a_profile_is_told_row_by_row() {
        let off = "all instruments: ENABLED NO, TIMED NO; all consumers: ENABLED NO";
        assert_eq!(line("rds", "pfson_conoff_insoff"), format!("pfson_conoff_insoff: {off}"));
        assert_eq!(
            line("modb", "all-events"),
            format!(
                "all-events: {off}; instruments % without memory/%: ENABLED YES, TIMED YES; consumers \
                 global_instrumentation, thread_instrumentation, statements_digest, %_current: ENABLED \
                 YES"
            )
        );
        assert_eq!(
            line("line", "instruments-on-metrics-on"),
            "instruments-on-metrics-on: first as default; instruments %: ENABLED YES; consumers %: \
             ENABLED YES; counters of InnoDB all: STATUS enabled"
        );
        assert_eq!(
            line("line", "metrics-off"),
            "metrics-off: what is set stays; counters of InnoDB all: STATUS disabled"
        );
        let default = line("line", "default");
        for part in [
            "; consumers events_statements_current, events_statements_history (on MySQL): ENABLED YES",
            "error (on MySQL from 8.0): ENABLED YES, TIMED YES",
        ] {
            assert!(default.contains(part), "{part}: {default}");
        }
    }
}
