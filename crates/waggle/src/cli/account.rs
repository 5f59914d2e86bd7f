//! The account with which waggle logs in to a server.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use waggle_mysql::options::Environment;
use waggle_mysql::{Options, Sources};

use super::Failure;
use crate::streams::tell;

/// Where the account and its password come from: never from an argument.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct AccountArgs {
    /// Read only this option file.
    #[arg(long, value_name = "FILE")]
    defaults_file: Option<PathBuf>,
    /// Read this option file after the global ones.
    #[arg(long, value_name = "FILE")]
    defaults_extra_file: Option<PathBuf>,
    /// Read this login path of ~/.mylogin.cnf, too.
    #[arg(long, value_name = "NAME")]
    login_path: Option<String>,
}

impl AccountArgs {
    /// Whether anything of it was given.
    pub(super) fn is_given(&self) -> bool {
        self.defaults_file.is_some()
            || self.defaults_extra_file.is_some()
            || self.login_path.is_some()
    }

    /// Reads the option files. What a person should know of them is said.
    pub(super) fn read(self) -> Result<Options, Failure> {
        let sources = Sources {
            defaults_file: self.defaults_file,
            defaults_extra_file: self.defaults_extra_file,
            login_path: self.login_path,
            environment: Environment::of_this_process(),
        };
        let options = Options::read(&sources).map_err(|error| Failure::Config(error.into()))?;
        if options.password.is_some() {
            // No core dump holds it, and none of the processes that are told of it. A kernel that does not obey has no
            // other way.
            let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            let _ = setrlimit(Resource::Core, none);
        }
        for note in &options.notes {
            tell!("waggle: {note}");
        }
        Ok(options)
    }

    /// The same as arguments of another process.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let file = |name: &str, file: &Option<PathBuf>| {
            file.as_ref().map(|file| [name.into(), file.clone().into_os_string()])
        };
        let files = [
            file("--defaults-file", &self.defaults_file),
            file("--defaults-extra-file", &self.defaults_extra_file),
            self.login_path.as_ref().map(|path| ["--login-path".into(), path.into()]),
        ];
        files.into_iter().flatten().flatten().collect()
    }
}
