//! Who uses the processors of the server, and how long its statements wait for one.

use ratatui_core::style::Style;
use waggle_model::{ProcessorLimit, ProcessorUse, StorageWaits};

use super::look::{BAD, DIM, PLAIN};
use super::number::{ms, percent, plain};
use crate::state::{App, Frame};

/// The share of the processors in use, or taken away, from which they are full.
const FULL_FROM: f64 = 0.9;
/// The share of what is taken away from which it is told.
const STOLEN_FROM: f64 = 0.01;

/// The shares of the time in which somebody waits for storage from which that is told, and told aloud.
const DISK_FROM: f64 = 0.01;
const DISK_LOUD_FROM: f64 = 0.5;

/// The share of periods in which a limit holds the server back from which that is told aloud.
const HELD_BACK_FROM: f64 = 0.1;

/// The parts of the line.
pub(crate) fn parts(app: &App, frame: &Frame) -> Vec<(String, Style)> {
    let mut parts = match &frame.processors {
        Some(used) => users(used, app.options.cpus),
        None => vec![("host CPUs not measured".to_owned(), DIM)],
    };
    if let Some(ProcessorLimit { cores, held_back }) = frame.processors.and_then(|it| it.limit) {
        let (words, style) = match held_back >= HELD_BACK_FROM {
            true => ("HELD BACK", BAD),
            false => ("held back", PLAIN),
        };
        parts.push((format!("limit {} CPUs", plain(Some(cores))), PLAIN));
        parts.push((format!("{words} {}", percent(Some(held_back))), style));
    }
    // Where nothing is known of time, the line above says why.
    if frame.spent.is_some() {
        parts.push((format!("queued {} ms", ms(frame.queued_ns())), PLAIN));
    }
    if let Some(StorageWaits { share, .. }) = frame.storage.filter(|it| it.share >= DISK_FROM) {
        let (words, style) = match share >= DISK_LOUD_FROM {
            true => ("DISK WAITS", BAD),
            false => ("disk waits", PLAIN),
        };
        parts.push((format!("{words} {}", percent(Some(share))), style));
    }
    parts
}

/// How much is in use, and by whom. Where it is all, who has most is in capitals, unless that is the server itself.
fn users(used: &ProcessorUse, all: usize) -> Vec<(String, Style)> {
    let of_all = |cores: f64| percent(Some(used.share(cores)));
    let its = match used.processors {
        its if its as usize == all => its.to_string(),
        its => format!("{its} of {all}"),
    };
    let (others, stolen) = (used.others(), used.stolen.unwrap_or(0.0));
    let is_full = used.share(used.busy + stolen) >= FULL_FROM;
    let full = if is_full { "FULL, " } else { "" };
    let mut parts = vec![
        (format!("host {its} CPUs {full}{} busy", of_all(used.busy)), PLAIN),
        (format!("server {}", of_all(used.server)), PLAIN),
        (format!("others {}", of_all(others)), PLAIN),
    ];
    if used.stolen.is_none() {
        parts.push(("stolen -".to_owned(), DIM));
    } else if used.share(stolen) >= STOLEN_FROM {
        parts.push((format!("stolen {}", of_all(stolen)), PLAIN));
    }
    let most = if stolen > others { "stolen" } else { "others" };
    if is_full && others.max(stolen) > used.server {
        for (words, style) in parts.iter_mut().filter(|(words, _)| words.starts_with(most)) {
            (*words, *style) = (words.to_uppercase(), BAD);
        }
    }
    parts
}
