//! A flame graph as rectangles, computed once for everything that draws one.
//!
//! The row of a frame is its depth, its width is its samples with all that it called. What it did itself is at its
//! left, with nothing below. Frames beside each other stand in the order of their names: the same stacks are always the
//! same picture, and left and right say nothing about time.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use waggle_model::TimeClass;

use crate::folded::{shortened, works_for_several};
use crate::profile::{Chain, Function, Owner, Profile, Work};

/// What a frame stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// All samples.
    All,
    /// One of several servers.
    Server,
    /// A digest.
    Digest,
    /// A thread of the server itself, or a session that ran no statement.
    Thread,
    /// Statements that were not seen to end.
    Unmatched,
    /// Callers that are not known: what is below has more of them.
    Gap,
    /// A function of the program of the server.
    Program,
    /// A function of a library.
    Library,
    /// A function of the kernel.
    Kernel,
    /// A function that its file has no name of.
    Nameless,
    /// The class of a wait.
    Wait(TimeClass),
}

impl Kind {
    /// That of a function.
    pub fn of(function: &Function) -> Kind {
        match function {
            _ if function.is_kernel => Kind::Kernel,
            _ if function.is_wait() => Kind::Wait(class(&function.name)),
            _ if !function.is_named => Kind::Nameless,
            // Libraries have a version behind `.so`, and the kernel's own is called `[vdso]`.
            _ if function.file.contains(".so") || function.file.starts_with('[') => Kind::Library,
            _ => Kind::Program,
        }
    }
}

/// The class that a function stands for.
fn class(name: &str) -> TimeClass {
    let name = name.trim_matches(['[', ']']);
    let found = TimeClass::ALL.into_iter().find(|class| class.name() == name);
    found.unwrap_or(TimeClass::Other)
}

/// What is written on frames. The texts come from the server: whoever shows them has to escape them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// A function, the text of a digest up to a hundred letters, a thread, a class of waits in brackets.
    pub name: Arc<str>,
    /// The id of a digest, the file of a function; empty where there is nothing to add.
    pub note: Arc<str>,
    /// What it is.
    pub kind: Kind,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its row; 0 is that of all samples.
    pub depth: usize,
    /// An index into [`Flame::labels`].
    pub label: usize,
    /// Samples left of it.
    pub begin: u64,
    /// Its samples, with those of the frames below.
    pub samples: u64,
    /// Samples of which it is the innermost frame.
    pub itself: u64,
}

/// The rectangles of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flame {
    /// Samples of the whole width, in what the profile counts.
    pub samples: u64,
    /// What is written on frames, in the order of names.
    pub labels: Vec<Label>,
    /// A frame stands before those below it, and those beside each other from left to right.
    pub frames: Vec<Frame>,
    /// Frames that are left out because they are too narrow.
    pub narrow: u64,
    /// Samples by the kind of their innermost frame, the most first.
    pub innermost: Vec<(Kind, u64)>,
}

impl Flame {
    /// Those of a profile. A frame whose share of all samples is below `narrowest` is left out, with what is below it.
    pub fn of(profile: &Profile, narrowest: f64) -> Flame {
        let samples = profile.samples();
        if samples == 0 {
            return Flame::default();
        }
        let labels = Labels::of(profile);
        let mut paths: Vec<(Vec<usize>, u64)> =
            profile.stacks.iter().map(|stack| (labels.path(profile, stack), stack.count)).collect();
        paths.sort();
        let mut rows = Rows { least: narrowest * samples as f64, ..Rows::default() };
        for (path, count) in &paths {
            rows.add(path, *count);
        }
        rows.close(0);
        let innermost = innermost(&labels.sorted, &paths);
        Flame {
            samples,
            labels: labels.sorted,
            frames: rows.frames,
            narrow: rows.narrow,
            innermost,
        }
    }

    /// A part of the width, 0 to 1.
    pub fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.samples.max(1) as f64
    }

    /// Where a frame begins, 0 to 1.
    pub fn x(&self, frame: &Frame) -> f64 {
        self.share(frame.begin)
    }

    /// How wide it is, 0 to 1.
    pub fn width(&self, frame: &Frame) -> f64 {
        self.share(frame.samples)
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(0)
    }
}

fn innermost(labels: &[Label], paths: &[(Vec<usize>, u64)]) -> Vec<(Kind, u64)> {
    let mut sums: Vec<(Kind, u64)> = Vec::new();
    for (path, count) in paths {
        let Some(label) = path.last().and_then(|at| labels.get(*at)) else { continue };
        match sums.iter_mut().find(|(kind, _)| *kind == label.kind) {
            Some((_, sum)) => *sum += count,
            None => sums.push((label.kind, *count)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums
}

/// All labels, and where each is in the order of names.
struct Labels {
    sorted: Vec<Label>,
    places: Vec<usize>,
    /// Numbers of the servers, if there are several.
    servers: BTreeMap<u32, usize>,
}

/// Numbers of the labels that every profile has. Behind them are its owners, its functions and its servers.
const ALL: usize = 0;
const LOST: usize = 1;
const CUT: usize = 2;
const FIXED: usize = 3;

impl Labels {
    fn of(profile: &Profile) -> Labels {
        let fixed = |name: &str, kind| Label { name: name.into(), note: "".into(), kind };
        let mut labels = vec![
            fixed("all", Kind::All),
            fixed("(callers lost)", Kind::Gap),
            fixed("(callers cut)", Kind::Gap),
        ];
        labels.extend(profile.owners.iter().map(of_owner));
        labels.extend(profile.functions.iter().map(of_function));
        let mut servers = BTreeMap::new();
        if works_for_several(profile) {
            for owner in &profile.owners {
                servers.entry(owner.pid).or_insert_with(|| {
                    labels.push(fixed(&format!("server {}", owner.pid), Kind::Server));
                    labels.len() - 1
                });
            }
        }
        let mut numbered: Vec<(usize, Label)> = labels.into_iter().enumerate().collect();
        numbered.sort_by(|(_, one), (_, other)| {
            (&one.name, &one.note).cmp(&(&other.name, &other.note))
        });
        let mut places = vec![0; numbered.len()];
        for (place, (number, _)) in numbered.iter().enumerate() {
            if let Some(of_number) = places.get_mut(*number) {
                *of_number = place;
            }
        }
        let sorted = numbered.into_iter().map(|(_, label)| label).collect();
        Labels { sorted, places, servers }
    }

    /// The labels of a stack, the outermost first.
    fn path(&self, profile: &Profile, stack: &crate::Stack) -> Vec<usize> {
        let mut numbers = vec![ALL];
        let owner = profile.owners.get(stack.owner);
        numbers.extend(owner.and_then(|owner| self.servers.get(&owner.pid)));
        numbers.extend(owner.map(|_| FIXED + stack.owner));
        match stack.chain {
            Chain::Whole => {}
            Chain::Broken => numbers.push(LOST),
            Chain::Cut => numbers.push(CUT),
        }
        let functions = FIXED + profile.owners.len();
        numbers.extend(stack.functions.iter().map(|at| functions + at));
        numbers.iter().filter_map(|number| self.places.get(*number).copied()).collect()
    }
}

fn of_owner(owner: &Owner) -> Label {
    let (kind, note) = match &owner.work {
        Work::Digest { key, .. } => (Kind::Digest, format!("{:016x}", key.text)),
        Work::Thread(_) => (Kind::Thread, String::new()),
        Work::Unmatched => (Kind::Unmatched, String::new()),
    };
    Label { name: shortened(owner.title()).into(), note: note.into(), kind }
}

fn of_function(function: &Function) -> Label {
    let kind = Kind::of(function);
    let is_marked = function.file.starts_with('[') || kind == Kind::Nameless;
    // Of the kernel, a wait and a function without a name the name says it.
    let note = if is_marked { "".into() } else { function.file.clone() };
    Label { name: function.name.clone(), note, kind }
}

/// Frames that grow while stacks come in order.
#[derive(Default)]
struct Rows {
    frames: Vec<Frame>,
    /// The numbers of the frames that the last stack had, the outermost first.
    open: Vec<usize>,
    sum: u64,
    /// Narrower ones are left out.
    least: f64,
    narrow: u64,
}

impl Rows {
    fn add(&mut self, path: &[usize], count: u64) {
        let has = |(at, label): &(&usize, &usize)| {
            self.frames.get(**at).is_some_and(|frame| frame.label == **label)
        };
        let shared = self.open.iter().zip(path).take_while(has).count();
        self.close(shared);
        for (depth, label) in path.iter().enumerate().skip(shared) {
            self.open.push(self.frames.len());
            let begin = self.sum;
            self.frames.push(Frame { depth, label: *label, begin, samples: 0, itself: 0 });
        }
        for at in &self.open {
            if let Some(frame) = self.frames.get_mut(*at) {
                frame.samples += count;
                frame.itself += if frame.depth + 1 == path.len() { count } else { 0 };
            }
        }
        self.sum += count;
    }

    /// No stack has them any more, but the outermost `kept`. What is below a narrow one was as narrow, and is gone.
    fn close(&mut self, kept: usize) {
        while self.open.len() > kept {
            self.open.pop();
            if self.frames.last().is_some_and(|last| self.is_narrow(last)) {
                self.narrow += u64::from(self.frames.pop().is_some());
            }
        }
    }

    fn is_narrow(&self, frame: &Frame) -> bool {
        (frame.samples as f64) < self.least
    }
}
