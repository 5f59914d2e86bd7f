//! A private server: start, restart, kill, stop.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;

use crate::Account;
use crate::Error;
use crate::Result;
use crate::Version;
use crate::home::Home;
use crate::install::Installation;
use crate::launch;
use crate::settings;
use crate::settings::Choices;
use crate::settings::PerformanceSchema;
use crate::template;
use crate::tls;

/// How often another port is tried when somebody took the one just found.
const PORT_TRIES: u32 = 5;

/// A server to be started with other settings than the kit's.
#[derive(Clone, Debug)]
pub struct ServerBuilder {
    version: Version,
    choices: Choices,
}

impl ServerBuilder {
    /// Adds a setting as on the server's command line; it wins over those of the kit.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.choices.arguments.push(argument.into());
        self
    }

    /// What Performance Schema records.
    #[must_use]
    pub fn performance_schema(mut self, records: PerformanceSchema) -> Self {
        self.choices.performance_schema = records;
        self
    }

    /// Whether the server writes a binary log (off by default).
    #[must_use]
    pub fn binlog(mut self, on: bool) -> Self {
        self.choices.binlog = on;
        self
    }

    /// How many sessions the server admits (200 by default).
    #[must_use]
    pub fn max_connections(mut self, sessions: u32) -> Self {
        self.choices.max_connections = sessions;
        self
    }

    /// Starts the server; returns when it admits sessions.
    pub fn start(self) -> Result<Server> {
        let installation = Installation::find(self.version)?;
        let template = template::ready(&installation)?;
        let home = Home::create(&installation)?;
        let copied = Command::new("cp")
            .args(["--archive", "--reflink=auto", "--sparse=always"])
            .arg(template.join("data"))
            .args(tls::FILES.map(|file| template.join(file)))
            .arg(&home.dir)
            .status()
            .map_err(Error::io("run", Path::new("cp")))?;
        if !copied.success() {
            let failed = std::io::Error::other(format!("cp ended with {copied}"));
            return Err(Error::io("copy", &template)(failed));
        }
        let mut server = Server {
            installation,
            choices: self.choices,
            home,
            child: None,
            port: 0,
            version_string: String::new(),
        };
        let root = server.option_file(Account::ROOT)?;
        debug_assert_eq!(root, server.defaults_file());
        server.launch_on_free_port()?;
        Ok(server)
    }
}

/// A running private server. Dropping it kills it and removes its files.
#[derive(Debug)]
pub struct Server {
    installation: Installation,
    choices: Choices,
    home: Home,
    child: Option<Child>,
    port: u16,
    version_string: String,
}

impl Server {
    /// Starts a server with the kit's settings: small and quick, TLS on, no binary log,
    /// Performance Schema as the version has it.
    pub fn start(version: Version) -> Result<Self> {
        Self::builder(version).start()
    }

    /// A server with other settings.
    pub fn builder(version: Version) -> ServerBuilder {
        let choices = Choices {
            performance_schema: PerformanceSchema::default(),
            binlog: false,
            max_connections: 200,
            arguments: Vec::new(),
        };
        ServerBuilder { version, choices }
    }

    /// Which of the five it is.
    pub fn version(&self) -> Version {
        self.installation.version
    }

    /// The exact version as the server names it when it greets, such as `9.7.4-1` or
    /// `10.11.19-MariaDB-0+deb12u1`.
    pub fn version_string(&self) -> &str {
        &self.version_string
    }

    /// The process id of the server itself; 0 while it is not running.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// The TCP port on 127.0.0.1; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The unix socket, as seen from outside of a chroot.
    pub fn socket(&self) -> PathBuf {
        self.home.dir.join("socket")
    }

    /// The data directory, as seen from outside of a chroot.
    pub fn datadir(&self) -> PathBuf {
        self.home.dir.join("data")
    }

    /// What the server writes to its standard error.
    pub fn error_log(&self) -> PathBuf {
        self.home.dir.join("error.log")
    }

    /// The certificate of the authority that signed the server's.
    pub fn ca_certificate(&self) -> PathBuf {
        self.home.dir.join(tls::FILES[0])
    }

    /// The server's program, as seen from outside of a chroot.
    pub fn program(&self) -> &Path {
        &self.installation.program
    }

    /// An option file for [`Account::ROOT`] over the unix socket: for `--defaults-file`.
    pub fn defaults_file(&self) -> PathBuf {
        self.option_path(Account::ROOT)
    }

    /// Writes an option file for an account over the unix socket, readable by its owner only.
    pub fn option_file(&self, account: Account) -> Result<PathBuf> {
        let path = self.option_path(account);
        // Command-line clients of today prefer TLS, even here, and cannot agree with yaSSL.
        let tls = if self.version() == Version::Mysql57 { "loose-skip-ssl\n" } else { "" };
        let text = format!(
            "[client]\nuser={}\npassword=\"{}\"\nsocket={}\n{tls}",
            account.user,
            account.password,
            self.socket().display()
        );
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(Error::io("write", &path))?;
        Ok(path)
    }

    /// Stops the server, if it runs, and starts it again on the same data, port and socket.
    pub fn restart(&mut self) -> Result<()> {
        self.halt()?;
        self.launch()
    }

    /// Ends the server by SIGKILL, as a crash does; [`Server::restart`] brings it back.
    pub fn kill9(&mut self) -> Result<()> {
        let version = self.version();
        let mut child = self.child.take().ok_or(Error::NotRunning { version })?;
        launch::kill(&mut child)
    }

    /// Stops the server politely, waits for its end and removes its files.
    pub fn stop(mut self) -> Result<()> {
        self.halt()
    }

    /// The directory of everything that belongs to this server.
    pub(crate) fn home(&self) -> &Path {
        &self.home.dir
    }

    fn option_path(&self, account: Account) -> PathBuf {
        self.home.dir.join(format!("{}.cnf", account.user))
    }

    fn halt(&mut self) -> Result<()> {
        match self.child.take() {
            Some(mut child) => launch::terminate(&mut child, self.version()).map(drop),
            None => Ok(()),
        }
    }

    /// Another process can take a port between our finding it free and the server's use of it.
    fn launch_on_free_port(&mut self) -> Result<()> {
        let mut tries = 1;
        loop {
            let localhost = Path::new("127.0.0.1");
            let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            self.port = found.map_err(Error::io("listen on", localhost))?.port();
            match self.launch() {
                Err(Error::DidNotStart { log, .. })
                    if tries < PORT_TRIES && log.contains("already in use") =>
                {
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    fn launch(&mut self) -> Result<()> {
        let inside = |path: &Path| self.installation.inside(path).display().to_string();
        let mut command = self.installation.command();
        command
            .args(settings::basic(&self.installation, &self.datadir()))
            .arg(format!("--port={}", self.port))
            .arg(format!("--socket={}", inside(&self.socket())))
            .arg(format!("--pid-file={}", inside(&self.home.dir.join("pid"))));
        for (name, file) in ["ca", "cert", "key"].iter().zip(tls::FILES) {
            command.arg(format!("--ssl-{name}={}", inside(&self.home.dir.join(file))));
        }
        command.args(settings::chosen(&self.choices));
        let mut child = launch::spawn(command, Stdio::null(), &self.error_log())?;
        match launch::wait_ready(&mut child, &self.socket()) {
            Ok(version) => {
                self.version_string = version;
                self.child = Some(child);
                Ok(())
            }
            Err(reason) => {
                launch::kill(&mut child)?;
                let log = launch::tail(&self.error_log());
                Err(Error::DidNotStart { version: self.version(), reason, log })
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A failed kill leaves the kernel to do it when this process ends.
            let _ = launch::kill(&mut child);
        }
    }
}
