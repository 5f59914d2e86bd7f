//! `cargo xtask vm`: runs a command under another kernel, with this host's files.
//!
//! A Debian kernel boots in qemu in software emulation, so it needs no rights and no virtualisation
//! support. The guest sees the host's root file system read-only through virtio-9p, with a writable
//! layer on a temporary disk: it can write anywhere and changes nothing. On the host only qemu is
//! installed. Kernel and busybox are unpacked under `target/vm`. Times measured in the guest mean
//! nothing.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, anyhow, ensure};

use crate::program::checked;

/// The Debian package of the emulator.
pub(crate) const QEMU_PACKAGE: &str = "qemu-system-x86";
/// The emulator.
const QEMU: &str = "qemu-system-x86_64";
/// First process of the guest.
const INIT: &str = include_str!("../vm/init");
/// What the guest needs to reach the host, in the order of loading (`modinfo -F depends`).
/// A kernel that has one of them built in, or no longer has it, ships no file of that name.
const MODULES: [&str; 18] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "crc32c_generic",
    "crc16",
    "mbcache",
    "jbd2",
    "ext4",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
    "overlay",
];
/// Kernel command line (Documentation/admin-guide/kernel-parameters.txt): a panic ends the guest,
/// and no work is spent on defences or on measuring a clock that the emulator takes from the host.
const CMDLINE: &str = "console=ttyS0 loglevel=4 panic=-1 mitigations=off nokaslr tsc=reliable";
/// Most that the guest can write; the disk takes no more room than what was written.
const LAYER_SIZE: &str = "16G";
/// How much of the console is shown when the guest dies.
const CONSOLE_TAIL: usize = 30;
/// How often a guest is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Run a command under another kernel (Debian's, in qemu, in software emulation)
#[derive(Debug, clap::Args)]
pub(crate) struct VmArgs {
    /// Series or exact release of the kernel, as in Debian's `linux-image-RELEASE-amd64`
    #[arg(long, default_value = "6.1")]
    pub(crate) kernel: String,
    /// Seconds after which the guest is killed
    #[arg(long, default_value_t = 900)]
    pub(crate) timeout: u64,
    /// Memory of the guest, in qemu's notation
    #[arg(long, default_value = "2G")]
    pub(crate) memory: String,
    /// The command; it gets the environment and the working directory of this process
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) command: Vec<String>,
}

/// Boots the guest, runs the command there and passes its output on.
/// A command that fails ends this process with the same exit code.
pub(crate) fn run(args: VmArgs) -> Result<()> {
    require_qemu()?;
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("vm");
    sweep(&store);
    let busybox = unpacked(&store, "busybox", || Ok("busybox-static".to_owned()))?;
    let kernel = unpacked(&store, &args.kernel, || kernel_package(&args.kernel))?;

    let scratch = Scratch::new(store.join(format!("run@{}", std::process::id())))?;
    pack_initramfs(&scratch.0, &busybox, &kernel, &args.command)?;
    make_layer(&scratch.0)?;
    let status = boot(&args, &scratch.0, &kernel)?;
    drop(scratch);
    if status != 0 {
        std::process::exit(status);
    }
    Ok(())
}

/// A directory that goes away with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> Result<Self> {
        fs::create_dir_all(path.join("root/bin"))
            .and_then(|()| fs::create_dir(path.join("root/modules")))
            .with_context(|| format!("{}: cannot be created", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is below target/ and goes with `cargo clean`.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what processes left that were killed; their numbers end the names.
fn sweep(store: &Path) {
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.rsplit_once('@').and_then(|(_, pid)| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn require_qemu() -> Result<()> {
    if Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().is_ok() {
        return Ok(());
    }
    crate::setup::install(&[QEMU_PACKAGE]).with_context(|| format!("{QEMU}: not found"))
}

/// The files of a Debian package, fetched once and never installed.
fn unpacked(store: &Path, name: &str, package: impl FnOnce() -> Result<String>) -> Result<PathBuf> {
    let place = store.join(name);
    if place.exists() {
        return Ok(place);
    }
    let package = package()?;
    let partial = store.join(format!("{name}@{}", std::process::id()));
    fs::create_dir_all(&partial)
        .with_context(|| format!("{}: cannot be created", partial.display()))?;
    // As root, apt would fetch as a user who may not write here.
    let download = ["-o", "APT::Sandbox::User=root", "download", &package];
    checked(Command::new("apt-get").args(download).current_dir(&partial))
        .with_context(|| format!("package {package}: cannot be fetched; try apt-get update"))?;
    let archive = find(&partial, &|name| name.ends_with(".deb"))
        .with_context(|| format!("package {package}: apt-get left no file"))?;
    checked(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(&partial))?;
    fs::remove_file(&archive).with_context(|| format!("{}: not removed", archive.display()))?;
    match fs::rename(&partial, &place) {
        // Another process was faster.
        Err(_) if place.exists() => fs::remove_dir_all(&partial),
        done => done,
    }
    .with_context(|| format!("{}: cannot be created", place.display()))?;
    Ok(place)
}

/// The newest package of a kernel series, without the variants for clouds and real time.
fn kernel_package(series: &str) -> Result<String> {
    let pattern = format!("linux-image-{series}");
    let names = || checked(Command::new("apt-cache").args(["pkgnames", &pattern]));
    if let Some(package) = newest(&names()?, &pattern) {
        return Ok(package);
    }
    let missing = format!(
        "kernel {series}: apt knows no package {pattern}*-amd64; \
         for those it knows: apt-cache pkgnames linux-image-"
    );
    checked(Command::new("apt-get").arg("update")).context(missing.clone())?;
    newest(&names()?, &pattern).context(missing)
}

fn newest(names: &str, prefix: &str) -> Option<String> {
    let version = |name: &str| {
        let rest = name.strip_prefix(prefix)?.strip_suffix("-amd64")?;
        let same_series = !rest.starts_with(|c: char| c.is_ascii_digit());
        let plain = !rest.contains("-cloud") && !rest.contains("-rt");
        let parts = rest.split(|c: char| !c.is_ascii_digit());
        (same_series && plain).then(|| parts.filter_map(|part| part.parse().ok()).collect())
    };
    let known = names.lines().filter_map(|name| Some((version(name)?, name)));
    known.max().map(|(_, name): (Vec<u32>, _)| name.to_owned())
}

/// Writes `initramfs` into the scratch directory.
fn pack_initramfs(scratch: &Path, busybox: &Path, kernel: &Path, command: &[String]) -> Result<()> {
    let root = scratch.join("root");
    let busybox = busybox.join("bin/busybox");
    copy(&busybox, &root.join("bin/busybox"))?;
    let tree = kernel.join("lib/modules");
    for (order, module) in MODULES.iter().enumerate() {
        let file = [format!("{module}.ko"), format!("{module}.ko.xz")];
        if let Some(found) = find(&tree, &|name| file.iter().any(|file| file == name)) {
            copy(&found, &root.join(format!("modules/{order:02}-{module}")))?;
        }
    }
    write(&root.join("command"), &script(command)?)?;
    write(&root.join("init"), INIT)?;
    checked(Command::new("chmod").arg("755").arg(root.join("init")))?;
    let pack = "cd root && find . | \"$0\" cpio -o -H newc >../initramfs";
    checked(Command::new("sh").arg("-ec").arg(pack).arg(&busybox).current_dir(scratch))?;
    Ok(())
}

/// Makes the disk `layer`, empty and without what only matters after a crash.
fn make_layer(scratch: &Path) -> Result<()> {
    let features = ["-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum,uninit_bg", "-m", "0"];
    checked(
        Command::new("/sbin/mke2fs")
            .args(features)
            .args(["layer", LAYER_SIZE])
            .current_dir(scratch),
    )?;
    Ok(())
}

/// The command as a shell script that restores the environment and the working directory.
fn script(command: &[String]) -> Result<String> {
    let mut script = String::new();
    for (name, value) in env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        // bash exports functions under names that no shell accepts.
        if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            script += &format!("export {name}={}\n", quoted(&value));
        }
    }
    let here = env::current_dir().context("the working directory: cannot be read")?;
    script += &format!("cd {}\n", quoted(&here.to_string_lossy()));
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    script += &format!("exec {}\n", words.join(" "));
    Ok(script)
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Runs the guest until it ends or is out of time; the exit code of the command.
fn boot(args: &VmArgs, scratch: &Path, kernel: &Path) -> Result<i32> {
    let image = find(&kernel.join("boot"), &|name| name.starts_with("vmlinuz-"))
        .with_context(|| format!("{}: holds no kernel; remove it", kernel.display()))?;
    // A guest must not outlive this process, however that ends.
    let mut guest = Command::new("setpriv");
    guest.args(["--pdeathsig", "KILL", QEMU, "-accel", "tcg", "-cpu", "max", "-smp", "2"]);
    guest.args(["-m", &args.memory, "-nodefaults", "-no-user-config", "-no-reboot"]);
    guest.args(["-display", "none", "-serial", "file:console"]);
    guest.arg("-kernel").arg(&image).args(["-initrd", "initramfs", "-append", CMDLINE]);
    // A real file system, since tmpfs knows no O_DIRECT before Linux 6.6 and InnoDB asks for it.
    guest.args(["-drive", "file=layer,format=raw,if=virtio,cache=unsafe"]);
    guest.args(["-device", "virtio-serial-pci"]);
    let files = ["/proc/self/fd/1", "/proc/self/fd/2", "status"];
    for (port, file) in (1..).zip(files) {
        guest.arg("-chardev").arg(format!("file,id=c{port},path={file},append=on"));
        guest.arg("-device").arg(format!("virtserialport,nr={port},chardev=c{port}"));
    }
    let share = "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap";
    guest.args(["-virtfs", share]);
    guest.current_dir(scratch).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());

    let mut guest = guest.spawn().with_context(|| format!("{QEMU}: cannot be started"))?;
    let out = forward(guest.stdout.take(), io::stdout());
    let err = forward(guest.stderr.take(), io::stderr());
    let ended = wait(&mut guest, Duration::from_secs(args.timeout))?;
    // Both readers end with the guest; a closed output of ours is no fault of the command.
    let _ = (out.join(), err.join());
    ensure!(
        ended,
        "the guest was killed after {} s; for more time use --timeout; end of its console:\n{}",
        args.timeout,
        console_tail(scratch)
    );
    let status = fs::read_to_string(scratch.join("status")).unwrap_or_default();
    status.trim().parse().map_err(|_| {
        let tail = console_tail(scratch);
        anyhow!("the guest died before the command ended; end of its console:\n{tail}")
    })
}

/// Waits for the guest, at most for this long; whether it ended by itself.
fn wait(guest: &mut Child, limit: Duration) -> Result<bool> {
    let start = Instant::now();
    while guest.try_wait().context("the guest: cannot be waited for")?.is_none() {
        if start.elapsed() > limit {
            guest.kill().and_then(|()| guest.wait()).context("the guest: cannot be killed")?;
            return Ok(false);
        }
        thread::sleep(TICK);
    }
    Ok(true)
}

fn forward<R: Read + Send + 'static>(
    from: Option<R>,
    mut to: impl io::Write + Send + 'static,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        if let Some(mut from) = from {
            let _ = io::copy(&mut from, &mut to).and_then(|_| to.flush());
        }
    })
}

fn console_tail(scratch: &Path) -> String {
    let console = fs::read(scratch.join("console")).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(CONSOLE_TAIL)..].join("\n")
}

/// The first file below a directory whose name is wanted.
fn find(directory: &Path, wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    for entry in fs::read_dir(directory).ok()?.flatten() {
        let path = entry.path();
        let found = match entry.file_type().ok()?.is_dir() {
            true => find(&path, wanted),
            false => path.file_name().and_then(OsStr::to_str).is_some_and(wanted).then_some(path),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{}: cannot be copied", from.display()))?;
    Ok(())
}

fn write(to: &Path, text: &str) -> Result<()> {
    fs::write(to, text).with_context(|| format!("{}: cannot be written", to.display()))
}

#[cfg(test)]
mod tests {
    use super::newest;
    use super::quoted;

    #[test]
    fn the_newest_plain_kernel_of_the_series_is_chosen() {
        let names = "linux-image-6.1.0-9-amd64\nlinux-image-6.1.0-10-amd64\n\
                     linux-image-6.1.0-11-cloud-amd64\nlinux-image-6.1.0-11-rt-amd64\n\
                     linux-image-6.12.117+deb12-amd64\nlinux-image-6.12-amd64\n\
                     linux-image-6.1.0-11-amd64-dbg\nlinux-image-6.1.0-12-amd64-unsigned";
        let chosen = |series: &str| newest(names, &format!("linux-image-{series}"));
        assert_eq!(chosen("6.1").as_deref(), Some("linux-image-6.1.0-10-amd64"));
        assert_eq!(chosen("6.12").as_deref(), Some("linux-image-6.12.117+deb12-amd64"));
        assert_eq!(chosen("6.1.0-9").as_deref(), Some("linux-image-6.1.0-9-amd64"));
        assert_eq!(chosen("5.15"), None);
    }

    #[test]
    fn a_word_reaches_the_guest_as_it_was_given() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
