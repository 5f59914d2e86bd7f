//! `waggle verify`

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::anyhow;
use waggle_model::visible::on_a_line;
use waggle_mysql::verify::{Field, ReportJson};
use waggle_mysql::{Connection, Report};
use waggle_observe::no_server;

use super::account::AccountArgs;
use super::connect::connect;
use super::watch::{CaptureArgs, until};
use super::{Failure, Outcome, print, some_time, stop_on_signal};
use crate::lacking;
use crate::streams::tell;
use crate::text::printable;
use crate::verification::Verification;

/// Compare what is captured with what the server itself counts; exit code 1 where they differ for no known reason.
///
/// The account and its password come from MySQL option files or a login path, never from an
/// argument. It needs SELECT on performance_schema.* and nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle verify --for 10s --defaults-file /etc/mysql/waggle.cnf")]
pub(super) struct Args {
    /// Capture for this time; until Ctrl-C without it. A bare number is seconds.
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
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
    let capture = args.capture.attach(true, false, &stop)?;
    if capture.watched().is_empty() {
        return Err(Failure::Cannot(anyhow!(
            "{}; start one, or run waggle where it runs",
            no_server()
        )));
    }
    let connection = connect(&options, Connection::open)?;
    let verification = Verification::begin(capture, connection).map_err(Failure::Config)?;
    let pid = verification.pid();
    let ready = || tell!("waggle: pid {pid}: the counters are read; capturing");
    let is_over = &mut until(args.duration, &stop);
    let mut report = verification.run(is_over, ready).map_err(Failure::Cannot)?;
    // What the server keeps may hold a secret: under ANSI_QUOTES a statement in double quotes is a name.
    for one in &mut report.differing {
        one.digest_text = printable(one.digest_text.as_bytes(), None, false);
    }
    if !args.capture.nested {
        report.not_compared.push(NESTED_OFF.to_owned());
    }
    let is_json = args.json || !io::stdout().is_terminal();
    print(is_json, &ReportJson::from(&report), || in_words(&report))?;
    Ok(if report.passed() { Outcome::Done } else { Outcome::No })
}

/// A blind spot, named where it is not looked into.
const NESTED_OFF: &str = "statements inside procedures, triggers and events, and those that a \
                          replica applies: --nested is off";
/// waggle and the server take times at different moments, so only their sum is shown.
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
    if let Some(misread) = lacking::misread(&report.lost) {
        text.push_str(&format!("{misread}\n"));
    }
    if let Some(share) = report.share_in_doubt().filter(|_| report.in_doubt > 0) {
        text.push_str(&format!(
            "in doubt {} ({:.2} %): the server may have counted them while the digests were read\n",
            report.in_doubt,
            share * 100.0
        ));
    }
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
            on_a_line(&one.digest_text)
        ));
    }
    for why in &report.not_compared {
        text.push_str(&format!("not compared: {}\n", on_a_line(why)));
    }
    text.push_str(match (report.passed(), report.digests_differing) {
        (false, _) => "NOT verified\n",
        (true, 0) => "verified\n",
        (true, _) => "verified: every difference has a known reason\n",
    });
    text
}
