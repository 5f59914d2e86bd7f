//! The program of a server, and what comes with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::process::geteuid;
use serde::Deserialize;
use waggle_model::Flavour;

use crate::directory::swept;
use crate::inside::has_our_root;
use crate::{Launcher, Look, PrivateServerError};

/// The first user id for servers whose user is nobody of this host, or root inside of a container. No account has one as
/// high.
const FIRST_UID: u32 = 4_210_000_000;
/// Where a server can find what is its own in the root directory of a process: every system has these.
const SEEN_AT: [&str; 2] = ["/tmp", "/mnt"];

/// A table of a list of servers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    family: Family,
    root: Option<PathBuf>,
    program: PathBuf,
    base: PathBuf,
    messages: PathBuf,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Family {
    Mysql,
    Mariadb,
}

impl From<Family> for Flavour {
    fn from(family: Family) -> Flavour {
        match family {
            Family::Mysql => Flavour::Mysql,
            Family::Mariadb => Flavour::Mariadb,
        }
    }
}

/// The root directory of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// Ours.
    Ours,
    /// One that the administrator names.
    At(PathBuf),
    /// That of a process, with its mounts. They may belong to anybody: nothing in there is reached by a path of this
    /// process.
    Of(u32),
}

/// The program of a server. Its paths begin at its root directory.
#[derive(Clone, Debug)]
pub struct Program {
    /// The family.
    pub flavour: Flavour,
    /// Its root directory.
    pub(crate) root: Root,
    pub(crate) executable: PathBuf,
    pub(crate) base: PathBuf,
    /// Messages, and for MariaDB the SQL of the system tables.
    pub(crate) messages: PathBuf,
    /// User and group to run as; `None` for our own.
    pub(crate) user: Option<(u32, u32)>,
}

impl Program {
    /// Where its data directories are made, as this process reaches it.
    pub fn place(&self) -> PathBuf {
        match self.root {
            // What is named in our environment need not exist there.
            Root::At(_) => self.outside(Path::new("/tmp")),
            Root::Ours | Root::Of(_) => env::temp_dir(),
        }
    }

    /// Removes the directories of servers that a killed waggle left there. A new server does so, too: this is for
    /// who wants to know before how much room there is.
    ///
    /// # Errors
    /// There is no such directory, or we may not look into it.
    pub fn sweep(&self) -> Result<(), PrivateServerError> {
        swept(&self.place()).map(drop)
    }

    /// The program that a process runs, in the container or the root directory of that process, and
    /// with its user; a user of its own takes the place of root in a root directory that is not ours, and of every user of
    /// a container. `base` and `messages` are what the server says: `@@basedir`, `@@lc_messages_dir`.
    ///
    /// # Errors
    /// It was replaced, or only root can start another one.
    pub fn of_process(
        pid: u32,
        flavour: Flavour,
        base: &Path,
        messages: &Path,
    ) -> Result<Program, PrivateServerError> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let link = |name: &str| {
            let path = proc.join(name);
            fs::read_link(&path).map_err(PrivateServerError::io("cannot look at", &path))
        };
        let (seen, root) = (link("exe")?, link("root")?);
        if seen.to_string_lossy().ends_with(" (deleted)") {
            let reason = "it was replaced since the server started".to_owned();
            return Err(PrivateServerError::Program { path: seen, reason });
        }
        let is_ours = has_our_root(pid).unwrap_or(false);
        let executable = match seen.strip_prefix(&root) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => seen,
        };
        let cannot_look = || PrivateServerError::io("cannot look at", &proc);
        let (uid, gid) = user_of(pid).map_err(cannot_look())?;
        let base = base.to_owned();
        let messages = messages.to_owned();
        if geteuid().is_root() {
            let own_pids = fs::read_link("/proc/self/ns/pid").map_err(cannot_look())?;
            let is_of_host = link("ns/pid")? == own_pids && (is_ours || uid != 0);
            let own = FIRST_UID.saturating_add(std::process::id());
            let user = Some(if is_of_host { (uid, gid) } else { (own, own) });
            return Ok(Program { flavour, root: Root::Of(pid), executable, base, messages, user });
        }
        if !is_ours || uid != geteuid().as_raw() {
            let how = if is_ours { "as another user" } else { "in a root directory of its own" };
            return Err(PrivateServerError::NotRoot { how });
        }
        let program = Program { flavour, root: Root::Ours, executable, base, messages, user: None };
        program.checked()
    }

    /// A program by its path, with what lies beside it.
    ///
    /// # Errors
    /// There is none, or its messages are not beside it.
    pub fn at(path: &Path, flavour: Flavour) -> Result<Program, PrivateServerError> {
        let failed = |reason: std::io::Error| PrivateServerError::Program {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        let executable = path.canonicalize().map_err(failed)?;
        let base = executable.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let messages = messages_below(base).ok_or_else(|| {
            let what = "share/english/errmsg.sys";
            PrivateServerError::Incomplete { program: executable.clone(), what }
        })?;
        let base = base.to_owned();
        Program::of(flavour, None, [executable, base, messages])
    }

    /// A program by its path, that of its installation and that of its messages, as they are seen from its
    /// root directory: that one is `None` where it is ours.
    ///
    /// # Errors
    /// There is none, or we may not start it there.
    pub fn of(
        flavour: Flavour,
        root: Option<PathBuf>,
        [executable, base, messages]: [PathBuf; 3],
    ) -> Result<Program, PrivateServerError> {
        let is_root = geteuid().is_root();
        if root.is_some() && !is_root {
            return Err(PrivateServerError::NotRoot { how: "in a root directory of its own" });
        }
        let user = is_root.then_some((0, 0));
        let root = root.map_or(Root::Ours, Root::At);
        Program { flavour, root, executable, base, messages, user }.checked()
    }

    /// A program by its name in a list of servers, a file with a table for each:
    ///
    /// ```toml
    /// [mysql-9]
    /// family = "mysql"                # or "mariadb"
    /// root = "/srv/trees/sid"         # its root directory, where that is not ours
    /// program = "/usr/sbin/mysqld"    # this and what follows as seen from there
    /// base = "/usr"
    /// messages = "/usr/share/mysql"
    /// ```
    ///
    /// # Errors
    /// The list cannot be read, has no such name, or what it names is not there.
    pub fn listed(list: &Path, name: &str) -> Result<Program, PrivateServerError> {
        let failed = |reason: String| PrivateServerError::List { path: list.to_owned(), reason };
        let text = fs::read_to_string(list).map_err(PrivateServerError::io("cannot read", list))?;
        let mut servers: BTreeMap<String, Listed> =
            toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
        let Some(listed) = servers.remove(name) else {
            let names: Vec<&str> = servers.keys().map(String::as_str).collect();
            return Err(failed(format!("it has no {name}, but {}", names.join(", "))));
        };
        let Listed { family, root, program, base, messages } = listed;
        Program::of(family.into(), root, [program, base, messages])
    }

    /// The path of the program, as seen from its root directory.
    pub fn path(&self) -> &Path {
        &self.executable
    }

    fn checked(self) -> Result<Program, PrivateServerError> {
        let path = self.outside(&self.executable);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() && found.mode() & 0o111 != 0 => {
                match outlives(&path, found.mode()).filter(|_| !geteuid().is_root()) {
                    None => Ok(self),
                    Some(what) => Err(PrivateServerError::Outlives { path: self.executable, what }),
                }
            }
            Ok(_) => Err(PrivateServerError::Program {
                path: self.executable,
                reason: "it is not executable".to_owned(),
            }),
            Err(error) => Err(PrivateServerError::Program {
                path: self.executable,
                reason: error.to_string(),
            }),
        }
    }

    /// Reads a file in the directory of its messages.
    ///
    /// # Errors
    /// There is none that the user of the program may read.
    pub(crate) fn read_message(
        &self,
        launcher: &Launcher,
        name: &str,
    ) -> Result<Vec<u8>, PrivateServerError> {
        let root = match &self.root {
            Root::Of(process) => {
                return launcher.look(*process, Look::Message, &[&self.messages, Path::new(name)]);
            }
            Root::At(root) => root.as_path(),
            Root::Ours => Path::new("/"),
        };
        let read = Messages::open(root, &self.messages).and_then(|messages| messages.read(name));
        read.map_err(PrivateServerError::io(
            "cannot read",
            &self.outside(&self.messages).join(name),
        ))
    }

    /// Where a server sees what is its own, in the root directory of a process: nothing that it needs lies there.
    pub(crate) fn own_seen_at(&self) -> &'static Path {
        let needed = [&self.executable, &self.base, &self.messages];
        let is_free = |place: &&Path| !needed.iter().any(|path| path.starts_with(place));
        let [first, ..] = SEEN_AT.map(Path::new);
        SEEN_AT.map(Path::new).into_iter().find(is_free).unwrap_or(first)
    }

    /// A path as the program sees it.
    pub fn inside(&self, path: &Path) -> PathBuf {
        let Root::At(root) = &self.root else { return path.to_owned() };
        path.strip_prefix(root).map_or(path.to_owned(), |rest| Path::new("/").join(rest))
    }

    /// A path of the program as this process sees it.
    pub fn outside(&self, path: &Path) -> PathBuf {
        match &self.root {
            Root::At(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            Root::Ours | Root::Of(_) => path.to_owned(),
        }
    }
}

/// User and group of a process.
pub(crate) fn user_of(pid: u32) -> io::Result<(u32, u32)> {
    let found = fs::metadata(format!("/proc/{pid}"))?;
    Ok((found.uid(), found.gid()))
}

/// The directory of the messages of a program. It is named by a server, which can be anybody's.
pub(crate) struct Messages(OwnedFd);

/// The longest file of SQL of any server has a twentieth.
pub(crate) const MESSAGES_BYTES_MAX: u64 = 16 << 20;

impl Messages {
    /// Opens the directory. Links lead where they lead for a program with this root directory, and not out of it.
    pub(crate) fn open(root: &Path, messages: &Path) -> io::Result<Messages> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let root = open(root, how, Mode::empty())?;
        Ok(Messages(openat2(root, messages, how, Mode::empty(), resolve)?))
    }

    /// Reads a file of it: no link, nothing but a regular file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        // A FIFO would wait for its other end.
        let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(openat2(&self.0, name, how, Mode::empty(), resolve)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let mut text = Vec::new();
        file.take(MESSAGES_BYTES_MAX + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MESSAGES_BYTES_MAX {
            return Err(io::Error::other("it is longer than that of any server"));
        }
        Ok(text)
    }
}

/// The directory of the messages of a program, by the directory that it was installed to: packages of Oracle have the
/// version in its name.
fn messages_below(base: &Path) -> Option<PathBuf> {
    let share = base.join("share");
    let mut places = vec![share.clone(), share.join("mysql"), share.join("mariadb")];
    let entries = fs::read_dir(&share).into_iter().flatten().flatten();
    let is_versioned =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("mysql-");
    let mut versioned: Vec<PathBuf> =
        entries.filter(is_versioned).map(|entry| entry.path()).collect();
    versioned.sort();
    places.extend(versioned);
    places.into_iter().find(|place| place.join("english/errmsg.sys").is_file())
}

/// What lets a program that we start live on when we are killed, unless we are root: the kernel then forgets that
/// it shall not (prctl(2), `PR_SET_PDEATHSIG`).
fn outlives(path: &Path, mode: u32) -> Option<&'static str> {
    if mode & 0o6000 != 0 {
        return Some("it changes its user or its group");
    }
    let size = rustix::fs::getxattr(path, "security.capability", &mut [0_u8; 64]);
    size.is_ok().then_some("it has capabilities")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_regular_files_and_links_stay_in_the_root_directory() {
        let root = tempfile::TempDir::new().unwrap();
        let share = root.path().join("opt/server/share");
        fs::create_dir_all(&share).unwrap();
        fs::write(share.join("good.sql"), "SELECT 1").unwrap();
        std::os::unix::fs::symlink("/etc/shadow", share.join("link.sql")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, share.join("pipe.sql"), fifo, Mode::RUSR, 0).unwrap();
        // As where a package is reached by a link to its version.
        std::os::unix::fs::symlink("/opt/server", root.path().join("current")).unwrap();
        let messages = Messages::open(root.path(), Path::new("/current/share")).unwrap();
        assert_eq!(messages.read("good.sql").unwrap(), b"SELECT 1");
        for refused in ["link.sql", "pipe.sql", "../share/good.sql", "none.sql"] {
            assert!(messages.read(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn messages_are_found_where_packages_put_them() {
        let place = tempfile::TempDir::new().unwrap();
        assert_eq!(messages_below(place.path()), None);
        for name in ["share/mysql-8.4", "share/mysql", "share"] {
            let messages = place.path().join(name);
            fs::create_dir_all(messages.join("english")).unwrap();
            assert_ne!(messages_below(place.path()), Some(messages.clone()));
            fs::write(messages.join("english/errmsg.sys"), "").unwrap();
            assert_eq!(messages_below(place.path()), Some(messages));
        }
    }

    #[test]
    fn a_program_that_would_outlive_us_is_known() {
        let place = tempfile::TempDir::new().unwrap();
        let program = place.path().join("mysqld");
        fs::write(&program, "").unwrap();
        let why = |mode| outlives(&program, mode);
        assert_eq!(why(0o100_755), None);
        assert!([0o104_755, 0o102_755].iter().all(|mode| why(*mode).is_some()));
    }

    #[test]
    fn a_path_is_seen_from_both_sides_of_a_root_directory() {
        let root = Path::new("/srv/tree");
        let program = Program {
            flavour: Flavour::Mysql,
            root: Root::At(root.to_owned()),
            executable: "/usr/sbin/mysqld".into(),
            base: "/usr".into(),
            messages: "/usr/share/mysql".into(),
            user: None,
        };
        let outside = root.join("tmp/x");
        assert_eq!(program.inside(&outside), Path::new("/tmp/x"));
        assert_eq!(program.outside(Path::new("/tmp/x")), outside);
        let ours = Program { root: Root::Ours, ..program };
        assert_eq!(ours.outside(Path::new("/tmp/x")), Path::new("/tmp/x"));
    }

    #[test]
    fn a_list_names_programs_and_says_what_it_has() {
        let folder = tempfile::TempDir::new().unwrap();
        let list = folder.path().join("servers.toml");
        let table =
            "family = \"mysql\"\nprogram = \"/bin/true\"\nbase = \"/usr\"\nmessages = \"/m\"\n";
        fs::write(&list, format!("[one]\n{table}[two]\n{table}")).unwrap();
        let found = Program::listed(&list, "two").unwrap();
        assert_eq!((found.path(), found.flavour), (Path::new("/bin/true"), Flavour::Mysql));
        let missing = Program::listed(&list, "three").unwrap_err().to_string();
        assert!(missing.contains("one, two"), "{missing}");
        fs::write(&list, "[one]\nfamily = \"oracle\"\n").unwrap();
        let wrong = Program::listed(&list, "one").unwrap_err().to_string();
        assert!(wrong.contains("servers.toml") && wrong.contains("oracle"), "{wrong}");
    }

    #[test]
    fn what_is_no_program_is_named() {
        let missing = Program::at(Path::new("/nosuch/mysqld"), Flavour::Mysql).unwrap_err();
        let said = missing.to_string();
        assert!(said.contains("/nosuch/mysqld") && said.contains("name a mysqld"), "{said}");
        let folder = tempfile::TempDir::new().unwrap();
        let program = folder.path().join("mysqld");
        fs::copy("/bin/true", &program).unwrap();
        let alone = Program::at(&program, Flavour::Mysql).unwrap_err();
        assert!(alone.to_string().contains("errmsg.sys"), "{alone}");
    }
}
