//! Builds the tests of a tier in one call.
//!
//! Cargo unifies features per call. If it built the tests of one package after another, it would
//! build most dependencies several times.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::layers;
use super::tier::{self, Tier};
use crate::program::checked;

/// The programs of tests that were built.
pub(crate) struct Built(Vec<Executable>);

/// A program of tests.
#[derive(Clone, Debug)]
pub(crate) struct Executable {
    /// The directory of its package, where it runs.
    package: PathBuf,
    /// `it` of `tests/it.rs`; of unit tests the name of the library or the binary.
    target: String,
    is_integration: bool,
    pub(crate) path: PathBuf,
}

impl Built {
    /// Builds those of a tier; cargo says what it does.
    pub(crate) fn all(tier: Tier) -> Result<Built> {
        let words = layers::cargo_words(tier);
        println!("\n== cargo test --no-run {}", words.join(" "));
        let begin = Instant::now();
        let built = Command::new("cargo")
            .args(["test", "--no-run", "--message-format", "json-render-diagnostics"])
            .args(words)
            .stderr(Stdio::inherit())
            .output()
            .context("cargo")?;
        ensure!(built.status.success(), "the tests cannot be built");
        println!("built in {:.0} s", begin.elapsed().as_secs_f64());
        let messages = String::from_utf8(built.stdout)?;
        Ok(Built(messages.lines().filter_map(executable).collect()))
    }

    /// The unit tests of every package.
    pub(crate) fn units(&self) -> impl Iterator<Item = &Executable> {
        self.0.iter().filter(|one| !one.is_integration)
    }

    /// One file of `tests` of the package in a directory, such as `crates/sql`.
    pub(crate) fn integration(&self, package: &str, target: &str) -> Result<&Executable> {
        let is_it = |one: &&Executable| {
            one.is_integration && one.target == target && one.package.ends_with(package)
        };
        let found = self.0.iter().find(is_it);
        found.with_context(|| format!("{package} has no tests/{target}.rs; see layers.rs"))
    }
}

/// `None` if a message of cargo tells of something else.
fn executable(message: &str) -> Option<Executable> {
    let message: Value = serde_json::from_str(message).ok()?;
    message["profile"]["test"].as_bool().filter(|is_test| *is_test)?;
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(Executable {
        package: package.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        is_integration: message["target"]["kind"][0] == "test",
        path: message["executable"].as_str()?.into(),
    })
}

impl Executable {
    /// Its package and its target, such as `crates/waggle it`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.relative().display(), self.target)
    }

    /// Its tests that a tier runs.
    pub(crate) fn tests(&self, tier: Tier) -> Result<Vec<String>> {
        let listed = checked(Command::new(&self.path).args(["--list", "--format", "terse"]))?;
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let (tests, package) = (tests.collect::<Vec<_>>(), self.relative().display().to_string());
        if let Some(name) = tier::unknown(&package, &self.target, &tests) {
            bail!("{} has no test {name}, which tier.rs names", self.name());
        }
        let of_tier = |test: &&str| Tier::of(&package, &self.target, test) == tier;
        Ok(tests.into_iter().filter(of_tier).map(str::to_owned).collect())
    }

    /// The directory of its package, such as `crates/waggle`.
    fn relative(&self) -> &Path {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        root.and_then(|root| self.package.strip_prefix(root).ok()).unwrap_or(&self.package)
    }

    /// Runs tests, some at a time, and tells of each as JSON. Only the nightly test harness offers that and the times,
    /// but the stable one has them, too (`is_nightly` in library/test of Rust).
    pub(crate) fn command(&self, names: &[String], at_once: usize) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.args(["-Z", "unstable-options", "--format", "json", "--report-time"]);
        command.env("RUSTC_BOOTSTRAP", "1");
        // A panic says where it was; a backtrace only makes the output long.
        command.env("RUST_BACKTRACE", "0");
        command.arg(format!("--test-threads={at_once}")).arg("--exact").args(names);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_of_a_test_is_read() {
        let said = |kind: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/sql/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"ddl"}},"profile":{{"test":{test}}},
                "executable":"/w/target/debug/deps/ddl-1"}}"#
            )
        };
        let built = Built(executable(&said("test", true)).into_iter().collect());
        let found = built.integration("crates/sql", "ddl").unwrap();
        assert_eq!(found.path, Path::new("/w/target/debug/deps/ddl-1"));
        assert!(built.integration("sql", "mask").is_err() && built.units().next().is_none());
        assert!(!executable(&said("lib", true)).unwrap().is_integration);
        assert!(executable(&said("bin", false)).is_none());
        assert!(executable(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
