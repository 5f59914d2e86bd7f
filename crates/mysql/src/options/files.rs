//! Which option files are read, and in which order.
//!
//! Sources: "Using Option Files" in the MySQL Reference Manual; `my_load_defaults` in
//! `mysys/my_default.cc`. One difference is on purpose: with `--defaults-file`, the login path file
//! is read only if a login path is given, so that this one file has everything.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::apply::{GROUPS, apply};
use super::login_path::decipher;
use super::parse::{Entry, parse};
use super::{Options, OptionsError};

/// Where the clients look without being told, in order.
const GLOBAL_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// `max_recursion_level` of `mysys/my_default.cc`.
const INCLUDE_LEVELS: usize = 10;
/// Option files that are read in all. Files without a circle can still include each other very often.
const FILES_MAX: usize = 1000;
/// Bytes that are read of a file. A device or a sparse file has no end.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// `S_IWOTH`: others may write.
const WORLD_WRITABLE: u32 = 0o002;
/// `S_IROTH`: others may read.
const WORLD_READABLE: u32 = 0o004;
/// What the clients do not allow for a login path file.
const NOT_PRIVATE: u32 = 0o177;

/// Where option files are looked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// `--defaults-file`: read this file only.
    pub defaults_file: Option<PathBuf>,
    /// `--defaults-extra-file`: read this file after the global ones.
    pub defaults_extra_file: Option<PathBuf>,
    /// `--login-path`: also read this group of the login path file; it has to exist.
    pub login_path: Option<String>,
    /// What the environment says.
    pub environment: Environment,
}

/// The part of the environment that the clients look at.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `MYSQL_HOME`: a folder with a `my.cnf`.
    pub mysql_home: Option<PathBuf>,
    /// `MYSQL_TEST_LOGIN_FILE`: the login path file, in place of `~/.mylogin.cnf`.
    pub login_file: Option<PathBuf>,
    /// The user who runs waggle: the user name where no file gives one.
    pub user: Option<String>,
    /// Files read before all others: `/etc/my.cnf` and `/etc/mysql/my.cnf`.
    pub global_files: Vec<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_this_process() -> Environment {
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let name = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Environment {
            home: path("HOME"),
            mysql_home: path("MYSQL_HOME"),
            login_file: path("MYSQL_TEST_LOGIN_FILE"),
            // The clients' own rule (`read_user_name` in `sql-common/client.cc`).
            user: match rustix::process::geteuid().is_root() {
                true => Some("root".to_owned()),
                false => name("USER").or_else(|| name("LOGNAME")).or_else(|| name("LOGIN")),
            },
            global_files: GLOBAL_FILES.iter().map(PathBuf::from).collect(),
        }
    }

    fn login_file(&self) -> Option<PathBuf> {
        let at_home = || self.home.as_ref().map(|home| home.join(".mylogin.cnf"));
        self.login_file.clone().or_else(at_home)
    }
}

struct Reader {
    options: Options,
    /// The groups that are read, and whether the login path has been seen.
    login_path: Option<String>,
    login_path_seen: bool,
}

pub(super) fn read(sources: &Sources) -> Result<Options, OptionsError> {
    let environment = &sources.environment;
    let mut reader = Reader {
        options: Options { user: environment.user.clone(), ..Options::default() },
        login_path: sources.login_path.clone(),
        login_path_seen: false,
    };
    match &sources.defaults_file {
        Some(file) => reader.file(file, 0)?,
        None => reader.default_files(sources)?,
    }
    if sources.defaults_file.is_none() || sources.login_path.is_some() {
        reader.login_path_file(environment)?;
    }
    Ok(reader.options)
}

impl Reader {
    fn default_files(&mut self, sources: &Sources) -> Result<(), OptionsError> {
        let environment = &sources.environment;
        for file in &environment.global_files {
            self.file_if_there(file)?;
        }
        if let Some(folder) = &environment.mysql_home {
            self.file_if_there(&folder.join("my.cnf"))?;
        }
        if let Some(file) = &sources.defaults_extra_file {
            self.file(file, 0)?;
        }
        if let Some(folder) = &environment.home {
            self.file_if_there(&folder.join(".my.cnf"))?;
        }
        Ok(())
    }

    fn file_if_there(&mut self, path: &Path) -> Result<(), OptionsError> {
        match path.is_file() {
            true => self.file(path, 0),
            false => Ok(()),
        }
    }

    fn file(&mut self, path: &Path, level: usize) -> Result<(), OptionsError> {
        if level > INCLUDE_LEVELS {
            return Err(OptionsError::TooDeep { path: path.to_owned() });
        }
        if self.options.read_from.len() >= FILES_MAX {
            return Err(OptionsError::TooMany { path: path.to_owned(), most: FILES_MAX });
        }
        let fault = |source| OptionsError::File { path: path.to_owned(), source };
        // What is checked is what is read, whatever the path leads to by now.
        let file = File::open(path).map_err(fault)?;
        let metadata = file.metadata().map_err(fault)?;
        let others_may = |how: u32| metadata.is_file() && metadata.permissions().mode() & how != 0;
        if others_may(WORLD_WRITABLE) {
            self.options.notes.push(format!(
                "option file {}: left out, as the clients do: everybody may write it; \
                 run chmod o-w on it",
                path.display()
            ));
            return Ok(());
        }
        let text = bytes_of(file, path)?;
        self.options.read_from.push(path.to_owned());
        let holds_password = self.text(path, &text, level)?;
        if holds_password && others_may(WORLD_READABLE) {
            self.options.notes.push(format!(
                "option file {}: everybody may read the password in it; run chmod o-r on it",
                path.display()
            ));
        }
        Ok(())
    }

    /// Returns whether a password stands in it, and not only in a file that it includes.
    fn text(&mut self, path: &Path, text: &[u8], level: usize) -> Result<bool, OptionsError> {
        let mut holds_password = false;
        let entries = parse(text)
            .map_err(|source| OptionsError::Malformed { path: path.to_owned(), source })?;
        for entry in entries {
            match entry {
                Entry::Setting(setting) => {
                    let is_login_path = Some(&setting.group) == self.login_path.as_ref();
                    self.login_path_seen |= is_login_path;
                    if is_login_path || GROUPS.contains(&setting.group.as_str()) {
                        holds_password |= setting.key == "password";
                        apply(&mut self.options, path, &setting)?;
                    }
                }
                Entry::Include { path, .. } => self.file(&path, level + 1)?,
                Entry::IncludeFolder { path, .. } => self.folder(&path, level + 1)?,
            }
        }
        Ok(holds_password)
    }

    /// Reads the `*.cnf` files of a folder, by name; the clients take the order of the folder, which
    /// is chance.
    fn folder(&mut self, path: &Path, level: usize) -> Result<(), OptionsError> {
        let fault = |source| OptionsError::File { path: path.to_owned(), source };
        let mut files = Vec::new();
        for file in fs::read_dir(path).map_err(fault)? {
            let file = file.map_err(fault)?.path();
            if file.extension().is_some_and(|extension| extension == "cnf") {
                files.push(file);
            }
        }
        files.sort();
        files.iter().try_for_each(|file| self.file(file, level))
    }

    fn login_path_file(&mut self, environment: &Environment) -> Result<(), OptionsError> {
        let asked = self.login_path.clone();
        let path = match (environment.login_file(), &asked) {
            (Some(path), Some(_)) => path,
            (Some(path), None) if path.is_file() => path,
            (None, Some(name)) => return Err(OptionsError::NoHome { name: name.clone() }),
            (_, None) => return Ok(()),
        };
        let fault = |source| OptionsError::File { path: path.clone(), source };
        let file = File::open(&path).map_err(fault)?;
        let metadata = file.metadata().map_err(fault)?;
        if metadata.permissions().mode() & NOT_PRIVATE != 0 {
            self.options.notes.push(format!(
                "login path file {}: left out, as the clients do: others may use it; \
                 run chmod 600 on it",
                path.display()
            ));
        } else {
            let text = decipher(&bytes_of(file, &path)?)
                .map_err(|source| OptionsError::LoginPathFile { path: path.clone(), source })?;
            // A group of that name in another file is no login path.
            self.login_path_seen = false;
            self.options.read_from.push(path.clone());
            self.text(&path, &text, 0)?;
        }
        match asked {
            Some(name) if !self.login_path_seen => Err(OptionsError::NoLoginPath { name, path }),
            _ => Ok(()),
        }
    }
}

/// All bytes of a file.
fn bytes_of(file: File, path: &Path) -> Result<Vec<u8>, OptionsError> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| OptionsError::File { path: path.to_owned(), source })?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(OptionsError::TooLong { path: path.to_owned(), most: FILE_BYTES_MAX >> 20 });
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
