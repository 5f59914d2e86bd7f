//! `waggle doctor`

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use waggle_model::Reading;
use waggle_probes::kernel::{self, State};
use waggle_probes::nested::Coverage;
use waggle_probes::tap::{Hook, Tap, TapOptions};
use waggle_probes::target::discover::servers;
use waggle_probes::target::layout::{Confirmation, CurrentThd, Field, Layout, LockTime};
use waggle_probes::target::recognise::Builds;

use super::{Failure, Outcome};
use crate::capture::{Capture, CaptureOptions};

/// How long a statement is waited for on which the layout can be checked.
const CHECK_WAIT: Duration = Duration::from_millis(300);
const CHECKS: u32 = 3;

/// Say what can be measured here, what cannot, and what to do about it.
///
/// Exit code 1 where a server of this host cannot be watched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle doctor --pid 4711")]
pub(super) struct Args {
    /// Only the server with this process id.
    #[arg(long)]
    pid: Option<u32>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    host: Vec<FactJson>,
    hooks: Vec<HookJson>,
    servers: Vec<ServerJson>,
}

#[derive(Debug, Serialize)]
struct FactJson {
    name: &'static str,
    state: &'static str,
    why: String,
    remedy: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct HookJson {
    hook: &'static str,
    place: &'static str,
    usable: Option<bool>,
    why: String,
}

#[derive(Debug, Serialize)]
struct ServerJson {
    pid: u32,
    flavour: Option<String>,
    version: Option<String>,
    build: Option<String>,
    watchable: bool,
    why_not: Option<String>,
    hook: Option<&'static str>,
    layout_checked: bool,
    known_build: Option<String>,
    clock: Option<String>,
    lock_time: Option<String>,
    current_thd: Option<String>,
    fields: BTreeMap<&'static str, String>,
    nested: Vec<String>,
    blind_spots: Vec<&'static str>,
}

/// What no field and no hook shows, on any server.
const BLIND_SPOTS: [&str; 4] = [
    "statements inside procedures, triggers and events, and those that a replica applies: they \
     send no reply of their own; --nested shows them",
    "a connection that is killed while it runs a statement gets no reply from MySQL: counted as \
     ended_unseen where it ran when the sessions were looked at, not captured",
    "MySQL X protocol (port 33060)",
    "COM_QUIT, COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA have no reply",
];

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let report = Report {
        host: kernel::facts().into_iter().map(FactJson::from).collect(),
        hooks: hooks(args.pid),
        servers: examine(args.pid),
    };
    if let Some(pid) = args.pid
        && report.servers.is_empty()
    {
        return Err(Failure::Cannot(anyhow::anyhow!(
            "pid {pid} is not a running mysqld or mariadbd; `waggle servers` lists those that are"
        )));
    }
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", in_words(&report))?;
    }
    let all_well = report.servers.iter().all(|server| server.watchable);
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

/// Tries every rung of the ladder on one server, and lets go of it again.
fn hooks(pid: Option<u32>) -> Vec<HookJson> {
    let mut builds = Builds::default();
    let target = servers(Path::new("/proc"))
        .into_iter()
        .filter(|found| pid.is_none_or(|pid| pid == found.pid))
        .find_map(|found| builds.recognise(&found).ok());
    let attempt = |hook: Hook| -> (Option<bool>, String) {
        let Some(target) = &target else {
            return (None, "there is no server to try it on".to_owned());
        };
        let tap = Tap::new(TapOptions { hook: Some(hook), ..TapOptions::default() });
        match tap.and_then(|mut tap| tap.attach(&target.instance, &target.layout)) {
            Ok(_) => (Some(true), "it was attached and let go".to_owned()),
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
    // The breakpoints of --nested are tried as well, and let go with the rest.
    let tap = TapOptions { nested: true, ..TapOptions::default() };
    let options = CaptureOptions { pid, tap };
    let mut capture = match Capture::new(options) {
        Ok(capture) => capture,
        Err(error) => return refused_all(pid, &error.to_string()),
    };
    capture.look(&mut |_| {});
    for _ in 0..CHECKS {
        capture.sample();
        if capture.watched().values().all(|watched| watched.checked) {
            break;
        }
        std::thread::sleep(CHECK_WAIT);
    }
    let mut servers: Vec<ServerJson> = capture
        .watched()
        .values()
        .map(|watched| ServerJson {
            pid: watched.server.pid,
            watchable: true,
            hook: Some(watched.hook.name()),
            layout_checked: watched.checked,
            nested: capture.nested(watched.server.pid).map(nested_in_words).unwrap_or_default(),
            ..of_layout(&watched.layout)
        })
        .collect();
    servers.extend(capture.refused().map(|(pid, why)| refused(pid, why)));
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
    ServerJson {
        pid,
        flavour: None,
        version: None,
        build: None,
        watchable: false,
        why_not: Some(why.to_owned()),
        hook: None,
        layout_checked: false,
        known_build: None,
        clock: None,
        lock_time: None,
        current_thd: None,
        fields: BTreeMap::new(),
        nested: Vec::new(),
        blind_spots: Vec::new(),
    }
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

fn of_layout(layout: &Layout) -> ServerJson {
    let field = |field: Field| match layout.fields.get(&field) {
        Some(Reading::Value(place)) => format!("{:#x}, {}", place.offset, place.how),
        Some(Reading::Absent(why)) => format!("absent: {why}"),
        None => "absent: not looked for".to_owned(),
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
        why_not: None,
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
        blind_spots: BLIND_SPOTS.into(),
        ..refused(0, "")
    }
}

fn in_words(report: &Report) -> String {
    let mut text = String::from("this host\n");
    for fact in &report.host {
        text.push_str(&format!("  {:<22} {:<8} {}\n", fact.name, fact.state, fact.why));
        if let Some(remedy) = fact.remedy {
            text.push_str(&format!("  {:<22} {:<8} remedy: {remedy}\n", "", ""));
        }
    }
    text.push_str("\nhooks, the first that works is used\n");
    for hook in &report.hooks {
        let usable = hook.usable.map_or("unknown", |usable| if usable { "yes" } else { "no" });
        text.push_str(&format!("  {:<8} {:<8} {}: {}\n", hook.hook, usable, hook.place, hook.why));
    }
    if report.servers.is_empty() {
        text.push_str("\nno mysqld or mariadbd runs on this host\n");
    }
    for server in &report.servers {
        text.push_str(&server_in_words(server));
    }
    text
}

fn server_in_words(server: &ServerJson) -> String {
    if let Some(why) = &server.why_not {
        return format!("\npid {}: cannot be watched: {why}\n", server.pid);
    }
    let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
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
        "not checked yet: no statement was running; the first one that does is used".to_owned()
    };
    for (name, value) in [
        ("build", or_unknown(&server.build)),
        ("layout", format!("{}; {checked}", or_unknown(&server.known_build))),
        ("current_thd", or_unknown(&server.current_thd)),
        ("clock of the start", or_unknown(&server.clock)),
        ("lock time is", or_unknown(&server.lock_time)),
    ] {
        text.push_str(&format!("  {name:<20} {value}\n"));
    }
    for field in Field::ALL {
        let value = server.fields.get(field.name()).cloned().unwrap_or_default();
        text.push_str(&format!("  {:<20} {value}\n", field.name()));
    }
    for nested in &server.nested {
        text.push_str(&format!("  with --nested        {nested}\n"));
    }
    for spot in &server.blind_spots {
        text.push_str(&format!("  not seen: {spot}\n"));
    }
    text
}
