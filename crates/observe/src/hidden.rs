//! Servers that we may not see.

use std::path::Path;

use waggle_host::Need;
use waggle_probes::servers::discover::{Hidden, hidden};

/// What may hide servers from us, with the remedy; `None` if nothing does.
pub fn hidden_servers() -> Option<String> {
    let what = match hidden(Path::new("/proc")) {
        Hidden { others: true, .. } => {
            "/proc does not show the processes of other users (hidepid)".to_owned()
        }
        Hidden { listed: 0, .. } => return None,
        Hidden { listed: 1, .. } => "1 process may not be looked at".to_owned(),
        Hidden { listed, .. } => format!("{listed} processes may not be looked at"),
    };
    Some(format!("{what}: servers may be among them; {}", Need::Look.remedy()))
}

/// That no server was found, or may be read.
pub fn no_server() -> String {
    match hidden_servers() {
        Some(why) => format!("no mysqld or mariadbd was found, but {why}"),
        None => "no mysqld or mariadbd runs on this host".to_owned(),
    }
}
