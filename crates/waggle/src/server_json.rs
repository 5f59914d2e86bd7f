//! How the JSON of `waggle watch` and `waggle profile` names a server.

use serde::Serialize;
use waggle_model::Server;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ServerJson {
    pid: u32,
    flavour: String,
    version: String,
}

impl From<&Server> for ServerJson {
    fn from(server: &Server) -> ServerJson {
        ServerJson {
            pid: server.pid,
            flavour: server.flavour.to_string(),
            version: server.version.clone(),
        }
    }
}
