//! Errors in option files.

use std::path::PathBuf;

use super::login_path::Unreadable;
use super::parse::Malformed;

/// Why the option files cannot be used. No message contains a value of a file, because it may be a
/// password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A file cannot be read.
    #[error("option file {}: cannot be read: {source}; check the path and its mode", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A line is no line of an option file.
    #[error("option file {}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line and what is wrong.
        source: Malformed,
    },
    /// An option that we use has a value that it cannot have.
    #[error("option file {} line {line}: {option} {reason}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The option.
        option: String,
        /// What is wrong and what may stand there.
        reason: &'static str,
    },
    /// A login path file does not decipher.
    #[error(
        "login path file {}: {source}; make it again with mysql_config_editor set", path.display()
    )]
    LoginPathFile {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Unreadable,
    },
    /// The login path that was asked for is not in the file.
    #[error(
        "login path {name}: not in {}; make it with mysql_config_editor set --login-path={name}",
        path.display()
    )]
    NoLoginPath {
        /// Its name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// A login path was asked for and there is no place where its file could be.
    #[error("login path {name}: HOME is not set; set it or MYSQL_TEST_LOGIN_FILE")]
    NoHome {
        /// Its name.
        name: String,
    },
    /// Files include each other without end.
    #[error("option file {}: included more than 10 levels deep; remove the circle", path.display())]
    TooDeep {
        /// The file.
        path: PathBuf,
    },
    /// Files include each other more often than anybody needs.
    #[error("option file {}: more than {most} files are included; remove some", path.display())]
    TooMany {
        /// The file that is one too many.
        path: PathBuf,
        /// How many there may be.
        most: usize,
    },
    /// A file is no option file.
    #[error("option file {}: is longer than {most} MiB; it is no option file", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Mebibytes.
        most: u64,
    },
}
