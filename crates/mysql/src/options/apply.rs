//! Turns settings into options. Keys of other programs are skipped.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::parse::Setting;
use super::{Options, OptionsError, Protocol, TlsMode};

/// The groups that we read in every option file, besides a login path.
pub(super) const GROUPS: [&str; 4] = ["client", "client-server", "client-mariadb", "waggle"];

type Fault = &'static str;

pub(super) fn apply(
    options: &mut Options,
    file: &Path,
    setting: &Setting,
) -> Result<(), OptionsError> {
    set(options, setting).map_err(|reason| OptionsError::Value {
        path: file.to_owned(),
        line: setting.line,
        option: setting.key.clone(),
        reason,
    })
}

fn set(options: &mut Options, setting: &Setting) -> Result<(), Fault> {
    match setting.key.as_str() {
        "user" => options.user = Some(text(setting)?),
        "password" => {
            let value = setting.value.clone().ok_or(
                "has no value, which asks the clients to prompt; waggle does not prompt: \
                 write the password after `=` or make a login path",
            )?;
            options.password = Some(value);
        }
        "host" => options.host = Some(text(setting)?),
        "port" => {
            let port = text(setting)?.parse::<u16>();
            let port = port.map_err(|_| "is not a TCP port; write a number from 0 to 65535")?;
            options.port = (port != 0).then_some(port);
        }
        "socket" => options.socket = Some(path(setting)?),
        "server-user" => options.server_user = Some(text(setting)?),
        "server-public-key-path" => options.server_public_key = path_or_none(setting)?,
        "get-server-public-key" => options.get_server_public_key = is_on(setting)?,
        "connect-timeout" => options.connect_timeout = seconds(setting)?,
        "protocol" => options.protocol = Some(protocol(&text(setting)?)?),
        "ssl-mode" => options.tls.mode = tls_mode(&text(setting)?)?,
        "skip-ssl" | "disable-ssl" => options.tls.mode = TlsMode::Disabled,
        "ssl" => options.tls.mode = tls_switch(options.tls.mode, setting)?,
        "ssl-verify-server-cert" if is_on(setting)? => {
            options.tls.mode = TlsMode::VerifyIdentity;
        }
        "ssl-ca" => options.tls.ca = path_or_none(setting)?,
        "ssl-cert" => options.tls.cert = path_or_none(setting)?,
        "ssl-key" => options.tls.key = path_or_none(setting)?,
        _ => {}
    }
    Ok(())
}

fn bytes(setting: &Setting) -> Result<Vec<u8>, Fault> {
    setting.value.as_ref().map(|value| value.reveal().to_vec()).ok_or("needs a value after `=`")
}

fn text(setting: &Setting) -> Result<String, Fault> {
    String::from_utf8(bytes(setting)?).map_err(|_| "is not UTF-8; write it in UTF-8")
}

fn path(setting: &Setting) -> Result<PathBuf, Fault> {
    Ok(PathBuf::from(OsString::from_vec(bytes(setting)?)))
}

/// An empty path takes back what an earlier file said.
fn path_or_none(setting: &Setting) -> Result<Option<PathBuf>, Fault> {
    let path = path(setting)?;
    Ok((!path.as_os_str().is_empty()).then_some(path))
}

/// None at all is no limit, as for the clients.
fn seconds(setting: &Setting) -> Result<Option<Duration>, Fault> {
    let seconds = text(setting)?.parse::<u32>();
    let seconds = seconds.map_err(|_| "is not a number of seconds; write one, such as 10")?;
    Ok((seconds != 0).then(|| Duration::from_secs(seconds.into())))
}

fn protocol(value: &str) -> Result<Protocol, Fault> {
    match value.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "socket" => Ok(Protocol::Socket),
        _ => Err("is not a transport of this system; write TCP or SOCKET"),
    }
}

fn tls_mode(value: &str) -> Result<TlsMode, Fault> {
    match value.to_ascii_uppercase().as_str() {
        "DISABLED" => Ok(TlsMode::Disabled),
        "PREFERRED" => Ok(TlsMode::Preferred),
        "REQUIRED" => Ok(TlsMode::Required),
        "VERIFY_CA" => Ok(TlsMode::VerifyCa),
        "VERIFY_IDENTITY" => Ok(TlsMode::VerifyIdentity),
        _ => Err("is not a mode; write DISABLED, PREFERRED, REQUIRED, VERIFY_CA or \
                  VERIFY_IDENTITY"),
    }
}

/// `ssl` of the MariaDB clients: on asks for TLS but takes no stronger mode back.
fn tls_switch(mode: TlsMode, setting: &Setting) -> Result<TlsMode, Fault> {
    match (is_on(setting)?, mode) {
        (false, _) => Ok(TlsMode::Disabled),
        (true, TlsMode::Disabled | TlsMode::Preferred) => Ok(TlsMode::Required),
        (true, stronger) => Ok(stronger),
    }
}

fn is_on(setting: &Setting) -> Result<bool, Fault> {
    if setting.value.is_none() {
        return Ok(true);
    }
    match text(setting)?.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" => Ok(true),
        "0" | "off" | "false" => Ok(false),
        _ => Err("is a switch; write ON or OFF"),
    }
}
