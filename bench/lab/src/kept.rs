//! The file of a run: what was asked of it, then a line for each repetition.
//!
//! A line is appended and brought to the disk when its repetition has ended, and is never written again.
//! Whatever ends a run, the lines that are whole are kept, and the rest is made when it is taken up. The
//! report is made from this file.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use waggle_lab::Window;

use crate::repetition::ByArm;
use crate::settings::Settings;

/// Its name in the directory of results.
const FILE: &str = "repetitions.jsonl";

/// What was asked: the first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) settings: Settings,
    /// The text of the suite, so that a later bench makes and reports what was asked.
    pub(crate) truth: String,
}

/// Every window of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repetition {
    /// Its place, from 0.
    pub(crate) number: u32,
    /// On what it was measured, as it was when the process began that made it.
    pub(crate) machine: Value,
    /// How long it took, s.
    pub(crate) seconds: f64,
    /// How long the server was made busy by the clock of the program, ns per statement, what it is in every arm
    /// included.
    pub(crate) busy_ns: ByArm,
    pub(crate) windows: Vec<Window>,
}

/// A run. Only one process has it at a time.
#[derive(Debug)]
pub(crate) struct Kept {
    directory: PathBuf,
    file: File,
    begun: Begun,
    made: u32,
}

impl Kept {
    /// Begins a run in a directory that is there.
    pub(crate) fn create(directory: &Path, begun: &Begun) -> Result<Kept> {
        let path = directory.join(FILE);
        let file = File::create_new(&path).map_err(Into::into);
        let written = file.and_then(|mut file| append(&mut file, begun));
        written.with_context(|| format!("writing {}", path.display()))?;
        Kept::open(directory)
    }

    /// Takes up a run that was begun. A last line that was not written to its end is cut off.
    pub(crate) fn open(directory: &Path) -> Result<Kept> {
        let path = directory.join(FILE);
        let file = File::options().read(true).append(true).open(&path);
        let file = file.with_context(|| {
            format!("{}: name a directory in which a run was begun", path.display())
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("{} is in use by another bench; wait for its end", directory.display())
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("locking {}", path.display()));
            }
        }
        let (whole, begun, repetitions) = read(&path)?;
        file.set_len(whole as u64).with_context(|| format!("shortening {}", path.display()))?;
        let made = repetitions.len() as u32;
        Ok(Kept { directory: directory.to_owned(), file, begun, made })
    }

    /// Appends the next repetition and brings it to the disk.
    pub(crate) fn append(&mut self, repetition: &Repetition) -> Result<()> {
        let written = append(&mut self.file, repetition);
        written.with_context(|| format!("writing {}", self.directory.join(FILE).display()))?;
        self.made += 1;
        Ok(())
    }

    /// Which repetition is to be made next; `None` where all are there.
    pub(crate) fn missing(&self) -> Option<u32> {
        (self.made < self.begun.settings.repetitions).then_some(self.made)
    }

    /// What was made, from the file.
    pub(crate) fn repetitions(&self) -> Result<Vec<Repetition>> {
        Ok(read(&self.directory.join(FILE))?.2)
    }

    pub(crate) fn begun(&self) -> &Begun {
        &self.begun
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

fn append(file: &mut File, value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)?;
    Ok(file.sync_data()?)
}

/// Reads a file. How many bytes of it are whole lines, and what they say.
fn read(path: &Path) -> Result<(usize, Begun, Vec<Repetition>)> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let parsed = parse(&text[..whole]);
    let (begun, repetitions) = parsed.with_context(|| {
        format!(
            "{} is not as this bench writes it: put back the file that was there, or go on with the bench that \
             wrote it",
            path.display()
        )
    })?;
    Ok((whole, begun, repetitions))
}

fn parse(text: &[u8]) -> Result<(Begun, Vec<Repetition>)> {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let first = lines.next().context("it does not say what was asked")?;
    let begun = serde_json::from_slice(first).context("line 1")?;
    let mut repetitions: Vec<Repetition> = Vec::new();
    for line in lines {
        let next = repetitions.len();
        let repetition: Repetition =
            serde_json::from_slice(line).with_context(|| format!("line {}", next + 2))?;
        ensure!(
            repetition.number as usize == next,
            "line {} is repetition {}, from 0, in place of {next}",
            next + 2,
            repetition.number
        );
        repetitions.push(repetition);
    }
    Ok((begun, repetitions))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::settings::Arguments;

    fn begun() -> Begun {
        let words = ["bench", "--server", "mariadb-11.4", "--repetitions", "3", "--seed", "7"];
        Begun { settings: Arguments::parse_from(words).settings, truth: "text\n".to_owned() }
    }

    fn repetition(number: u32) -> Repetition {
        let machine = json!({ "kernel": "6.1.0" });
        let busy_ns = ByArm::from([("1us".to_owned(), 1012.0)]);
        Repetition { number, machine, seconds: 1.5, busy_ns, windows: Vec::new() }
    }

    #[test]
    fn a_repetition_that_was_not_written_to_its_end_is_made_anew_and_the_others_stay() {
        let place = TempDir::new().unwrap();
        let mut kept = Kept::create(place.path(), &begun()).unwrap();
        assert_eq!(kept.missing(), Some(0));
        kept.append(&repetition(0)).unwrap();
        kept.append(&repetition(1)).unwrap();
        drop(kept);
        let file = place.path().join(FILE);
        let before = fs::read(&file).unwrap();
        let line = serde_json::to_vec(&repetition(2)).unwrap();
        fs::write(&file, [before.as_slice(), &line[..line.len() - 1]].concat()).unwrap();

        let mut kept = Kept::open(place.path()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), before);
        assert_eq!((kept.missing(), kept.begun()), (Some(2), &begun()));
        kept.append(&repetition(2)).unwrap();
        assert_eq!(kept.missing(), None);
        assert_eq!(kept.repetitions().unwrap(), [0, 1, 2].map(repetition));
    }

    #[test]
    fn a_run_has_one_writer_and_where_none_was_begun_there_is_none() {
        let place = TempDir::new().unwrap();
        let said = |place: &Path| format!("{:#}", Kept::open(place).unwrap_err());
        assert!(said(place.path()).contains("in which a run was begun"));
        let kept = Kept::create(place.path(), &begun()).unwrap();
        assert!(said(place.path()).contains("in use by another bench"));
        drop(kept);
        assert!(Kept::create(place.path(), &begun()).is_err(), "it would be written over");
    }

    #[test]
    fn a_line_that_was_not_written_so_is_named_and_nothing_is_cut_off() {
        let place = TempDir::new().unwrap();
        let mut kept = Kept::create(place.path(), &begun()).unwrap();
        kept.append(&repetition(1)).unwrap();
        drop(kept);
        let file = place.path().join(FILE);
        for (text, why) in [
            (fs::read(&file).unwrap(), "line 2 is repetition 1, from 0, in place of 0"),
            (b"{}\n".to_vec(), "line 1"),
            (b"{\"settings\"".to_vec(), "what was asked"),
        ] {
            fs::write(&file, &text).unwrap();
            let said = format!("{:#}", Kept::open(place.path()).unwrap_err());
            assert!(said.contains(why) && said.contains(FILE), "{said}");
            assert_eq!(fs::read(&file).unwrap(), text);
        }
    }
}
