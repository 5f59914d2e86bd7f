//! What waggle must refuse, and how it says so.

use waggle_testkit::{Server, Version};

use super::disguise::Disguised;
use crate::watched;
use crate::watching::Waggle;

#[test]
fn a_host_without_a_server_is_told_so() {
    // In a process namespace of its own waggle sees nobody else.
    let alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let ended = Waggle::through(&alone, &["watch", "--for", "1s"]).end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
    for said in ["no mysqld or mariadbd runs on this host", "the first that starts is watched"] {
        assert!(ended.err.contains(said), "{}", ended.err);
    }
}

#[test]
fn a_process_that_is_no_server_is_refused() {
    let own = std::process::id().to_string();
    let ended = Waggle::start(&["watch", "--pid", &own]).end();
    let pid = format!("pid {own} is not a running mysqld or mariadbd");
    ended.assert_refused(&[&pid, "`waggle servers`"]);
}

#[test]
fn who_lacks_the_rights_is_told_which() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ];
    let ended = Waggle::through(&nobody, &["watch", "--json", "--pid", &pid]).end();
    ended.assert_refused(&["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"]);
}

/// With the right to make maps and without the one to trace: only a try shows it.
#[test]
fn a_server_is_listed_as_attachable_only_where_it_can_be_attached() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let rights = ["setpriv", "--bounding-set=-perfmon,-sys_admin"];
    for (ended, attachable) in [
        (Waggle::start(&["servers", "--json"]).end(), true),
        (Waggle::through(&rights, &["servers", "--json"]).end(), false),
    ] {
        let mut rows = ended.out.lines().map(|line| serde_json::from_str(line).unwrap());
        let row = rows
            .find(|row: &serde_json::Value| row["pid"] == server.pid())
            .unwrap_or_else(|| panic!("not listed: {}", ended.out));
        assert_eq!(row["attachable"], attachable, "{row:#}");
        let why = row["why_not"].as_str().unwrap_or_default();
        assert_eq!(why.contains("CAP_PERFMON"), !attachable, "{row:#}");
    }
}

#[test]
fn a_kernel_without_its_types_is_refused_and_the_option_is_named() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    // What the kernel tells of its types, and the images that libbpf looks for instead, are hidden.
    let hide = "for at in /sys/kernel/btf /boot /lib/modules; do \
                if [ -d $at ]; then mount -t tmpfs none $at || exit 1; fi; done; exec \"$@\"";
    let without = ["unshare", "--mount", "sh", "-c", hide, "sh"];
    let ended = Waggle::through(&without, &["watch", "--json", "--pid", &pid]).end();
    ended.assert_refused(&["BTF", "CONFIG_DEBUG_INFO_BTF"]);
    let doctor = Waggle::through(&without, &["doctor", "--json", "--pid", &pid]).end();
    let told: serde_json::Value = serde_json::from_str(&doctor.out).unwrap();
    let host = told["host"].as_array().unwrap();
    let btf = host.iter().find(|fact| fact["name"] == "btf").unwrap();
    assert_eq!(btf["state"], "no", "{btf:#}");
}

#[test]
fn a_build_that_hides_its_session_is_refused_and_the_field_is_named() {
    let hidden = Disguised::start(Version::Mariadb1011, &["_current_thd"]);
    let pid = hidden.pid().to_string();
    let ended = Waggle::start(&["watch", "--json", "--pid", &pid]).end();
    ended.assert_refused(&["current_thd", "use the vendor's binary"]);
    assert!(hidden.answers(), "the server goes on");
}

#[test]
fn a_build_without_symbols_is_refused_with_the_reason() {
    let hidden = Disguised::start(Version::Mysql80, &["thd_", "THD", "THR_", "Diagnostics_area"]);
    let pid = hidden.pid().to_string();
    let ended = Waggle::start(&["watch", "--json", "--pid", &pid]).end();
    ended.assert_refused(&["use the vendor's binary", "dynamic symbols"]);
    assert!(hidden.answers(), "the server goes on");
}

#[test]
fn a_build_that_hides_one_number_is_watched_without_it() {
    let hidden =
        Disguised::start(Version::Mariadb1011, &["examined_row_count", "MYSQL_QUERY_LOG5write"]);
    let mut waggle = Waggle::watch_pid(hidden.pid(), &["--interval", "500ms"]);
    assert!(hidden.answers());
    waggle.wait_for_lines(2);
    let lines = waggle.interrupt().lines();
    let seen = watched::digests(&lines, "SELECT ?");
    let one = seen.first().unwrap_or_else(|| panic!("nothing was captured: {lines:#?}"));
    assert!(one["rows_examined"].is_null(), "not measured is not zero: {one:#}");
    assert_eq!(one["rows_sent"], 1);
}

/// The kernel calls the loader its executable.
#[test]
fn a_server_that_the_loader_of_programs_started_is_found_and_watched() {
    // One finds its session by a thread-local variable, and one by a key of threads.
    for version in [Version::Mariadb1011, Version::Mysql57] {
        let loaded = Disguised::through_loader(version);
        let listed = Waggle::start(&["servers", "--json"]).end();
        let mut rows = listed.out.lines().map(|line| serde_json::from_str(line).unwrap());
        let row = rows.find(|row: &serde_json::Value| row["pid"] == loaded.pid());
        let row = row.unwrap_or_else(|| panic!("{version} is not listed: {}", listed.out));
        assert_eq!(row["attachable"], true, "{version}: {row:#}");
        for hook in ["send", "uprobe"] {
            let arguments = ["--interval", "500ms", "--hook", hook];
            let mut waggle = Waggle::watch_pid(loaded.pid(), &arguments);
            assert!(loaded.answers());
            waggle.wait_for_lines(2);
            let lines = waggle.interrupt().lines();
            let seen = watched::digests(&lines, "SELECT ?");
            assert!(!seen.is_empty(), "{version} by {hook}: {lines:#?}");
        }
    }
}

/// Somebody without rights, where /proc shows the processes of others without their contents, or not
/// at all (proc(5)).
#[test]
fn who_may_not_look_at_others_is_told_that_servers_may_be_among_them() {
    let server = Server::start(Version::Mariadb1011).unwrap();
    let pid = server.pid().to_string();
    for (hidepid, words) in [(1, "may not be looked at"), (2, "(hidepid)")] {
        let mount = format!("mount -t proc -o hidepid={hidepid} proc /proc && exec \"$@\"");
        let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let through = [&["unshare", "--mount", "sh", "-c", &mount, "sh"][..], &nobody].concat();
        for (command, code) in [("doctor", 1), ("servers", 0)] {
            let ended = Waggle::through(&through, &[command]).end();
            let said = ended.out + &ended.err;
            assert!(said.contains(words) && said.contains("CAP_SYS_PTRACE"), "{command}: {said}");
            assert!(!said.contains("runs on this host"), "{command}: {said}");
            assert_eq!(ended.code, Some(code), "{command}: {said}");
        }
    }
    // Where their names are shown, the server is listed with the reason.
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let listed = Waggle::through(&nobody, &["servers"]).end().out;
    assert!(listed.contains(&format!(", pid {pid}, ")), "{listed}");
    assert!(listed.contains("server of user ") && !listed.contains("unknown unknown"), "{listed}");
    let ended = Waggle::through(&nobody, &["doctor"]).end();
    assert!(ended.out.contains("not tried: no server can be opened"), "{}", ended.out);
    assert!(ended.out.contains(&format!("pid {pid}: cannot be watched")), "{}", ended.out);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
}
