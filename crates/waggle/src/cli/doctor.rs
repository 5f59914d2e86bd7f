//! `waggle doctor`

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use waggle_host::{Process, monotonic_ns};
use waggle_model::visible::on_a_line;
use waggle_model::{Flavour, Logins, Reading, Unread};
use waggle_observe::{
    Capture, CaptureOptions, RunningTexts, UnreadBook, hidden_servers, no_server,
};
use waggle_probes::capture::{Tap, TapOptions};
use waggle_probes::kernel::{self, State};
use waggle_probes::nested::Coverage;
use waggle_probes::servers::discover::servers;
use waggle_probes::servers::layout::{Confirmation, CurrentThd, Field, Layout, LockTime};
use waggle_probes::servers::recognise::Builds;
use waggle_probes::tap::{Hook, TapError};
use waggle_probes::waits::Waits;
use waggle_sql::DIGEST_LENGTH;

use super::{Failure, Outcome, pid, print};

/// How long a statement is waited for on which the layout can be checked.
const CHECK_WAIT: Duration = Duration::from_millis(300);
const CHECKS: u32 = 3;

/// Say what can be measured here, what cannot, and what to do about it.
///
/// Exit code 1 where a server of this host cannot be watched, stands still, or may be hidden from us.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle doctor --pid 4711")]
pub(super) struct Args {
    /// Only the server with this process id.
    #[arg(long, value_parser = pid)]
    pid: Option<u32>,
    /// Also say where each field lies in the server's memory, and which function told.
    #[arg(long)]
    verbose: bool,
    /// One JSON object, with everything.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    host: Vec<FactJson>,
    hooks: Vec<HookJson>,
    servers: Vec<ServerJson>,
    /// What may hide more servers from us.
    hidden: Option<String>,
}

#[derive(Debug, Serialize)]
struct FactJson {
    name: &'static str,
    state: &'static str,
    why: String,
    remedy: Option<String>,
}

#[derive(Debug, Serialize)]
struct HookJson {
    hook: &'static str,
    place: &'static str,
    usable: Option<bool>,
    why: String,
}

#[derive(Debug, Default, Serialize)]
struct ServerJson {
    pid: u32,
    flavour: Option<String>,
    version: Option<String>,
    build: Option<String>,
    watchable: bool,
    why_not: Option<String>,
    hook: Option<&'static str>,
    max_digest_length: Option<String>,
    layout_checked: bool,
    known_build: Option<String>,
    clock: Option<String>,
    lock_time: Option<String>,
    current_thd: Option<String>,
    fields: BTreeMap<&'static str, String>,
    waits: Vec<String>,
    nested: Vec<String>,
    blind_spots: Vec<&'static str>,
    /// What clients wait for before any statement of theirs begins, or that it is not known and why.
    before_statements: Vec<String>,
    /// Why nothing goes on in it.
    standstill: Option<String>,
}

/// What no field and no hook shows, and the only family where that is so.
const BLIND_SPOTS: [(Option<Flavour>, &str); 4] = [
    (
        None,
        "statements inside procedures, triggers and events, and those that a replica applies: they \
         send no reply of their own; --nested shows them",
    ),
    (
        Some(Flavour::Mysql),
        "a connection that is killed while it runs a statement gets no reply from MySQL: counted \
         as ended_unseen where it ran when the sessions were looked at, not captured",
    ),
    (
        Some(Flavour::Mysql),
        "the X protocol (port 33060) before MySQL 9: its replies are counted as x_protocol, not captured",
    ),
    (None, "COM_QUIT, COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA have no reply"),
];
/// The same of a server with a pool of threads.
const POOL: &str = "how long a request lies in the queue of the pool of threads: no latency and no load has it, and clients \
                    may wait far longer than is shown; how many wait, and the oldest for how long, is told as unread requests";

fn blind_spots(flavour: Flavour, is_pooled: bool) -> Vec<&'static str> {
    let is_of = |only: Option<Flavour>| only.is_none_or(|only| only == flavour);
    let of_all = BLIND_SPOTS.iter().filter(|(only, _)| is_of(*only)).map(|(_, spot)| *spot);
    of_all.chain(is_pooled.then_some(POOL)).collect()
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let report = Report {
        host: kernel::facts().into_iter().map(FactJson::from).collect(),
        hooks: hooks(args.pid),
        servers: examine(args.pid),
        hidden: hidden_servers(),
    };
    if let Some(pid) = args.pid
        && report.servers.is_empty()
    {
        return Err(Failure::Cannot(anyhow::anyhow!(
            "pid {pid} is not a running mysqld or mariadbd; `waggle servers` lists those that are"
        )));
    }
    print(args.json, &report, || in_words(&report, args.verbose))?;
    let is_hidden = args.pid.is_none() && report.hidden.is_some();
    let is_well = |server: &ServerJson| server.watchable && server.standstill.is_none();
    let all_well = !is_hidden && report.servers.iter().all(is_well);
    Ok(if all_well { Outcome::Done } else { Outcome::No })
}

impl From<kernel::Fact> for FactJson {
    fn from(fact: kernel::Fact) -> FactJson {
        let state = match fact.state {
            State::Yes => "yes",
            State::No => "no",
            State::Unknown => "unknown",
        };
        FactJson { name: fact.name, state, why: fact.why, remedy: fact.remedy }
    }
}

/// Tries every hook on one server, and releases it again.
fn hooks(pid: Option<u32>) -> Vec<HookJson> {
    let mut builds = Builds::default();
    let mut running = servers(Path::new("/proc"));
    running.retain(|found| pid.is_none_or(|pid| pid == found.pid));
    let target = running.iter().find_map(|found| builds.recognise(found).ok());
    let no_target = match running.is_empty() {
        true => "not tried: there is no server to try it on",
        false => "not tried: no server can be opened; the reasons follow",
    };
    let attempt = |hook: Hook| -> (Option<bool>, String) {
        let Some(target) = &target else {
            return (None, no_target.to_owned());
        };
        let tap = Tap::new(TapOptions { hook: Some(hook), ..TapOptions::default() });
        match tap.and_then(|mut tap| tap.attach(&target.instance, &target.layout)) {
            Ok(_) => (Some(true), "it was attached and let go".to_owned()),
            // Which hook it is stands beside it.
            Err(TapError::NoHook(tried)) => {
                (Some(false), tried.into_iter().map(|(_, why)| why).collect::<String>())
            }
            Err(error) => (Some(false), error.to_string()),
        }
    };
    Hook::LADDER
        .map(|hook| {
            let (usable, why) = attempt(hook);
            HookJson { hook: hook.name(), place: hook.place(), usable, why }
        })
        .into()
}

fn examine(pid: Option<u32>) -> Vec<ServerJson> {
    // The breakpoints of --nested are tried too, and released with the rest.
    let tap = TapOptions { nested: true, waits: true, ..TapOptions::default() };
    let options = CaptureOptions { pid, tap, ..CaptureOptions::default() };
    let mut capture = match Capture::new(options) {
        Ok(capture) => capture,
        Err(error) => return refused_all(pid, &error.to_string()),
    };
    capture.look_and_wait(false, &|| false);
    let mut books: BTreeMap<u32, UnreadBook> =
        capture.watched().keys().map(|pid| (*pid, UnreadBook::open(*pid))).collect();
    let mut unread = BTreeMap::new();
    // The sockets need as many looks as the layout may take.
    for check in 0..CHECKS {
        std::thread::sleep(if check == 0 { Duration::ZERO } else { CHECK_WAIT });
        capture.sample(RunningTexts::Shown);
        unread = books.iter_mut().map(|(pid, book)| (*pid, book.look(monotonic_ns()))).collect();
    }
    let unfit = capture.let_unfit_go(&mut |_| {});
    let mut servers: Vec<ServerJson> = capture
        .watched()
        .values()
        .map(|watched| ServerJson {
            pid: watched.server.pid,
            watchable: true,
            hook: Some(watched.hook.name()),
            max_digest_length: Some(digest_length_in_words(&watched.server.max_digest_length)),
            layout_checked: watched.checked,
            waits: capture.waits(watched.server.pid).map(waits_in_words).unwrap_or_default(),
            nested: capture.nested(watched.server.pid).map(nested_in_words).unwrap_or_default(),
            blind_spots: blind_spots(watched.server.flavour, watched.is_pooled()),
            before_statements: before_in_words(
                &capture.logins(watched.server.pid),
                unread.remove(&watched.server.pid),
            ),
            standstill: Process::of(watched.server.pid).standstill(),
            ..of_layout(&watched.layout)
        })
        .collect();
    servers.extend(capture.missing().iter().map(|one| refused(one.pid, &one.why.to_string())));
    servers.extend(unfit.iter().map(|gone| refused(gone.server.pid, &gone.reason())));
    servers.sort_by_key(|server| server.pid);
    servers
}

fn refused_all(pid: Option<u32>, why: &str) -> Vec<ServerJson> {
    servers(Path::new("/proc"))
        .iter()
        .filter(|found| pid.is_none_or(|pid| pid == found.pid))
        .map(|found| refused(found.pid, why))
        .collect()
}

fn refused(pid: u32, why: &str) -> ServerJson {
    ServerJson { pid, why_not: Some(why.to_owned()), ..ServerJson::default() }
}

/// Who logs in and what lies unread, where that is anything, and why it is not known.
fn before_in_words(logins: &Reading<Logins>, unread: Option<Reading<Unread>>) -> Vec<String> {
    let unread = unread.unwrap_or_else(|| Reading::absent("the server has just been found"));
    let with = |words: String, why: Option<&str>| match why {
        Some(why) => format!("{words}: {why}"),
        None => words,
    };
    let logins_in_words = Logins::in_words(logins).map(|words| with(words, logins.why()));
    let unread_in_words = Unread::in_words(&unread).into_iter();
    let unread_in_words = unread_in_words.map(|words| with(words, unread.why()));
    logins_in_words.into_iter().chain(unread_in_words).collect()
}

/// What of the time of a statement is told, and why not all.
fn waits_in_words(waits: &Waits) -> Vec<String> {
    if let Some(why) = waits.parts.why() {
        return vec![format!("absent: {why}")];
    }
    let by_state = |why: &str| {
        format!("locks are told by the state of the session alone, latches are other: {why}")
    };
    let functions = match &waits.functions {
        Reading::Value(count) => format!("told by {count} functions of the server"),
        Reading::Absent(why) => by_state(why),
    };
    let library = waits.library.why().map(by_state);
    let already = waits.already.why();
    let already =
        already.map(|why| format!("statements that run already: absent until their end: {why}"));
    [functions].into_iter().chain(library).chain(already).collect()
}

fn nested_in_words(coverage: &Coverage) -> Vec<String> {
    let part = |what: &str, reading: &Reading<&'static str>| match reading {
        Reading::Value(function) => format!("{what}: by a breakpoint on {function}"),
        Reading::Absent(why) => format!("{what}: absent: {why}"),
    };
    vec![
        part("inside procedures, triggers and events", &coverage.routines),
        part("applied by a replica", &coverage.applied),
    ]
}

/// How long the server's digests are, and what waggle does where that gives none.
fn digest_length_in_words(length: &Reading<u64>) -> String {
    match length {
        Reading::Value(0) => {
            format!("0: it makes no digests, and waggle's have {DIGEST_LENGTH} bytes")
        }
        Reading::Value(length) => format!("{length} bytes"),
        Reading::Absent(why) => {
            format!("absent: {why}; waggle's digests have {DIGEST_LENGTH} bytes, as by default")
        }
    }
}

/// How a field begins that was not found.
const ABSENT: &str = "absent";

fn of_layout(layout: &Layout) -> ServerJson {
    let field = |field: Field| match layout.fields.get(&field) {
        Some(Reading::Value(place)) => format!("{:#x}, {}", place.offset, place.how),
        Some(Reading::Absent(why)) => format!("{ABSENT}, {}: {why}", field.consequence()),
        None => format!("{ABSENT}: not looked for"),
    };
    let lock_time = match &layout.lock_time {
        Reading::Value(LockTime::Until) => "the time of day at which locking ended".to_owned(),
        Reading::Value(LockTime::Duration) => "microseconds spent in locks".to_owned(),
        Reading::Absent(why) => format!("absent: {why}"),
    };
    let current_thd = match &layout.current_thd {
        Reading::Value(CurrentThd::ThreadLocal { offset }) => {
            let sign = if *offset < 0 { '-' } else { '+' };
            format!("thread pointer {sign} {:#x}", offset.unsigned_abs())
        }
        Reading::Value(CurrentThd::PthreadKey { key_address }) => {
            format!("pthread key, kept at {key_address:#x}")
        }
        Reading::Absent(why) => format!("absent: {why}"),
    };
    ServerJson {
        flavour: Some(layout.flavour.to_string()),
        version: Some(layout.version.clone()),
        build: Some(layout.build.to_string()),
        known_build: Some(match layout.confirmation() {
            Confirmation::Unlisted => "not in the list of known builds".to_owned(),
            Confirmation::Confirmed => "confirmed by the list of known builds".to_owned(),
            Confirmation::Contradicted(fields) => {
                format!("the list of known builds contradicts {}: report it", fields.join(", "))
            }
        }),
        clock: Some(format!("{:?}", layout.clock).to_lowercase()),
        lock_time: Some(lock_time),
        current_thd: Some(current_thd),
        fields: Field::ALL.map(|one| (one.name(), field(one))).into(),
        ..ServerJson::default()
    }
}

fn in_words(report: &Report, verbose: bool) -> String {
    let mut text = String::from("this host\n");
    for fact in &report.host {
        text.push_str(&format!("  {:<22} {:<8} {}\n", fact.name, fact.state, on_a_line(&fact.why)));
        if let Some(remedy) = &fact.remedy {
            text.push_str(&format!("  {:<22} {:<8} remedy: {remedy}\n", "", ""));
        }
    }
    text.push_str("\nhooks, the first that works is used\n");
    for hook in &report.hooks {
        let usable = hook.usable.map_or("unknown", |usable| if usable { "yes" } else { "no" });
        text.push_str(&format!(
            "  {:<8} {:<8} {}: {}\n",
            hook.hook,
            usable,
            hook.place,
            on_a_line(&hook.why)
        ));
    }
    if report.servers.is_empty() {
        text.push_str(&format!("\n{}\n", no_server()));
    }
    for server in &report.servers {
        text.push_str(&server_in_words(server, verbose));
    }
    if let (Some(why), false) = (&report.hidden, report.servers.is_empty()) {
        text.push_str(&format!("\n{why}\n"));
    }
    text
}

fn server_in_words(server: &ServerJson, verbose: bool) -> String {
    if let Some(why) = &server.why_not {
        return format!("\npid {}: cannot be watched: {}\n", server.pid, on_a_line(why));
    }
    let or_unknown =
        |value: &Option<String>| on_a_line(value.as_deref().unwrap_or("unknown")).into_owned();
    let mut text = format!(
        "\npid {}: {} {}, watched on the hook `{}`\n",
        server.pid,
        or_unknown(&server.flavour),
        or_unknown(&server.version),
        server.hook.unwrap_or("unknown"),
    );
    let checked = if server.layout_checked {
        "checked on a running statement".to_owned()
    } else {
        "no statement was running: it will be checked with the first one".to_owned()
    };
    let is_lacking = |value: &str| value.starts_with(ABSENT);
    let lacking = server.fields.values().filter(|value| is_lacking(value)).count();
    let (all, more) = (server.fields.len(), if verbose { "" } else { ": --verbose lists them" });
    let mut lines = vec![
        ("build", or_unknown(&server.build)),
        ("layout", format!("{}; {checked}", or_unknown(&server.known_build))),
        ("clock of the start", or_unknown(&server.clock)),
        ("lock time is", or_unknown(&server.lock_time)),
        ("max_digest_length", or_unknown(&server.max_digest_length)),
        ("fields", format!("{} of {all} found{more}", all - lacking)),
    ];
    let current_thd = ("current_thd", or_unknown(&server.current_thd));
    lines.extend(verbose.then_some(current_thd));
    for field in Field::ALL {
        let value = server.fields.get(field.name()).cloned().unwrap_or_default();
        lines.extend((verbose || is_lacking(&value)).then_some((field.name(), value)));
    }
    for (name, value) in lines {
        text.push_str(&format!("  {name:<20} {}\n", on_a_line(&value)));
    }
    for waits in &server.waits {
        text.push_str(&format!("  where time goes      {}\n", on_a_line(waits)));
    }
    for nested in &server.nested {
        text.push_str(&format!("  with --nested        {}\n", on_a_line(nested)));
    }
    for before in &server.before_statements {
        text.push_str(&format!("  before statements    {}\n", on_a_line(before)));
    }
    if let Some(why) = &server.standstill {
        text.push_str(&format!("  stands still         {}\n", on_a_line(why)));
    }
    for spot in &server.blind_spots {
        text.push_str(&format!("  not seen: {spot}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blind_spot_of_one_family_is_not_told_of_the_other() {
        let (mysql, mariadb) =
            (blind_spots(Flavour::Mysql, false), blind_spots(Flavour::Mariadb, false));
        assert_eq!((mysql.len(), mariadb.len()), (4, 2));
        assert_eq!(blind_spots(Flavour::Mariadb, true).last(), Some(&POOL));
        assert!(!mariadb.concat().contains("MySQL"), "{mariadb:?}");
    }

    #[test]
    fn a_field_that_was_not_found_is_told_without_verbose_too() {
        let fields = [("user", "0x0, decoded f"), ("host", "absent, hosts are not known: no f")];
        let fields = fields.map(|(name, what)| (name, what.to_owned())).into();
        let server = ServerJson { fields, ..ServerJson::default() };
        let [short, long] = [false, true].map(|verbose| server_in_words(&server, verbose));
        for text in [&short, &long] {
            assert!(
                text.contains("1 of 2 found") && text.contains("hosts are not known"),
                "{text}"
            );
        }
        assert!(!short.contains("0x0") && !short.contains("current_thd"), "{short}");
        assert!(long.contains("0x0, decoded f") && long.contains("current_thd"), "{long}");
    }
}
