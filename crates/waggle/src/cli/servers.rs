//! `waggle servers`

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use waggle_model::Reading;
use waggle_probes::tap::{Tap, TapError, TapOptions};
use waggle_probes::target::discover::{Found, describe, servers};
use waggle_probes::target::recognise::{Builds, Recognised};

use super::{Failure, Outcome};

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
    why_not: Option<String>,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let proc_root = Path::new("/proc");
    let mut builds = Builds::default();
    let mut tap = Tap::new(TapOptions::default());
    let rows: Vec<Row> = servers(proc_root)
        .iter()
        .map(|found| row(proc_root, found, &mut builds, &mut tap))
        .collect();
    let mut out = io::stdout().lock();
    if args.json {
        for row in &rows {
            serde_json::to_writer(&mut out, row).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        return Ok(Outcome::Done);
    }
    if rows.is_empty() {
        writeln!(out, "no mysqld or mariadbd runs on this host")?;
    }
    for row in &rows {
        write!(out, "{}", in_words(row))?;
    }
    Ok(Outcome::Done)
}

fn row(
    proc_root: &Path,
    found: &Found,
    builds: &mut Builds,
    tap: &mut Result<Tap, TapError>,
) -> Row {
    let description = describe(proc_root, found.pid);
    let recognised = builds.recognise(found);
    let server = recognised.as_ref().ok().map(|recognised| &recognised.server);
    let why_not = match &recognised {
        Ok(recognised) => refusal(tap, recognised),
        Err(error) => Some(error.to_string()),
    };
    let listens = description.listens.value().map(|list| list.iter().map(ToString::to_string));
    Row {
        pid: found.pid,
        flavour: server.map(|server| server.flavour.to_string()),
        version: server.map(|server| server.version.clone()),
        data_directory: description.data_directory.value().map(|path| path.display().to_string()),
        listens: listens.map(Iterator::collect).unwrap_or_default(),
        uptime_s: description.uptime.value().map(Duration::as_secs),
        user: match &description.user {
            Reading::Value(user) => Some(user.name.clone().unwrap_or(user.uid.to_string())),
            Reading::Absent(_) => None,
        },
        confined: confined(&description.confinement),
        attachable: why_not.is_none(),
        why_not,
    }
}

/// Why the tap cannot be attached to a server; `None` where it was, for a moment.
fn refusal(tap: &mut Result<Tap, TapError>, recognised: &Recognised) -> Option<String> {
    let tap = match tap {
        Ok(tap) => tap,
        Err(error) => return Some(error.to_string()),
    };
    let attached = tap.attach(&recognised.instance, &recognised.layout);
    tap.detach(recognised.server.pid);
    attached.err().map(|error| error.to_string())
}

fn confined(confinement: &waggle_probes::target::discover::Confinement) -> Option<String> {
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
    let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let mut text = format!(
        "{} {}, pid {}, up {}\n  data directory  {}\n",
        or_unknown(&row.flavour),
        or_unknown(&row.version),
        row.pid,
        row.uptime_s.map_or("unknown".into(), age),
        or_unknown(&row.data_directory),
    );
    for endpoint in &row.listens {
        text.push_str(&format!("  listens         {endpoint}\n"));
    }
    text.push_str(&format!("  user            {}\n", or_unknown(&row.user)));
    if let Some(confined) = &row.confined {
        text.push_str(&format!("  inside          {confined}\n"));
    }
    match &row.why_not {
        None => text.push_str("  attachable      yes\n"),
        Some(why) => text.push_str(&format!("  attachable      no: {why}\n")),
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
