//! The names of the functions of a process, by their addresses. A child without rights reads them from the files
//! that the process has mapped.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use blazesym::helper::ElfResolver;
use blazesym::symbolize::source::{self, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use serde::{Deserialize, Serialize};

use super::elf::{Elf, Functions, open_file};
use super::maps::{CodeMapping, code_mappings};

/// Most addresses of one question.
pub const ADDRESSES_MAX: usize = 8000;
/// Most files that one question opens.
const FILES_MAX: usize = 64;
/// Longest name, in letters: names of templates can fill pages.
const NAME_MAX: usize = 160;
/// Longest map of a process that is read, bytes.
const MAPS_MAX: u64 = 4 << 20;

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Question {
    /// The process. No other question has a field of this name.
    pub(super) names_of: u32,
    pub(super) addresses: Vec<u64>,
}

/// What is said. Who says it may have been taken over by a file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) files: Vec<String>,
    pub(super) functions: Vec<String>,
    /// Of each address; `None` where no file is mapped there.
    pub(super) places: Vec<Option<Place>>,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) file: usize,
    /// From the first byte of the file in memory to the begin of the function where that is known, or to the place.
    pub(super) offset: u64,
    pub(super) function: Option<usize>,
}

impl Question {
    /// Opens the files, gives up all rights by `confine`, which is told how much memory they take, and looks.
    pub(super) fn answer(
        &self,
        confine: impl FnOnce(u64) -> io::Result<()>,
    ) -> Result<Answer, String> {
        let folder = PathBuf::from(format!("/proc/{}", self.names_of));
        let mut maps = Vec::new();
        let file = File::open(folder.join("maps")).map_err(|error| error.to_string())?;
        file.take(MAPS_MAX).read_to_end(&mut maps).map_err(|error| error.to_string())?;
        let code = code_mappings(&maps);
        let mut files: Vec<Mapped<'_>> = Vec::new();
        let mut answer = Answer::default();
        for (at, address) in self.addresses.iter().take(ADDRESSES_MAX).enumerate() {
            answer.places.push(None);
            let Some(mapping) = code.iter().find(|mapping| mapping.holds(*address)) else {
                continue;
            };
            let known = files.iter().position(|file| file.path == mapping.path);
            if known.is_none() && files.len() >= FILES_MAX {
                continue;
            }
            let file = known.unwrap_or_else(|| {
                files.push(Mapped::of(mapping));
                files.len() - 1
            });
            files[file].add(at, *address, mapping);
        }
        let mut symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
        let mut size = 0_u64;
        for file in &mut files {
            size = size.saturating_add(file.open(&folder, &mut symbolizer));
        }
        confine(size).map_err(|error| error.to_string())?;
        let mut indices = HashMap::new();
        for (number, file) in files.into_iter().enumerate() {
            file.look(number, &symbolizer, &mut indices, &mut answer);
        }
        Ok(answer)
    }
}

/// A file that the process has mapped, and what is asked about it.
struct Mapped<'a> {
    mapping: CodeMapping<'a>,
    path: &'a [u8],
    /// The index, the address, and the offset in the file.
    asked: Vec<(usize, u64, u64)>,
    opened: Option<Opened>,
}

/// A file with what is asked of it.
pub(super) struct Opened {
    /// Under which the symbolizer knows it: this very file, whatever has its name by now.
    path: PathBuf,
    /// Open as long as the path is used.
    _file: Arc<File>,
    elf: Option<Elf>,
}

impl Opened {
    /// `None` where the symbolizer cannot take the file.
    pub(super) fn of(file: File, symbolizer: &mut Symbolizer) -> Option<Opened> {
        let file = Arc::new(file);
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let resolver = survived(|| ElfResolver::open(&path).ok())?;
        symbolizer.register_elf_resolver(&path, Rc::new(resolver)).ok()?;
        let elf = Elf::opened(String::new(), Arc::clone(&file)).ok();
        Some(Opened { path, _file: file, elf })
    }

    /// The name of the function at each of these offsets, where it has one; none at all where the file is damaged.
    pub(super) fn names(&self, symbolizer: &Symbolizer, offsets: &[u64]) -> Vec<Option<String>> {
        let mut elf = source::Elf::new(&self.path);
        // Debug information lies in other files, which cannot be opened here.
        elf.debug_syms = false;
        let (source, input) = (Source::Elf(elf), Input::FileOffset(offsets));
        let found = survived(|| symbolizer.symbolize(&source, input).ok());
        let name = |one: Symbolized<'_>| match one {
            Symbolized::Sym(sym) => Some(cut(&sym.name)),
            Symbolized::Unknown(_) => None,
        };
        found.map(|all| all.into_iter().map(name).collect()).unwrap_or_default()
    }

    /// From the first byte of the file in memory to the begin of the function at each of these offsets, where that is
    /// known.
    pub(super) fn begins(&self, offsets: &[u64]) -> Vec<Option<u64>> {
        let Some(elf) = &self.elf else { return Vec::new() };
        let functions = Functions::of(elf);
        let begin = |offset: &u64| {
            functions.begin(elf.address_of(*offset)?)?.checked_sub(elf.first_address())
        };
        offsets.iter().map(begin).collect()
    }
}

/// What comes of a question, unless it panics: the symbolizer trusts some numbers of a file. Then this file has no names,
/// and the others keep theirs.
fn survived<T>(ask: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(ask)).ok().flatten()
}

impl<'a> Mapped<'a> {
    fn of(mapping: &CodeMapping<'a>) -> Mapped<'a> {
        Mapped { mapping: *mapping, path: mapping.path, asked: Vec::new(), opened: None }
    }

    fn add(&mut self, at: usize, address: u64, mapping: &CodeMapping<'_>) {
        self.asked.push((at, address, mapping.offset_of(address)));
    }

    /// Opens the file, and says how much memory it may take.
    fn open(&mut self, folder: &std::path::Path, symbolizer: &mut Symbolizer) -> u64 {
        if !self.mapping.is_file {
            return 0;
        }
        let open = |path: PathBuf| open_file(&path).ok();
        let Some(file) = self.mapping.files(folder).into_iter().find_map(open) else { return 0 };
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        self.opened = Opened::of(file, symbolizer);
        size
    }

    fn look(
        self,
        number: usize,
        symbolizer: &Symbolizer,
        indices: &mut HashMap<String, usize>,
        answer: &mut Answer,
    ) {
        let offsets: Vec<u64> = self.asked.iter().map(|(_, _, offset)| *offset).collect();
        let opened = self.opened.as_ref();
        let names = opened.map(|opened| opened.names(symbolizer, &offsets)).unwrap_or_default();
        let begins = opened.map(|opened| opened.begins(&offsets)).unwrap_or_default();
        let (mut names, mut begins) = (names.into_iter(), begins.into_iter());
        for (at, address, _) in &self.asked {
            let function = names.next().flatten().map(|name| {
                *indices.entry(name).or_insert_with_key(|name| {
                    answer.functions.push(name.clone());
                    answer.functions.len() - 1
                })
            });
            let in_memory = address.saturating_sub(self.mapping.base);
            let offset = begins.next().flatten().unwrap_or(in_memory);
            if let Some(said) = answer.places.get_mut(*at) {
                *said = Some(Place { file: number, offset, function });
            }
        }
        answer.files.push(self.name());
    }

    fn name(&self) -> String {
        let name = self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        cut(name.trim_end_matches(" (deleted)"))
    }
}

/// A name as long as may be shown.
fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::layout::crafted::{self, Part};

    /// What is said of addresses of our own.
    fn said(addresses: Vec<u64>) -> Answer {
        let question = Question { names_of: std::process::id(), addresses };
        question
            .answer(|size| if size > 0 { Ok(()) } else { Err(io::ErrorKind::Other.into()) })
            .unwrap()
    }

    #[test]
    fn functions_have_their_names_and_places_in_no_file_have_none() {
        let here = cut as fn(&str) -> String as usize as u64;
        let there = libc::getpid as unsafe extern "C" fn() -> i32 as usize as u64;
        let answer = said(vec![here + 4, 5, there, u64::MAX]);
        assert_eq!(answer.places.len(), 4);
        assert!(answer.places[1].is_none() && answer.places[3].is_none());
        let function =
            |at: usize| &answer.functions[answer.places[at].unwrap().function.unwrap()][..];
        assert!(function(0).contains("names::cut"), "{}", function(0));
        assert!(function(2).contains("getpid"), "{}", function(2));
        let file = |at: usize| &answer.files[answer.places[at].unwrap().file][..];
        assert!(file(2).starts_with("libc"), "{}", file(2));
        assert_ne!(file(0), file(2));
        // The same function, and so the same begin.
        let again = said(vec![here, here + 4]);
        assert_eq!(again.places[0].unwrap().offset, again.places[1].unwrap().offset);
    }

    /// Found by fuzzing: one damaged library took the names of all files.
    #[test]
    fn a_file_that_the_symbolizer_does_not_survive_has_no_names_and_is_no_end() {
        let parts = [Part::function("thr_lock", 0x1000, vec![0x90; 16])];
        let whole = crafted::library(&parts, &[]).bytes;
        // The program header of the function is the sixth one.
        let header = 64 + 5 * 56;
        let at = |place: usize| whole[header + place..][..8].try_into().unwrap();
        let offset = u64::from_le_bytes(at(8));
        let mut damaged = whole.clone();
        damaged[header + 32..header + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        let names = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            let mut symbolizer = Symbolizer::builder().enable_auto_reload(false).build();
            let opened = Opened::of(file.into_file(), &mut symbolizer).unwrap();
            opened.names(&symbolizer, &[offset, 0])
        };
        assert_eq!(names(&whole), [Some("thr_lock".to_owned()), None]);
        assert_eq!(names(&damaged), []);
    }

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        let long = cut(&"é".repeat(NAME_MAX + 1));
        assert_eq!(long.chars().count(), NAME_MAX + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn a_process_that_is_gone_has_no_names() {
        let question = Question { names_of: 1 << 30, addresses: vec![1] };
        assert!(question.answer(|_| Ok(())).is_err());
    }
}
