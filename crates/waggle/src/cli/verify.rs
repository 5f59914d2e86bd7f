//! `waggle verify`

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use waggle_mysql::verify::{Field, ReportJson};
use waggle_mysql::{Connection, Report};

use super::account::AccountArgs;
use super::watch::CaptureArgs;
use super::{Failure, Outcome, duration, stop_on_signal};
use crate::verification::Verification;

/// Compare what is captured with what the server itself counts; exit code 1 where they differ.
///
/// The account and its password come from MySQL option files or a login path, never from an
/// argument. It needs SELECT on performance_schema.* and nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle verify --for 10s --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    /// Capture for this time; until Ctrl-C without it.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    account: AccountArgs,
    /// One JSON object; the default where the output is no terminal.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    capture: CaptureArgs,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let options = args.account.read()?;
    let stop = stop_on_signal()?;
    let capture = args.capture.attach(true)?;
    let connection =
        Connection::open(&options, None).map_err(|error| Failure::Config(error.into()))?;
    let verification = Verification::begin(capture, connection).map_err(Failure::Config)?;
    let pid = verification.pid();
    let ready = || eprintln!("waggle: pid {pid}: the counters are read; capturing");
    let mut report = verification.run(args.duration, &stop, ready).map_err(Failure::Cannot)?;
    if !args.capture.nested {
        report.not_compared.push(NESTED_OFF.to_owned());
    }
    let mut out = io::stdout().lock();
    if args.json || !io::stdout().is_terminal() {
        serde_json::to_writer(&mut out, &ReportJson::from(&report)).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", in_words(&report))?;
    }
    Ok(if report.passed() { Outcome::Done } else { Outcome::No })
}

/// A blind spot, named where it is not looked into.
const NESTED_OFF: &str = "statements inside procedures, triggers and events, and those that a \
                          replica applies: --nested is off";
/// Times are taken at different moments by waggle and by the server: they are told as a sum.
const TIMES: [Field; 2] = [Field::LatencySum, Field::LatencyPercentiles];

fn in_words(report: &Report) -> String {
    let counted = report.server_counted.map_or("nothing".into(), |count| count.to_string());
    let source = report.source.map_or("no counter could be read", |source| source.name());
    let mut text = format!(
        "captured {}, the server counted {counted} ({source})\n\
         missing {}, extra {}, in flight {}, lost {}\n\
         digests compared {}, differing {}\n",
        report.captured,
        report.missing,
        report.extra,
        report.in_flight,
        report.lost.statements(),
        report.digests_compared,
        report.digests_differing,
    );
    for field in TIMES {
        if let Some(times) = report.fields.get(&field).filter(|times| times.compared > 0) {
            text.push_str(&format!(
                "{}: {} of {} digests within the tolerance (--json lists the others)\n",
                field.name(),
                times.equal,
                times.compared
            ));
        }
    }
    for one in report.differing.iter().filter(|one| !TIMES.contains(&one.field)) {
        let why = one.why.map_or(String::new(), |why| format!(" ({why})"));
        text.push_str(&format!(
            "  {}: captured {}, the server {}{why}: {}\n",
            one.field.name(),
            one.ours,
            one.theirs,
            one.digest_text
        ));
    }
    for why in &report.not_compared {
        text.push_str(&format!("not compared: {why}\n"));
    }
    text.push_str(if report.passed() { "verified\n" } else { "NOT verified\n" });
    text
}
