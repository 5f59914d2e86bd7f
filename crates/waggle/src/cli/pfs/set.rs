//! `waggle pfs set` and `waggle pfs timer`

use clap::ValueEnum;
use waggle_instrumentation::filter::Filter;
use waggle_instrumentation::plan::unmatched;
use waggle_instrumentation::profile::{ConsumerRule, InstrumentRule, Profile, Servers};
use waggle_instrumentation::status::timers;
use waggle_instrumentation::{Change, Plan, Table};
use waggle_mysql::Connection;

use super::super::account::AccountArgs;
use super::super::{Failure, Outcome};
use super::apply::events;
use super::hold::{HoldArgs, Request, hold};
use super::plan::{plan_from, state, version};

/// Set instruments or consumers by name until this command ends, and undo it then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples: waggle pfs set 'wait/io/%' on --for 5m\n          \
                        waggle pfs set consumer events_waits_current on")]
pub(super) struct Args {
    /// `PATTERN on|off|timed|untimed`, or `consumer PATTERN on|off`; % stands for any characters.
    #[arg(required = true, num_args = 2..=3, value_name = "WHAT")]
    words: Vec<String>,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    account: AccountArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    On,
    Off,
    Timed,
    Untimed,
}

pub(super) fn run(args: Args) -> Result<Outcome, Failure> {
    let profile = profile_of(&args.words)?;
    let request = Request {
        command: format!("set {}", args.words.join(" ")),
        plan: |connection: &mut Connection| {
            let state = state(connection)?;
            if let Some((name, why)) = unmatched(&state, &profile, version(connection)).pop() {
                return Err(Failure::Usage(anyhow::anyhow!(
                    "{name}: {why}; `waggle pfs status --depth 3` shows what there is"
                )));
            }
            plan_from(&state, connection, &profile, &Filter::default())
        },
        report: events,
    };
    hold(&args.account, &args.hold, request)
}

fn profile_of(words: &[String]) -> Result<Profile, Failure> {
    let wrong = |word: &str, may: &str| {
        Failure::Usage(anyhow::anyhow!("`{word}` is not understood; write {may}"))
    };
    let how = |word: &String| How::from_str(word, true);
    let mut profile = Profile::default();
    match words {
        [name, word] => {
            let how = how(word).map_err(|_| wrong(word, "on, off, timed or untimed"))?;
            let (enabled, timed) = match how {
                How::On => (Some(true), Some(true)),
                How::Off => (Some(false), None),
                How::Timed => (None, Some(true)),
                How::Untimed => (None, Some(false)),
            };
            let (names, except, on) = (vec![name.clone()], Vec::new(), Servers::default());
            profile.instruments.push(InstrumentRule { names, except, enabled, timed, on });
        }
        [kind, name, word] if kind == "consumer" => {
            let enabled = match how(word) {
                Ok(How::On) => true,
                Ok(How::Off) => false,
                _ => return Err(wrong(word, "on or off")),
            };
            let (names, on) = (vec![name.clone()], Servers::default());
            profile.consumers.push(ConsumerRule { names, enabled, on });
        }
        [kind, ..] => {
            return Err(wrong(kind, "PATTERN on|off|timed|untimed, or consumer NAME on|off"));
        }
        [] => return Err(wrong("", "PATTERN on|off|timed|untimed")),
    }
    Ok(profile)
}

/// Choose the timer of a class of events until this command ends (MySQL 5.7 and MariaDB).
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: waggle pfs timer statement cycle --for 5m")]
pub(super) struct TimerArgs {
    /// idle, wait, stage, statement or transaction.
    class: String,
    /// A name from `waggle pfs status`.
    timer: String,
    #[command(flatten)]
    hold: HoldArgs,
    #[command(flatten)]
    account: AccountArgs,
}

pub(super) fn run_timer(args: TimerArgs) -> Result<Outcome, Failure> {
    let request = Request {
        command: format!("timer {} {}", args.class, args.timer),
        plan: |connection: &mut Connection| {
            let change = change_of_timer(connection, &args.class, &args.timer)?;
            let changes = [change].into_iter().filter(|it| it.before != it.after).collect();
            Ok(Plan { changes, ..Plan::default() })
        },
        report: events,
    };
    hold(&args.account, &args.hold, request)
}

fn change_of_timer(
    connection: &mut Connection,
    class: &str,
    timer: &str,
) -> Result<Change, Failure> {
    let wrong = |message: String| Failure::Usage(anyhow::anyhow!("{message}"));
    let state = state(connection)?;
    if let Some(why) = state.why_absent(Table::Timers) {
        return Err(Failure::Cannot(anyhow::anyhow!(
            "{why}: its timers cannot be chosen (MySQL 8.0 and later)"
        )));
    }
    let key = vec![class.to_owned()];
    let Some(before) = state.row(Table::Timers, &key) else {
        let classes: Vec<&str> =
            state.rows(Table::Timers).map(|(key, _)| key[0].as_str()).collect();
        return Err(wrong(format!("class {class}: there is none; one of {}", classes.join(", "))));
    };
    let timer = timer.to_ascii_uppercase();
    let timers = timers(connection)?;
    // One that this machine lacks has no frequency.
    let timers = timers.into_iter().filter(|timer| timer.frequency.is_some());
    let names: Vec<String> = timers.map(|timer| timer.name).collect();
    if !names.contains(&timer) {
        return Err(wrong(format!("timer {timer}: there is none; one of {}", names.join(", "))));
    }
    let after = vec![Some(timer)];
    Ok(Change { table: Table::Timers, key, before: Some(before.clone()), after: Some(after) })
}
