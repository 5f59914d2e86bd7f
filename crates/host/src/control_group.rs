//! The control groups of a process (cgroups(7)).

use std::fs;
use std::path::{Component, Path, PathBuf};

use waggle_model::Reading;

/// Where the control groups of a host are.
pub(crate) const ROOT: &str = "/sys/fs/cgroup";

/// A group of a process, in one of the two versions.
struct Group {
    /// Where its hierarchy is mounted.
    mount: PathBuf,
    /// Its folder below that; empty for the root, which has everybody.
    path: PathBuf,
}

impl Group {
    /// It and those above it, the root apart.
    fn lineage(&self) -> impl Iterator<Item = PathBuf> {
        let below = self.path.ancestors().filter(|path| !path.as_os_str().is_empty());
        below.map(|path| self.mount.join(path))
    }
}

/// By which file the process with these lines in `/proc/PID/cgroup` was frozen; `None` if it was not.
///
/// Version 2 has `cgroup.events`, whose `frozen` is that of the group or of one above it, and `cgroup.freeze`
/// (`Documentation/admin-guide/cgroup-v2.rst`). Version 1 has `freezer.state`, and `freezer.self_freezing` in the group
/// that was asked to (`cgroup-v1/freezer-subsystem.rst`).
pub(crate) fn frozen_by(root: &Path, lines: &str) -> Reading<Option<PathBuf>> {
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
}
