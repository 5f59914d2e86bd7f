//! A control group for a server.

use std::fs;
use std::path::{Path, PathBuf};

use waggle_testkit::wait_until;

/// What is set on a group: where its hierarchy is mounted, a file of the group, and what is written there.
pub(super) type Setting = (&'static str, &'static str, &'static str);

/// A group with one process in it. When this is dropped, that one is outside again.
pub(super) struct ControlGroup {
    mount: &'static Path,
    /// The file that is set.
    pub(super) file: PathBuf,
    folder: PathBuf,
    pid: u32,
}

impl ControlGroup {
    /// Takes a process into a new group, by the first of these settings that this host has. It is not set yet.
    pub(super) fn of(pid: u32, settings: &[Setting]) -> (ControlGroup, &'static str) {
        let name = format!("waggle-test-{pid}");
        let made = settings.iter().find_map(|&(mount, file, value)| {
            let mount = Path::new(mount);
            let folder = mount.join(&name);
            mount.join("cgroup.procs").exists().then(|| fs::create_dir(&folder).unwrap())?;
            // Version 2 has the files only where they are asked for, and that need not be done yet.
            for controller in ["+cpu", "+memory"] {
                let _ = fs::write(mount.join("cgroup.subtree_control"), controller);
            }
            let group = ControlGroup { mount, file: folder.join(file), folder, pid };
            group.file.exists().then_some((group, value))
        });
        let (group, value) = made.expect("this host has control groups");
        ControlGroup::take(&group.folder, pid);
        (group, value)
    }

    pub(super) fn write(&self, value: &str) {
        fs::write(&self.file, value).unwrap();
    }

    fn take(folder: &Path, pid: u32) {
        // A process that has ended is in none.
        let _ = fs::write(folder.join("cgroup.procs"), pid.to_string());
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        ControlGroup::take(self.mount, self.pid);
        wait_until("the group is empty", || fs::remove_dir(&self.folder).is_ok());
    }
}
