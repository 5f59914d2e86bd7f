//! What a person wants to know of a server before waggle attaches to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waggle_model::Reading;

use super::sockets::{Endpoint, listening};
use super::status::{line, link, no_right, start_ticks};

/// One server, described from outside.
#[derive(Clone, Debug)]
pub struct Description {
    /// The data directory: a server changes into it at start and stays there.
    pub data_directory: Reading<PathBuf>,
    /// Where it takes connections.
    pub listens: Reading<Vec<Endpoint>>,
    /// Since when it runs.
    pub uptime: Reading<Duration>,
    /// The user it runs as.
    pub user: Reading<User>,
    /// What separates it from us.
    pub confinement: Confinement,
}

/// The user of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The effective user id.
    pub uid: u32,
    /// The name by the server's own `/etc/passwd`, where it has one.
    pub name: Option<String>,
}

/// What separates a server from waggle. `None` where it could not be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Its root directory, where it is not ours.
    pub chroot: Option<PathBuf>,
    /// It has a mount namespace of its own, as in a container or under some systemd settings.
    pub other_mounts: Option<bool>,
    /// It has a pid namespace of its own, as in a container.
    pub other_pids: Option<bool>,
    /// Its pid as it sees it itself, where that differs.
    pub pid_inside: Option<u32>,
}

/// Describes the process with this pid. What it is has been found out before.
pub fn describe(proc_root: &Path, pid: u32) -> Description {
    let folder = proc_root.join(pid.to_string());
    let status = folder.join("status");
    let status = fs::read(&status)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map_err(|error| no_right(&status, &error));
    let user = match &status {
        Ok(status) => user_of(status, &folder)
            .map_or_else(|| Reading::absent("the status file has no Uid line"), Reading::Value),
        Err(why) => Reading::absent(why.clone()),
    };
    let pid_inside = status.ok().and_then(|status| {
        let inside = line(&status, "NSpid")?.split_ascii_whitespace().last()?.parse().ok()?;
        (inside != pid).then_some(inside)
    });
    Description {
        data_directory: link(&folder.join("cwd")),
        listens: listening(&folder),
        uptime: uptime(proc_root, &folder),
        user,
        confinement: confinement(proc_root, &folder, pid_inside),
    }
}

/// `Uid: real effective saved filesystem`.
fn user_of(status: &str, folder: &Path) -> Option<User> {
    let uid = line(status, "Uid")?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let passwd = fs::read(folder.join("root/etc/passwd")).unwrap_or_default();
    Some(User { uid, name: name_of(uid, &String::from_utf8_lossy(&passwd)) })
}

/// `name:password:uid:gid:…` (passwd(5)).
fn name_of(uid: u32, passwd: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

fn uptime(proc_root: &Path, folder: &Path) -> Reading<Duration> {
    let stat = folder.join("stat");
    let stat = match fs::read(&stat) {
        Ok(bytes) => bytes,
        Err(error) => return Reading::absent(no_right(&stat, &error)),
    };
    let since_boot = fs::read_to_string(proc_root.join("uptime"))
        .ok()
        .and_then(|uptime| uptime.split_ascii_whitespace().next()?.parse::<f64>().ok());
    let (Some(ticks), Some(since_boot)) = (start_ticks(&stat), since_boot) else {
        return Reading::absent("the start of the process or of the system cannot be read");
    };
    // Clock ticks are a unit of the interface, not of the kernel: sysconf(_SC_CLK_TCK).
    let started = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    Duration::try_from_secs_f64((since_boot - started).max(0.0))
        .map_or_else(|error| Reading::absent(error.to_string()), Reading::Value)
}

fn confinement(proc_root: &Path, folder: &Path, pid_inside: Option<u32>) -> Confinement {
    let differs = |name: &str| {
        let theirs = fs::read_link(folder.join("ns").join(name)).ok()?;
        let ours = fs::read_link(proc_root.join("self/ns").join(name)).ok()?;
        Some(theirs != ours)
    };
    let ours = fs::read_link(proc_root.join("self/root")).unwrap_or_else(|_| PathBuf::from("/"));
    Confinement {
        chroot: fs::read_link(folder.join("root")).ok().filter(|root| *root != ours),
        other_mounts: differs("mnt"),
        other_pids: differs("pid"),
        pid_inside,
    }
}
