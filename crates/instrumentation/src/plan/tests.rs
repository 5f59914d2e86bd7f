use std::collections::BTreeMap;

use waggle_model::Flavour;

use super::*;
use crate::state::Rows;

const VERSION: ServerVersion = ServerVersion { flavour: Flavour::Mysql, number: [9, 7, 0] };

/// A small server, everything off but what cannot be: in each line the table, the key of a row, and its settings.
const SERVER: &str = "\
setup_instruments memory/performance_schema/users = YES -
setup_instruments memory/sql/x = NO -
setup_instruments statement/abstract/Query = NO NO
setup_instruments statement/sql/drop_table = NO NO
setup_instruments statement/sql/select = NO NO
setup_instruments wait/lock/metadata/sql/mdl = NO NO
setup_consumers global_instrumentation = NO
setup_consumers thread_instrumentation = NO
setup_consumers events_statements_current = NO
setup_consumers events_statements_history_long = NO
setup_actors % % % = YES YES
setup_objects TABLE % % = YES YES
setup_objects TABLE mysql % = NO NO
setup_objects EVENT % % = YES YES
setup_threads thread/sql/event_worker = YES YES
setup_threads thread/sql/main = YES YES
threads 1 = YES YES
threads 2 = YES YES
threads 3 = YES YES
";

fn state() -> State {
    let mut tables: BTreeMap<Table, Rows> = BTreeMap::new();
    for line in SERVER.lines() {
        let (key, settings) = line.split_once(" = ").unwrap();
        let (name, key) = key.split_once(' ').unwrap();
        let table = Table::ALL.into_iter().find(|table| table.name() == name).unwrap();
        let settings = settings.split(' ').map(|value| (value != "-").then(|| value.to_owned()));
        let key = key.split(' ').map(str::to_owned).collect();
        tables.entry(table).or_default().insert(key, settings.collect());
    }
    State::of(tables)
}

fn sessions() -> Vec<Session> {
    let client = |thread, user: &str| Session {
        thread,
        name: "thread/sql/one_connection".into(),
        user: Some(user.into()),
        host: Some("localhost".into()),
    };
    let daemon = Session { thread: 1, name: "thread/sql/main".into(), user: None, host: None };
    vec![daemon, client(2, "app"), client(3, "batch")]
}

fn plan_of(profile: &str, filter: &Filter) -> Result<Plan, PlanError> {
    plan_from(&state(), profile, filter)
}

fn plan_from(state: &State, profile: &str, filter: &Filter) -> Result<Plan, PlanError> {
    plan_on(VERSION, state, profile, filter)
}

fn plan_on(
    version: ServerVersion,
    state: &State,
    profile: &str,
    filter: &Filter,
) -> Result<Plan, PlanError> {
    let profile = format!("question = 'q?'\nexpected_cost = 'c'\n{profile}");
    let profile = Profile::parse("test", &profile).unwrap();
    let sessions = sessions();
    let wanted = Wanted { profile: &profile, filter, sessions: &sessions, version };
    Plan::new(state, &wanted)
}

/// Table, key and what it holds after, in words.
fn after(plan: &Plan) -> Vec<String> {
    let line = |change: &Change| {
        let after = change.after.iter().flatten();
        let after: Vec<&str> = after.map(|value| value.as_deref().unwrap_or("-")).collect();
        format!("{} {} {}", change.table.name(), change.key.join(" "), after.join(" "))
    };
    plan.changes.iter().map(|change| line(change).trim_end().to_owned()).collect()
}

#[test]
fn what_a_statement_and_a_consumer_need_is_added_and_told() {
    let profile = "[[instruments]]\nnames = ['statement/sql/drop%']\nenabled = true\ntimed = true\n\
                   [[consumers]]\nnames = ['events_statements_history_long']\nenabled = true\n";
    let plan = plan_of(profile, &Filter::default()).unwrap();
    assert_eq!(
        after(&plan),
        [
            "setup_instruments statement/abstract/Query YES YES",
            "setup_instruments statement/sql/drop_table YES YES",
            "setup_consumers events_statements_current YES",
            "setup_consumers events_statements_history_long YES",
            "setup_consumers global_instrumentation YES",
            "setup_consumers thread_instrumentation YES",
        ]
    );
    let added: Vec<&str> = plan.added.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        added,
        [
            "statement/abstract/Query",
            "events_statements_current",
            "thread_instrumentation",
            "global_instrumentation"
        ]
    );
}

/// The small server with everything on.
fn all_on() -> State {
    let mut state = state();
    for table in [Table::Instruments, Table::Consumers] {
        for settings in state.rows_mut(table).unwrap().values_mut() {
            settings.iter_mut().for_each(|setting| set(setting, true));
        }
    }
    state
}

fn consumer(name: &str, enabled: bool) -> String {
    format!("[[consumers]]\nnames = ['{name}']\nenabled = {enabled}\n")
}

fn instrument(name: &str, settings: &str) -> String {
    format!("[[instruments]]\nnames = ['{name}']\n{settings}\n")
}

fn assert_makes(state: &State, profile: &str, changes: &[&str]) {
    let plan = plan_from(state, profile, &Filter::default()).unwrap();
    assert_eq!(after(&plan), changes, "{profile}");
}

#[test]
fn what_a_rule_turns_off_stays_off_though_what_is_on_needs_it() {
    let history = "events_statements_history_long";
    for name in ["global_instrumentation", "thread_instrumentation", "events_statements_current"] {
        let off = format!("setup_consumers {name} NO");
        assert_makes(&all_on(), &consumer(name, false), &[&off]);
        // Also where a consumer below is asked for, which is on already, in either order.
        let (no, yes) = (consumer(name, false), consumer(history, true));
        assert_makes(&all_on(), &format!("base = 'current'\n{no}{yes}"), &[&off]);
        assert_makes(&all_on(), &format!("{yes}{no}"), &[&off]);
    }
    let query = "setup_instruments statement/abstract/Query";
    let abstract_ = |settings| instrument("statement/abstract/%", settings);
    assert_makes(&all_on(), &abstract_("enabled = false"), &[&format!("{query} NO YES")]);
    assert_makes(&all_on(), &abstract_("timed = false"), &[&format!("{query} YES NO")]);
    let asked = instrument("statement/sql/%", "enabled = true\ntimed = true");
    let both = format!("{}{asked}", abstract_("enabled = false"));
    assert_makes(&all_on(), &both, &[&format!("{query} NO YES")]);
}

#[test]
fn what_a_rule_turns_off_with_those_that_need_it_is_added_where_one_of_them_is_asked_for() {
    let history = consumer("events_statements_history_long", true);
    assert_makes(&all_on(), &format!("{}{history}", consumer("%", false)), &[]);
    let select = instrument("statement/sql/select", "enabled = true\ntimed = true");
    let statements = instrument("statement/%", "enabled = false\ntimed = false");
    let off = ["setup_instruments statement/sql/drop_table NO NO"];
    assert_makes(&all_on(), &format!("{statements}{select}"), &off);
}

#[test]
fn what_was_on_before_and_is_not_asked_for_needs_nothing() {
    let mut state = all_on();
    let off = [
        (Table::Consumers, "thread_instrumentation"),
        (Table::Instruments, "statement/abstract/Query"),
    ];
    for (table, name) in off {
        let rows = state.rows_mut(table).unwrap();
        set(&mut rows.get_mut(&vec![name.to_owned()]).unwrap()[ENABLED], false);
    }
    assert_makes(&state, &instrument("wait/%", "enabled = true"), &[]);
    // One that is asked for needs those far above it, too.
    assert_makes(
        &state,
        &consumer("events_statements_history_long", true),
        &["setup_consumers thread_instrumentation YES"],
    );
    assert_makes(
        &state,
        &instrument("statement/sql/select", "timed = true"),
        &["setup_instruments statement/abstract/Query YES YES"],
    );
}

#[test]
fn what_the_server_ignores_is_not_planned_and_told() {
    let profile = "base = 'off'\n[[instruments]]\nnames = ['memory/sql/%']\nenabled = true\n\
                   timed = true\n";
    let plan = plan_of(profile, &Filter::default()).unwrap();
    assert_eq!(after(&plan), ["setup_instruments memory/sql/x YES -"]);
    assert_eq!(plan.impossible[0].0, "memory/performance_schema/%");
    assert!(plan.later[0].starts_with("memory: "), "{:?}", plan.later);
}

#[test]
fn a_rule_for_this_server_that_fits_nothing_on_it_is_told() {
    let older = "on = { before = '9.0' }\n";
    let rules = [
        instrument("wiat/%", "enabled = true"),
        consumer("events_waist_current", true),
        instrument("wait/%", "enabled = true"),
        consumer("nosuch", true) + older,
        instrument("nosuch", "enabled = true") + older,
    ];
    let plan = plan_of(&rules.concat(), &Filter::default()).unwrap();
    let told = |name: &str, what: &str| {
        (name.to_owned(), format!("this server has no {what} of this name"))
    };
    let expected = [told("wiat/%", "instrument"), told("events_waist_current", "consumer")];
    assert_eq!(plan.impossible, expected);
}

#[test]
fn a_wait_for_a_metadata_lock_shows_locks_to_come() {
    let profile = "[[instruments]]\nnames = ['wait/lock/%']\nenabled = true\n";
    let plan = plan_of(profile, &Filter::default()).unwrap();
    assert!(plan.later[0].starts_with("wait/lock/metadata: "), "{:?}", plan.later);
}

#[test]
fn what_an_old_server_takes_at_its_start_only_is_told_with_the_remedy() {
    let mut state = state();
    let mutex = vec!["wait/synch/mutex/sql/LOCK_open".to_owned()];
    state.rows_mut(Table::Instruments).unwrap().insert(mutex, yes_no(false, false));
    let profile = instrument("wait/synch/%", "enabled = true");
    let told = |number| {
        let version = ServerVersion { flavour: Flavour::Mysql, number };
        plan_on(version, &state, &profile, &Filter::default()).unwrap().later
    };
    assert_eq!(told([5, 7, 12]), [""; 0]);
    let old = told([5, 7, 11]);
    assert_eq!(old.len(), 1, "{old:?}");
    assert!(old[0].starts_with("wait/synch: "), "{old:?}");
    assert!(old[0].contains("restart") && old[0].contains("waggle pfs persist"), "{old:?}");
}

#[test]
fn an_account_is_recorded_alone_in_new_sessions_and_in_those_that_are_there() {
    let filter = Filter { accounts: vec!["app@%".parse().unwrap()], ..Filter::default() };
    let plan = plan_of("", &filter).unwrap();
    assert_eq!(
        after(&plan),
        ["setup_actors % % %", "setup_actors % app % YES YES", "threads 3 NO NO"]
    );
}

#[test]
fn a_state_with_the_changes_of_a_plan_is_what_they_make_of_it() {
    let filter = Filter { accounts: vec!["app@%".parse().unwrap()], ..Filter::default() };
    // A row is removed, one is added, and one is written.
    let plan = plan_of("", &filter).unwrap();
    let after = state().with(&plan.changes);
    assert_eq!(difference(&state(), &after), plan.changes);
    assert_eq!(after.row(Table::Actors, &["%"; 3].map(str::to_owned).to_vec()), None);
}

#[test]
fn a_schema_or_an_object_is_recorded_alone() {
    let filter = Filter {
        schemas: vec!["shop".into()],
        objects: vec!["table:mysql.user".parse().unwrap()],
        ..Filter::default()
    };
    assert_eq!(
        after(&plan_of("", &filter).unwrap()),
        [
            "setup_objects EVENT % % NO NO",
            "setup_objects TABLE % % NO NO",
            "setup_objects EVENT shop % YES YES",
            "setup_objects TABLE mysql user YES YES",
            "setup_objects TABLE shop % YES YES",
        ]
    );
}

#[test]
fn a_thread_is_chosen_by_number_and_by_name() {
    let by = |name: &str| {
        let filter = Filter { threads: vec![name.parse().unwrap()], ..Filter::default() };
        plan_of("", &filter)
    };
    // Threads that come are none of them.
    let worker = "setup_threads thread/sql/event_worker NO NO";
    let main = "setup_threads thread/sql/main NO NO";
    let alone = ["setup_actors % % %", worker, main, "threads 1 NO NO", "threads 3 NO NO"];
    assert_eq!(after(&by("2").unwrap()), alone);
    assert_eq!(after(&by("thread/sql/one%").unwrap()), [worker, main, "threads 1 NO NO"]);
    for missing in ["77", "thread/sql/nosuch"] {
        let error = by(missing).unwrap_err().to_string();
        assert!(error.contains(missing) && error.contains("setup_threads"), "{error}");
    }
}

#[test]
fn a_thread_that_is_still_to_come_is_chosen_by_the_name_of_its_kind() {
    let threads = vec!["thread/sql/event%".parse().unwrap()];
    let plan = plan_of("", &Filter { threads, ..Filter::default() }).unwrap();
    assert_eq!(
        after(&plan),
        [
            "setup_actors % % %",
            "setup_threads thread/sql/main NO NO",
            "threads 1 NO NO",
            "threads 2 NO NO",
            "threads 3 NO NO",
        ]
    );
}

#[test]
fn what_is_no_account_object_or_thread_is_refused_with_a_remedy() {
    assert!("@h".parse::<crate::filter::Account>().unwrap_err().contains("user@host"));
    for wrong in ["TABLE", "TABLE:x", "VIEW:a.b", "TABLE:.b", "TABLE:a."] {
        let error = wrong.parse::<crate::filter::Object>().unwrap_err();
        assert!(error.contains("TYPE:schema.name") && error.contains(wrong), "{error}");
    }
    assert!("one_connection".parse::<crate::filter::ThreadName>().is_err());
}

#[test]
fn a_consumer_below_one_that_is_off_is_dead() {
    let mut state = state();
    for (key, row) in state.rows_mut(Table::Consumers).unwrap() {
        row[0] = Some(if key[0] == "thread_instrumentation" { "NO" } else { "YES" }.into());
    }
    let dead = |name: &str| (name.to_owned(), "thread_instrumentation".to_owned());
    assert_eq!(
        dead_consumers(&state),
        [dead("events_statements_current"), dead("events_statements_history_long")]
    );
}
