//! The layout of every real server, derived from its file alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use waggle_host::{monotonic_ns, wall_ns};
use waggle_model::{Clock, Flavour, Reading, RunningStatement};
use waggle_probes::servers::elf::Elf;
use waggle_probes::servers::layout::{
    Base, Confirmation, CurrentThd, Field, Layout, LockTime, Now,
};
use waggle_probes::servers::{Place, ProcessMemory};
use waggle_probes::sessions::{Limits, Sampler, Sessions};
use waggle_testkit::client::{Client, Command as Send, Transport};
use waggle_testkit::{Account, Server, Version, wait_for};

use crate::recognised;

/// The program of each version.
pub(crate) fn binaries() -> &'static [(Version, PathBuf)] {
    static BINARIES: OnceLock<Vec<(Version, PathBuf)>> = OnceLock::new();
    BINARIES.get_or_init(|| {
        let program = |version| Server::start(version).unwrap().program().to_owned();
        Version::BUILDS.into_iter().map(|version| (version, program(version))).collect()
    })
}

fn derived(path: &Path) -> Layout {
    Layout::derive(&Elf::open(path).unwrap()).unwrap()
}

#[test]
fn every_field_of_every_server_is_found_without_asking_the_server() {
    for (version, path) in binaries() {
        let layout = derived(path);
        for field in Field::ALL {
            assert_eq!(layout.fields[&field].why(), None, "{version}: {}", field.name());
        }
        assert!(layout.current_thd.value().is_some(), "{version}: {:?}", layout.current_thd);
        let is_old_mysql = *version == Version::Mysql57;
        let by_key = matches!(layout.current_thd.value(), Some(CurrentThd::PthreadKey { .. }));
        assert_eq!(by_key, is_old_mysql, "{version}");
    }
}

#[test]
fn what_a_person_found_in_these_builds_is_what_is_decoded() {
    for (version, path) in binaries() {
        let confirmation = derived(path).confirmation();
        // Debian's packages move on to newer patches; those from Maven stay.
        let moves = matches!(version, Version::Mysql9 | Version::Mariadb1011 | Version::Mariadb118);
        let is_good = confirmation == Confirmation::Confirmed
            || (moves && confirmation == Confirmation::Unlisted);
        assert!(is_good, "{version}: {confirmation:?}");
    }
}

#[test]
fn family_clock_and_kind_of_lock_time_follow_from_the_file() {
    for (version, path) in binaries() {
        let layout = derived(path);
        let (flavour, clock) = if version.is_mariadb() {
            (Flavour::Mariadb, Clock::Monotonic)
        } else {
            (Flavour::Mysql, Clock::Wall)
        };
        assert_eq!((layout.flavour, layout.clock), (flavour, clock), "{version}");
        let is_duration = layout.lock_time.value() == Some(&LockTime::Duration);
        assert_eq!(is_duration, *version == Version::Mysql9, "{version}: {:?}", layout.lock_time);
    }
}

#[test]
fn the_version_is_read_from_the_file() {
    for (version, path) in binaries() {
        let stated = derived(path).version;
        let expected = match version {
            Version::Mysql57 => "5.7.22",
            Version::Mysql80 => "8.0.12",
            Version::Mysql9 => "9.",
            Version::Mariadb1011 => "10.11.",
            Version::Mariadb114 => "11.4.5-MariaDB",
            Version::Mariadb118 => "11.8.",
        };
        assert!(stated.starts_with(expected), "{version}: {stated}");
    }
}

#[test]
fn a_server_without_dynamic_symbols_is_refused_with_a_remedy() {
    let (_, path) = &binaries()[0];
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("mysqld");
    let status = Command::new("objcopy")
        .args(["--remove-section", ".dynsym"])
        .args([path, &stripped])
        .stderr(std::process::Stdio::null())
        .status()
        .expect("objcopy cannot be run: install binutils");
    assert!(status.success(), "objcopy failed: {status}");
    let elf = Elf::open(&stripped).unwrap();
    let error = Layout::derive(&elf).unwrap_err().to_string();
    assert!(error.contains("mysqld: ") && error.contains("use the vendor's binary"), "{error}");
}

#[test]
fn a_server_without_sections_and_debug_symbols_is_read_all_the_same() {
    let (version, path) = &binaries()[0];
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("mysqld");
    let mut bytes = fs::read(path).unwrap();
    // e_shoff, e_shnum and e_shstrndx of the ELF header, as sstrip leaves them.
    bytes[0x28..0x30].fill(0);
    bytes[0x3c..0x40].fill(0);
    fs::write(&stripped, bytes).unwrap();
    assert_eq!(derived(&stripped).fields, derived(path).fields, "{version}");
}

#[test]
fn a_server_without_both_functions_of_a_field_lacks_it_and_says_why() {
    let (version, path) = &binaries()[0];
    let mut bytes = fs::read(path).unwrap();
    for name in ["_ZN3THD11set_commandE19enum_server_command\0", "_ZN16Find_thd_with_idclEP3THD\0"]
    {
        let name = name.as_bytes();
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at + 5] = b'9';
    }
    let layout = Layout::derive(&Elf::from_bytes("changed", bytes).unwrap()).unwrap();
    for field in Field::ALL {
        let why = layout.fields[&field].why();
        assert_eq!(why.is_some(), field == Field::Command, "{version}: {}: {why:?}", field.name());
    }
    let why = layout.fields[&Field::Command].why().unwrap();
    assert!(why.contains("exports none of") && why.contains("set_command"), "{why}");
}

#[test]
fn a_server_cut_anywhere_is_refused_or_read_with_reasons() {
    let (_, path) = &binaries()[0];
    let bytes = fs::read(path).unwrap();
    for part in 0..24 {
        let cut = bytes[..bytes.len() / 24 * part].to_vec();
        let Ok(elf) = Elf::from_bytes("cut", cut) else { continue };
        let Ok(layout) = Layout::derive(&elf) else { continue };
        for field in layout.fields.values() {
            assert!(field.why().is_none_or(|why| !why.is_empty()));
        }
    }
}

fn now() -> Now {
    Now { wall_us: wall_ns() / 1000, monotonic_us: monotonic_ns() / 1000 }
}

/// The statement that a connection runs, as soon as the server shows its text.
fn running(server: &Server, layout: &Layout, client: &Client) -> RunningStatement {
    let instance = recognised(server).instance;
    let sampler = Sampler::load().unwrap();
    let mut sessions = Sessions::of(layout).unwrap();
    wait_for("the statement", || {
        let limits = Limits { text: 64, texts: 64, start_to_monotonic: &|_| None };
        let sample = sampler.sample(&instance, &mut sessions, limits).unwrap();
        let id = u64::from(client.connection_id());
        let own = sample.running.into_iter().find(|running| running.connection_id == id);
        own.filter(|own| own.state.as_deref() == Some(b"User sleep"))
    })
}

#[test]
fn a_running_session_of_every_server_confirms_every_field() {
    for version in Version::BUILDS {
        let server = Server::start(version).unwrap();
        let layout = derived(server.program());
        let mut client = Client::connect(&server, Transport::Tcp, Account::APP).unwrap();
        client.send(Send::Query, b"select sleep(600)").unwrap();
        let session = running(&server, &layout, &client).thd;
        let mut memory = ProcessMemory::of(server.pid());
        let mut read = |address: u64, into: &mut [u8]| {
            let read = memory.read_one(Place::new(address, into.len() as u64));
            let Ok(Some(bytes)) = read else { return false };
            into.copy_from_slice(&bytes);
            true
        };
        let checked = layout.validate(session, now(), &mut read);
        assert_eq!(checked.fields, layout.fields, "{version}");
        assert_eq!(checked.clock, layout.clock, "{version}");

        // With every offset of the session wrong, too little makes sense to capture anything.
        let mut shifted = layout.clone();
        for (field, place) in &mut shifted.fields {
            if let Reading::Value(place) = place
                && field.base() == Base::Session
            {
                place.offset += 0x40;
            }
        }
        let checked = shifted.validate(session, now(), &mut read);
        assert_eq!(checked.offset(Field::StartTime), None, "{version}");
        assert!(!checked.shows_ends(), "{version}: {:?}", checked.fields);
    }
}
