//! The files that a process has mapped (`/proc/PID/maps`, proc_pid_maps(5)).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The mapping of the beginning of a file.
pub(super) struct Mapping<'a> {
    /// `start-end`, hexadecimal.
    pub(super) range: &'a str,
    /// The file as the kernel names it to us.
    pub(super) path: &'a [u8],
}

/// The mappings of the beginnings of files, in the order of their addresses
/// (`start-end permissions offset device inode path`, proc_pid_maps(5)).
pub(super) fn mappings(maps: &[u8]) -> impl Iterator<Item = Mapping<'_>> {
    maps.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut rest = line;
        let mut fields = [""; 5];
        for field in &mut fields {
            let (head, tail) = rest.split_at(rest.iter().position(|byte| *byte == b' ')?);
            *field = std::str::from_utf8(head).ok()?;
            rest = tail.trim_ascii_start();
        }
        let [range, _, offset, _, inode] = fields;
        let is_start = u64::from_str_radix(offset, 16) == Ok(0) && inode != "0";
        is_start.then_some(Mapping { range, path: rest })
    })
}

/// A part of a process that holds code.
#[derive(Clone, Copy)]
pub(super) struct CodeMapping<'a> {
    start: u64,
    end: u64,
    /// Where it begins in the file.
    offset: u64,
    /// Where the first byte of the file that is mapped at all is in memory.
    pub(super) base: u64,
    range: &'a str,
    /// The file as the kernel names it to us, or another name in brackets.
    pub(super) path: &'a [u8],
    /// Whether there is a file.
    pub(super) is_file: bool,
}

/// Every part of a process that holds code and has a name.
pub(super) fn code_mappings(maps: &[u8]) -> Vec<CodeMapping<'_>> {
    let mut code: Vec<CodeMapping<'_>> = Vec::new();
    let mut bases: Vec<(&[u8], u64)> = Vec::new();
    for (mapping, permissions) in maps.split(|byte| *byte == b'\n').filter_map(code_mapping) {
        let known = bases.iter().find(|(path, _)| *path == mapping.path).map(|(_, base)| *base);
        if known.is_none() && !mapping.path.is_empty() {
            bases.push((mapping.path, mapping.start));
        }
        if permissions.contains('x') && !mapping.path.is_empty() {
            code.push(CodeMapping { base: known.unwrap_or(mapping.start), ..mapping });
        }
    }
    code
}

fn code_mapping(line: &[u8]) -> Option<(CodeMapping<'_>, &str)> {
    let mut rest = line;
    let mut fields = [""; 5];
    for field in &mut fields {
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (head, tail) = rest.split_at(end);
        *field = std::str::from_utf8(head).ok()?;
        rest = tail.trim_ascii_start();
    }
    let [range, permissions, offset, _, inode] = fields;
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end, offset) = (number(start)?, number(end)?, number(offset)?);
    let is_file = inode != "0";
    Some((CodeMapping { start, end, offset, base: start, range, path: rest, is_file }, permissions))
}

impl CodeMapping<'_> {
    /// Whether an address lies in it.
    pub(super) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Where the file has an address that lies in it.
    pub(super) fn offset_of(&self, address: u64) -> u64 {
        address.saturating_sub(self.start).saturating_add(self.offset)
    }

    /// As [`Mapping::files`].
    pub(super) fn files(&self, folder: &Path) -> [PathBuf; 3] {
        Mapping { range: self.range, path: self.path }.files(folder)
    }
}

impl Mapping<'_> {
    /// Its first address.
    pub(super) fn start(&self) -> Option<u64> {
        u64::from_str_radix(self.range.split_once('-')?.0, 16).ok()
    }

    /// The path, with the mark of a deleted file.
    pub(super) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path))
    }

    /// Under which the file can be opened, in the order to try: the very file that is mapped, also
    /// when it lies in a container or was replaced; where that takes more rights than we have, the
    /// file of that name as the process sees it, and as we do. `folder` is that of the process.
    pub(super) fn files(&self, folder: &Path) -> [PathBuf; 3] {
        let path = self.path();
        let below_root = folder.join("root").join(path.strip_prefix("/").unwrap_or(path));
        [folder.join("map_files").join(self.range), below_root, path.to_path_buf()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_code_is_found_with_the_begin_of_its_file() {
        let maps = b"55d0-55e0 r--p 00000000 08:01 11 /opt/my sql/mysqld\n\
                     55e0-5600 r-xp 00010000 08:01 11 /opt/my sql/mysqld\n\
                     7000-7010 rwxp 00000000 00:00 0 \n\
                     7f00-7f10 r-xp 00000000 00:00 0 [vdso]\n\
                     damaged\n";
        let code = code_mappings(maps);
        let [program, vdso] = &code[..] else { panic!("{}", code.len()) };
        assert_eq!(
            (program.base, program.path, program.is_file),
            (0x55d0, &b"/opt/my sql/mysqld"[..], true)
        );
        assert!(program.holds(0x55e0) && !program.holds(0x5600) && !program.holds(0x55d0));
        assert_eq!(program.offset_of(0x55e4), 0x10004);
        assert_eq!((vdso.base, vdso.is_file), (0x7f00, false));
    }
}
