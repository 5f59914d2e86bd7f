//! How a path is written: it need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| -> &OsStr { path.as_ref() }).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    Option::<OsString>::deserialize(from).map(|path| path.map(PathBuf::from))
}
