//! The tests of the whole workspace, built at once.
//!
//! Cargo unifies the features of what is built in one call, and builds whatever differs again: to ask for the
//! tests of one package after another would build most dependencies several times.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Everything that tests.
pub(crate) struct Built(Vec<Executable>);

/// A program of tests.
pub(crate) struct Executable {
    /// The directory of its package, where it runs.
    package: PathBuf,
    /// `it` of `tests/it.rs`; of unit tests the name of the library or the binary.
    target: String,
    is_integration: bool,
    pub(crate) path: PathBuf,
}

impl Built {
    /// Builds them where that was not done yet.
    pub(crate) fn once(built: &mut Option<Built>) -> Result<&Built> {
        match built {
            Some(built) => Ok(built),
            none => Ok(none.insert(Built::all()?)),
        }
    }

    /// Builds them; cargo says what it does.
    fn all() -> Result<Built> {
        println!("\n== cargo test --workspace --no-run");
        let begin = Instant::now();
        let built = Command::new("cargo")
            .args(["test", "--workspace", "--no-run"])
            .args(["--message-format", "json-render-diagnostics"])
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
        found
            .with_context(|| format!("{package} has no tests/{target}.rs; see xtask/src/layers.rs"))
    }
}

/// `None` where a message of cargo tells of something else.
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
    /// Runs all its tests.
    pub(crate) fn run(&self) -> Result<()> {
        let name = format!("{} {}", self.package.display(), self.target);
        println!("\n== {name}");
        let ended = Command::new(&self.path)
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package)
            .status()
            .with_context(|| self.path.display().to_string())?;
        ensure!(ended.success(), "a test of {name} failed ({ended}): see above");
        Ok(())
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
