//! A terminal that can be read: tmux(1), with a shell in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use waggle_testkit::{wait_showing, wait_until};

/// What the shell shows when it waits.
const PROMPT: &str = "ready$ ";

/// One tmux server with one window. It ends when it is dropped, and with it what runs in it.
pub(crate) struct Tmux {
    dir: TempDir,
}

impl Tmux {
    /// A terminal of this size, with a shell that waits.
    pub(crate) fn start(columns: u16, lines: u16) -> Tmux {
        let tmux = Tmux { dir: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        let size = [columns.to_string(), lines.to_string()];
        // By env(1), since a shell in between would forget the prompt.
        let prompt = format!("PS1={PROMPT}");
        let shell = ["env", &prompt, "bash", "--norc", "--noprofile"];
        let place = ["new-session", "-d", "-x", &size[0], "-y", &size[1]];
        tmux.run(&[place.as_slice(), &shell].concat());
        tmux.prefer_over_other_sessions();
        tmux.run(&["set-option", "-s", "set-clipboard", "on"]);
        tmux.wait_for("the shell", |screen| screen.contains(PROMPT.trim_end()));
        tmux
    }

    /// The kernel gives each session the same share of a busy machine (autogroup, sched(7)), and the
    /// shell here is a session of its own: without this it would be starved by whatever else runs,
    /// which tells nothing of the view.
    fn prefer_over_other_sessions(&self) {
        let group = format!("/proc/{}/autogroup", self.variable("pane_pid"));
        if Path::new(&group).exists() {
            fs::write(group, "-15").unwrap();
        }
    }

    /// The directory in which the shell is.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn try_run(&self, arguments: &[&str]) -> Output {
        let socket = self.dir.path().join("tmux");
        Command::new("tmux")
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.dir.path())
            .env("LANG", "C.UTF-8")
            .current_dir(self.dir.path())
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(socket)
            .args(arguments)
            .output()
            .expect("tmux cannot be run; `cargo xtask setup` installs it")
    }

    /// Presses keys by their names in tmux, such as `Enter` and `C-c`.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub(crate) fn type_in(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types a command and Enter.
    pub(crate) fn command(&self, command: &str) {
        self.type_in(command);
        self.press(&["Enter"]);
    }

    /// Types a command, and waits until the shell waits again.
    pub(crate) fn command_to_its_end(&self, command: &str) {
        let mark = self.dir.path().join("ended");
        self.command(&format!("{command}; touch ended"));
        wait_until(format_args!("the end of {command}"), || mark.exists());
        fs::remove_file(mark).unwrap();
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// The same with the escape sequences of its colours.
    pub(crate) fn coloured_screen(&self) -> String {
        self.run(&["capture-pane", "-p", "-e"])
    }

    /// What tmux knows, by the name of a variable, such as `alternate_on`.
    pub(crate) fn variable(&self, name: &str) -> String {
        self.run(&["display-message", "-p", &format!("#{{{name}}}")]).trim_end().to_owned()
    }

    /// What was put into the clipboard.
    pub(crate) fn clipboard(&self) -> String {
        self.run(&["show-buffer"])
    }

    /// Gives the window another size.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let size = [columns.to_string(), lines.to_string()];
        self.run(&["resize-window", "-x", &size[0], "-y", &size[1]]);
    }

    /// Waits until the screen is as it should be, and returns it.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        wait_showing(what, || {
            let screen = self.screen();
            if is_so(&screen) { Ok(screen) } else { Err(screen) }
        })
    }

    /// Waits until waggle has ended, and gives what is on the screen then.
    pub(crate) fn last_screen(&self) -> String {
        // It comes in pieces.
        let is_whole = |line: &str| line.contains("captured ") && line.contains(", lost ");
        self.wait_for("the last sentence", |screen| screen.lines().any(is_whole))
    }

    /// Presses q, and waits as [`Tmux::last_screen`].
    pub(crate) fn quit(&self) -> String {
        self.press(&["q"]);
        self.last_screen()
    }

    /// The mode of the terminal (stty(1), without its size), whether an alternate screen is on, and
    /// the cursor.
    pub(crate) fn state(&self) -> [String; 3] {
        self.command_to_its_end("clear; stty -g > mode");
        let mode = fs::read_to_string(self.dir.path().join("mode")).unwrap();
        [mode, self.variable("alternate_on"), self.variable("cursor_flag")]
    }

    /// The process of this program in the window.
    pub(crate) fn process(&self, program: &str) -> Option<Pid> {
        let shell = self.variable("pane_pid");
        let children = format!("/proc/{shell}/task/{shell}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let is_it = |pid: &&str| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim_end() == program
        };
        let pid = children.split_ascii_whitespace().find(is_it)?;
        Pid::from_raw(pid.parse().unwrap())
    }

    /// Stops tmux itself, so that the terminal takes no output, until what is returned is dropped.
    pub(crate) fn stop(&self) -> Stopped {
        let server = Pid::from_raw(self.variable("pid").parse().unwrap()).unwrap();
        kill_process(server, Signal::STOP).unwrap();
        Stopped(server)
    }

    /// Closes the terminal under whatever runs in it.
    pub(crate) fn close(&self) {
        self.run(&["kill-server"]);
    }

    /// Files of the shell's directory whose name begins so.
    pub(crate) fn files(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let begins = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        };
        entries.filter(begins).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended.
        self.try_run(&["kill-server"]);
    }
}

/// A tmux that is stopped.
pub(crate) struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

/// Waits until a process is gone.
pub(crate) fn wait_for_end(pid: Pid) {
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    // One whose end nobody has asked for yet is a zombie (proc_pid_stat(5)).
    let has_ended = || {
        let stat = fs::read_to_string(&path).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.starts_with(" Z"))
    };
    wait_until("the end of waggle", has_ended);
}
