//! `waggle servers`

use std::collections::HashMap;
use std::io::Write;
use std::iter;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use waggle_host::{Confinement, Process, Waited};
use waggle_model::Reading;
use waggle_model::visible::on_a_line;
use waggle_observe::{hidden_servers, no_server};
use waggle_probes::capture::{Tap, TapOptions};
use waggle_probes::servers::discover::{Found, servers};
use waggle_probes::servers::owner::Owner;
use waggle_probes::servers::recognise::{Answered, Builds, RecogniseError, Recognised};
use waggle_probes::servers::user;
use waggle_probes::tap::TapError;

use super::{Failure, Outcome, write_json};
use crate::streams::{stdout, tell};

/// List the MySQL and MariaDB servers of this host.
///
/// Whether one can be watched is tried: it is attached, and let go at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle servers --json | jq -r 'select(.attachable).pid'")]
pub(super) struct Args {
    /// One JSON object per server.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    pid: u32,
    flavour: Option<String>,
    version: Option<String>,
    data_directory: Option<String>,
    listens: Vec<String>,
    uptime_s: Option<u64>,
    user: Option<String>,
    confined: Option<String>,
    attachable: bool,
    /// Why nothing goes on in it.
    standstill: Option<String>,
    why_not: Option<String>,
    /// Further processes of its user that look like servers, cannot be attached, and have no row.
    more_of_user: usize,
}

/// How long programs are read, without the time in which nobody gets to read them: those of root, mysql and the user who
/// runs waggle, and those of others.
const TRUSTED_WAIT: Duration = Duration::from_secs(12);
const OTHERS_WAIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);
/// Rows of one other user: of servers that are not attachable, and in all. He can start as many as he likes.
const REFUSED_MAX: usize = 3;
const ROWS_MAX: usize = 64;

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let mut tap = Tap::new(TapOptions::default());
    let mut rows: Vec<Row> = Vec::new();
    let mut of_user: HashMap<Owner, OfUser> = HashMap::new();
    for Answered { found, owner, outcome } in answers() {
        let is_none = !found.is_named && outcome.as_ref().is_err_and(RecogniseError::is_no_server);
        if is_none || outcome.is_err() && found.has_ended() {
            continue;
        }
        let user = of_user.entry(owner).or_default();
        let has_row = |user: &OfUser, is_refused: bool| {
            owner.is_trusted()
                || user.rows < ROWS_MAX && !(is_refused && user.refused >= REFUSED_MAX)
        };
        let mut why_not = outcome.as_ref().err().map(ToString::to_string);
        if let Ok(recognised) = &outcome
            && has_row(user, false)
        {
            why_not = refusal(&mut tap, recognised);
        }
        if has_row(user, why_not.is_some()) {
            user.refused += usize::from(why_not.is_some());
            user.rows += 1;
            user.last = rows.len();
            rows.push(row(&found, outcome.as_ref().ok(), why_not));
        } else if let Some(last) = rows.get_mut(user.last) {
            last.more_of_user += 1;
        }
    }
    rows.sort_by_key(|row| row.pid);
    let mut out = stdout();
    if args.json {
        for row in &rows {
            write_json(&mut out, row)?;
        }
        if let Some(why) = hidden_servers() {
            tell!("waggle: {why}");
        }
        return Ok(Outcome::Done);
    }
    if rows.is_empty() {
        writeln!(out, "{}", no_server())?;
    } else if let Some(why) = hidden_servers() {
        tell!("waggle: {why}");
    }
    for row in &rows {
        write!(out, "{}", in_words(row))?;
    }
    Ok(Outcome::Done)
}

/// The rows of one user.
#[derive(Default)]
struct OfUser {
    rows: usize,
    refused: usize,
    /// The number of the last one.
    last: usize,
}

/// Every process that may be a server, those of trusted users first.
fn answers() -> Vec<Answered> {
    let mut builds = Builds::default();
    servers(Path::new("/proc")).into_iter().for_each(|found| builds.ask(found));
    let mut waited = Waited::begin();
    let mut answers: Vec<Answered> = iter::from_fn(|| builds.next_answer()).collect();
    while builds.may_answer(TRUSTED_WAIT, waited.counted() < OTHERS_WAIT) {
        thread::sleep(PAUSE);
        waited.look();
        answers.extend(iter::from_fn(|| builds.next_answer()));
    }
    answers.extend(builds.give_up());
    answers.sort_by_key(|answered| (answered.owner, answered.found.pid));
    answers
}

fn row(found: &Found, recognised: Option<&Recognised>, why_not: Option<String>) -> Row {
    let process = Process::of(found.pid);
    let server = recognised.map(|recognised| &recognised.server);
    let listens = process.listens();
    Row {
        pid: found.pid,
        flavour: server.map(|server| server.flavour.to_string()),
        version: server.map(|server| server.version.clone()),
        data_directory: process.working_directory().value().map(|path| path.display().to_string()),
        listens: listens.value().into_iter().flatten().map(ToString::to_string).collect(),
        uptime_s: process.uptime().value().map(Duration::as_secs),
        user: match user(found.pid) {
            Reading::Value(user) => Some(user.name.unwrap_or(user.uid.to_string())),
            Reading::Absent(_) => None,
        },
        confined: confined(&process.confinement()),
        attachable: why_not.is_none(),
        standstill: process.standstill(),
        why_not,
        more_of_user: 0,
    }
}

/// Why the tap cannot be attached to a server; `None` if it was, for a moment.
fn refusal(tap: &mut Result<Tap, TapError>, recognised: &Recognised) -> Option<String> {
    let tap = match tap {
        Ok(tap) => tap,
        Err(error) => return Some(error.to_string()),
    };
    let attached = tap.attach(&recognised.instance, &recognised.layout);
    tap.detach(recognised.server.pid);
    attached.err().map(|error| error.to_string())
}

fn confined(confinement: &Confinement) -> Option<String> {
    if confinement.other_pids == Some(true) {
        return Some(match confinement.pid_inside {
            Some(pid) => format!("container (pid {pid} inside)"),
            None => "container".to_owned(),
        });
    }
    let chroot = confinement.chroot.as_ref().map(|root| format!("chroot {}", root.display()));
    let mounts = (confinement.other_mounts == Some(true)).then(|| "own mounts".to_owned());
    chroot.or(mounts)
}

fn in_words(row: &Row) -> String {
    let or_unknown =
        |value: &Option<String>| on_a_line(value.as_deref().unwrap_or("unknown")).into_owned();
    let name = match (&row.flavour, &row.version, &row.user) {
        (Some(flavour), Some(version), _) => {
            on_a_line(&format!("{flavour} {version}")).into_owned()
        }
        // Its program cannot be read.
        (_, _, Some(_)) => format!("server of user {}", or_unknown(&row.user)),
        (_, _, None) => "server that cannot be read".to_owned(),
    };
    let mut text = format!(
        "{name}, pid {}, up {}\n  data directory  {}\n",
        row.pid,
        row.uptime_s.map_or("unknown".into(), age),
        or_unknown(&row.data_directory),
    );
    for endpoint in &row.listens {
        text.push_str(&format!("  listens         {}\n", on_a_line(endpoint)));
    }
    text.push_str(&format!("  user            {}\n", or_unknown(&row.user)));
    if let Some(confined) = &row.confined {
        text.push_str(&format!("  inside          {}\n", on_a_line(confined)));
    }
    if let Some(why) = &row.standstill {
        text.push_str(&format!("  stands still    {}\n", on_a_line(why)));
    }
    match &row.why_not {
        None => text.push_str("  attachable      yes\n"),
        Some(why) => text.push_str(&format!("  attachable      no: {}\n", on_a_line(why))),
    }
    if row.more_of_user > 0 {
        let more = row.more_of_user;
        text.push_str(&format!(
            "  and {more} more      of this user look like servers and are not listed\n"
        ));
    }
    text
}

/// A number of seconds as people say it.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}
