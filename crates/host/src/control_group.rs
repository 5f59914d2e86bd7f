//! The control groups of a process (cgroups(7)).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Component, Path, PathBuf};

use waggle_model::Reading;

use crate::process::Process;

/// Where the control groups of a host are.
const ROOT: &str = "/sys/fs/cgroup";

/// What a control group may use of the processors, and how often it was held back so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    /// What it may use, cores.
    pub cores: f64,
    /// Periods in which it ran.
    pub periods: u64,
    /// Of these, the ones in which it was held back.
    pub held_back: u64,
}

/// How long tasks have waited for storage so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoragePressure {
    /// At least one at a time, microseconds.
    pub some_us: u64,
    /// The group whose tasks count; `None`: all of the host.
    pub of_group: Option<PathBuf>,
}

impl Process {
    /// The file that froze its control group; `None` if none did.
    pub(crate) fn frozen_by(&self) -> Reading<Option<PathBuf>> {
        match self.control_groups() {
            Reading::Value(lines) => frozen_by(Path::new(ROOT), &lines),
            Reading::Absent(why) => Reading::Absent(why),
        }
    }

    /// The control groups of it that have a limit on processor time.
    pub fn quotas(&self) -> Reading<BTreeMap<PathBuf, Quota>> {
        self.control_groups().and_then(|lines| quotas(Path::new(ROOT), &lines))
    }

    /// For how long tasks of its control group waited for storage, where the group tells that; else those of the host.
    pub fn storage_pressure(&self) -> Reading<StoragePressure> {
        let lines = self.control_groups();
        let lines = lines.value().map_or("", String::as_str);
        storage_pressure(Path::new(ROOT), Path::new("/proc/pressure/io"), lines)
    }

    fn control_groups(&self) -> Reading<String> {
        self.read("cgroup", |lines| Some(lines.to_owned()))
    }
}

/// A group of a process, in one of the two versions.
struct Group {
    /// Where its hierarchy is mounted.
    mount: PathBuf,
    /// Its folder below that; empty for the topmost that we see: the root, or in a container the container's own group.
    path: PathBuf,
}

impl Group {
    /// It and those above it. The root of all has none of the files that are read here, except `io.pressure`.
    fn lineage(&self) -> impl Iterator<Item = PathBuf> {
        self.path.ancestors().map(|path| self.mount.join(path))
    }
}

/// The file that froze the process with these lines in `/proc/PID/cgroup`; `None` if none did.
///
/// Version 2 has `cgroup.events`, whose `frozen` is that of the group or of one above it, and `cgroup.freeze`
/// (`Documentation/admin-guide/cgroup-v2.rst`). Version 1 has `freezer.state`, and `freezer.self_freezing` in the group
/// that was asked to (`cgroup-v1/freezer-subsystem.rst`).
fn frozen_by(root: &Path, lines: &str) -> Reading<Option<PathBuf>> {
    let has = |folder: &Path, file: &str, line: &str| {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        text.lines().any(|one| one == line)
    };
    let kinds = [
        ("", ("cgroup.events", "frozen 1"), ("cgroup.freeze", "1"), "cgroup.freeze"),
        ("freezer", ("freezer.state", "FROZEN"), ("freezer.self_freezing", "1"), "freezer.state"),
    ];
    for (controller, is_frozen, is_asked, file) in kinds {
        let group = match group(root, lines, controller) {
            Ok(Some(group)) => group,
            Ok(None) => continue,
            Err(why) => return Reading::Absent(why),
        };
        let Some(own) = group.lineage().next() else { continue };
        if has(&own, is_frozen.0, is_frozen.1) {
            let asked = group.lineage().find(|folder| has(folder, is_asked.0, is_asked.1));
            return Reading::Value(Some(asked.unwrap_or(own).join(file)));
        }
    }
    Reading::Value(None)
}

/// Reads `io.pressure` of the group of the process with these lines in `/proc/PID/cgroup` (version 2), else that of the host
/// (`Documentation/accounting/psi.rst`). The root of all groups has no `cgroup.events`, and its waits are the host's.
fn storage_pressure(root: &Path, of_host: &Path, lines: &str) -> Reading<StoragePressure> {
    let folder = group(root, lines, "").ok().flatten().and_then(|group| group.lineage().next());
    let folder = folder.filter(|folder| folder.join("cgroup.events").exists());
    let of_group = folder.as_ref().and_then(|folder| some_us(&folder.join("io.pressure")).ok());
    let told = match of_group {
        Some(some_us) => Ok(StoragePressure { some_us, of_group: folder }),
        None => some_us(of_host).map(|some_us| StoragePressure { some_us, of_group: None }),
    };
    told.map_or_else(Reading::Absent, Reading::Value)
}

/// `total` of the line `some`.
fn some_us(file: &Path) -> Result<u64, String> {
    let failed = |why: &dyn Display| format!("{}: {why}", file.display());
    let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let total = some.and_then(|line| line.rsplit_once("total=")?.1.trim().parse().ok());
    total.ok_or_else(|| failed(&"it does not say for how long"))
}

/// The limits on the process with these lines in `/proc/PID/cgroup`: `cpu.max` in version 2, `cpu.cfs_quota_us` and
/// `cpu.cfs_period_us` in version 1, and `cpu.stat` in both (`Documentation/scheduler/sched-bwc.rst`).
fn quotas(root: &Path, lines: &str) -> Result<BTreeMap<PathBuf, Quota>, String> {
    let mut all = BTreeMap::new();
    for controller in ["", "cpu"] {
        let Some(group) = group(root, lines, controller)? else { continue };
        all.extend(group.lineage().filter_map(|folder| Some((folder.clone(), quota(&folder)?))));
    }
    Ok(all)
}

fn quota(folder: &Path) -> Option<Quota> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let both = read("cpu.max")
        .or_else(|| Some(read("cpu.cfs_quota_us")? + " " + &read("cpu.cfs_period_us")?))?;
    // Without a limit it is `max` or -1.
    let mut numbers = both.split_ascii_whitespace().map_while(|word| word.parse::<u32>().ok());
    let (quota_us, period_us) = (numbers.next()?, numbers.next()?);
    let stat = read("cpu.stat")?;
    let number = |name: &str| {
        let mut lines = stat.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    Some(Quota {
        cores: f64::from(quota_us) / f64::from(period_us.max(1)),
        periods: number("nr_periods ")?,
        held_back: number("nr_throttled ")?,
    })
}

/// The group of a process in the hierarchy of a controller of version 1, or in that of version 2 (an empty name).
/// `None` if there is no such hierarchy.
fn group(root: &Path, lines: &str, controller: &str) -> Result<Option<Group>, String> {
    let path = lines.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    });
    let Some(path) = path.and_then(|path| path.strip_prefix('/')) else { return Ok(None) };
    let path = Path::new(path);
    if path.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(format!("its control group is outside of ours: {}", path.display()));
    }
    // Both versions beside each other: version 2 has a folder of its own.
    let mounts = if controller.is_empty() { ["", "unified"] } else { [controller; 2] };
    let mut mounts = mounts.map(|mount| root.join(mount)).into_iter();
    match mounts.find(|mount| mount.join(path).join("cgroup.procs").exists()) {
        Some(mount) => Ok(Some(Group { mount, path: path.to_owned() })),
        // Nobody freezes the root.
        None if path.as_os_str().is_empty() => Ok(None),
        None => {
            Err(format!("its control group is not below {}: {}", root.display(), path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control groups with these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path.with_file_name("cgroup.procs"), "").unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_group_that_was_frozen_is_named_in_both_versions() {
        let root = tree(&[
            ("pod/db/cgroup.events", "populated 1\nfrozen 1\n"),
            ("pod/db/cgroup.freeze", "0\n"),
            ("pod/cgroup.events", "populated 1\nfrozen 1\n"),
            ("pod/cgroup.freeze", "1\n"),
            ("free/cgroup.events", "populated 1\nfrozen 0\n"),
            ("free/cgroup.freeze", "1\n"),
        ]);
        let by = |lines: &str| frozen_by(root.path(), lines);
        let file = |path: &str| Reading::Value(Some(root.path().join(path)));
        assert_eq!(by("0::/pod/db\n"), file("pod/cgroup.freeze"));
        assert_eq!(by("0::/free\n"), Reading::Value(None), "not yet");
        assert_eq!(by("0::/\n"), Reading::Value(None));
        assert_eq!(by(""), Reading::Value(None));
        for outside in ["0::/../other\n", "0::/gone\n", "4:freezer,pids:/pod\n"] {
            assert!(by(outside).why().is_some(), "{outside}");
        }
        let root = tree(&[
            ("freezer/docker/7/freezer.state", "FROZEN\n"),
            ("freezer/docker/7/freezer.self_freezing", "0\n"),
            ("freezer/docker/freezer.state", "FROZEN\n"),
            ("freezer/docker/freezer.self_freezing", "1\n"),
            ("unified/db/cgroup.events", "frozen 1\n"),
        ]);
        let by = |lines: &str| frozen_by(root.path(), lines);
        let file = |path: &str| Reading::Value(Some(root.path().join(path)));
        let lines = "6:pids:/x\n5:freezer:/docker/7\n0::/\n";
        assert_eq!(by(lines), file("freezer/docker/freezer.state"));
        assert_eq!(by("5:freezer:/\n0::/db\n"), file("unified/db/cgroup.freeze"));
    }

    #[test]
    fn each_group_with_a_limit_on_processors_is_found_in_both_versions() {
        let stat = "usage_usec 7\nnr_periods 40\nnr_throttled 10\nthrottled_usec 5\n";
        let root = tree(&[
            ("pod/db/cpu.max", "max 100000\n"),
            ("pod/db/cpu.stat", stat),
            ("pod/cpu.max", "150000 100000\n"),
            ("pod/cpu.stat", stat),
            ("cpu/free/cpu.cfs_quota_us", "-1\n"),
            ("cpu/free/cpu.cfs_period_us", "100000\n"),
            ("cpu/free/cpu.stat", stat),
            ("cpu/db/cpu.cfs_quota_us", "20000\n"),
            ("cpu/db/cpu.cfs_period_us", "50000\n"),
            ("cpu/db/cpu.stat", stat),
        ]);
        let of =
            |lines: &str| quotas(root.path(), lines).map(|all| all.into_iter().collect::<Vec<_>>());
        let limit = |path: &str, cores| {
            Ok(vec![(root.path().join(path), Quota { cores, periods: 40, held_back: 10 })])
        };
        assert_eq!(of("0::/pod/db\n"), limit("pod", 1.5));
        assert_eq!(of("3:cpu,cpuacct:/db\n0::/\n"), limit("cpu/db", 0.4));
        assert_eq!(of("3:cpu,cpuacct:/free\n"), Ok(Vec::new()));
        assert!(of("0::/gone\n").is_err());
    }

    #[test]
    fn the_waits_for_storage_are_those_of_the_group_where_it_tells_them() {
        let line = |total| {
            format!(
                "some avg10=0.00 avg60=1.50 avg300=0.70 total={total}\nfull avg10=0.00 total=1\n"
            )
        };
        let (of_group, of_host) = (line(12), line(34));
        let root = tree(&[
            ("db/io.pressure", &of_group),
            ("db/cgroup.events", ""),
            ("io.pressure", "some total=9"),
            ("old/cpu.max", "max"),
            ("io", &of_host),
        ]);
        let told =
            |lines: &str, host| storage_pressure(root.path(), &root.path().join(host), lines);
        let is = |some_us, of_group: Option<&str>| {
            Reading::Value(StoragePressure {
                some_us,
                of_group: of_group.map(|it| root.path().join(it)),
            })
        };
        assert_eq!(told("0::/db\n", "io"), is(12, Some("db")));
        for lines in ["0::/old\n", "0::/\n", "0::/../x\n", ""] {
            assert_eq!(told(lines, "io"), is(34, None), "{lines}");
        }
        assert!(told("0::/old\n", "none").why().is_some());
    }
}
