//! Places in the kernel's list of watched servers. The test runs in a pid namespace of its own, where it chooses the
//! numbers of its processes.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use waggle_observe::{Capture, CaptureOptions, News};
use waggle_testkit::{Killed, Server, Version, wait_until};

/// Set inside the namespace, to the program of a server.
const INSIDE: &str = "WAGGLE_TEST_PLACES";
/// Servers whose numbers differ by this want the same places, of which there are four.
const PLACES: u32 = 256;
const NOBODY: u32 = 65_534;

#[test]
fn a_server_that_gave_its_place_away_is_watched_again_when_there_is_room() {
    if let Some(program) = env::var_os(INSIDE) {
        return gives_away_and_gets_back(Path::new(&program));
    }
    let program = Server::start(Version::Mariadb1011).unwrap().program().to_owned();
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(env::current_exe().unwrap());
    command.args([
        "--exact",
        "places::a_server_that_gave_its_place_away_is_watched_again_when_there_is_room",
    ]);
    let ended = command.env(INSIDE, program).output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && out.contains("1 passed"), "{out}");
}

fn gives_away_and_gets_back(program: &Path) {
    // Where everybody may go.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let options = dir.path().join("options");
    assert!(Command::new("mkfifo").arg(&options).status().unwrap().success());
    // It waits for somebody who writes its options.
    let start = |number: u32, user: u32| {
        fs::write("/proc/sys/kernel/ns_last_pid", (number - 1).to_string()).unwrap();
        let mut command = Command::new(program);
        command.arg(format!("--defaults-file={}", options.display())).uid(user).gid(user);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Killed(command.spawn().unwrap());
        assert_eq!(process.id(), number);
        process
    };
    let others: Vec<Killed> = (4..8).map(|turn| start(turn * PLACES, NOBODY)).collect();
    let mut capture = Capture::new(CaptureOptions::default()).unwrap();
    capture.look_and_wait(false, &|| false);
    assert_eq!(
        capture.watched().len(),
        others.len(),
        "{:?}",
        capture.refused().collect::<Vec<_>>()
    );

    let first = start(8 * PLACES, 0);
    let news = capture.look_and_wait(false, &|| false);
    let gone = news.iter().find_map(|news| match news {
        News::Gone(gone) => Some(gone.server.pid),
        _ => None,
    });
    let gone = gone.unwrap_or_else(|| panic!("{:?}", capture.refused().collect::<Vec<_>>()));
    assert!(capture.watched().contains_key(&first.id()) && !capture.watched().contains_key(&gone));
    assert!(capture.refused().any(|(pid, why)| pid == gone && why.contains("its place")));

    drop(first);
    wait_until("the place is taken again", || {
        capture.look_and_wait(false, &|| false);
        capture.watched().contains_key(&gone)
    });
    assert_eq!(capture.refused().count(), 0);
}
