//! A private server: start, restart, kill, stop.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use waggle_private_server::{Directory, stop};

use crate::client::{Client, Transport};
use crate::crash::make_crashes;
use crate::install::Installation;
use crate::settings::{self, Choices, PerformanceSchema};
use crate::{Account, Error, Result, Version, launch, servers_dir, template, tls};

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

    /// Adds the engine FEDERATED, which asks another server: MySQL has it in the program, MariaDB
    /// 10.11 as a plugin, and MariaDB 11.4 comes without it.
    pub fn federated(self) -> Result<Self> {
        if !self.version.is_mariadb() {
            return Ok(self.arg("--federated"));
        }
        let version = self.version;
        let plugins = servers_dir().join("federatedx");
        let program = plugins.join("ha_federatedx.so");
        if version != Version::Mariadb1011 || !program.is_file() {
            return Err(Error::NotInstalled { version, program });
        }
        let plugin_dir = format!("--plugin-dir={}", plugins.display());
        Ok(self.arg(plugin_dir).arg("--plugin-load-add=ha_federatedx.so"))
    }

    /// Lets the server take over functions that end it ([`crate::create_crash`]).
    pub fn with_crashes(self) -> Result<Self> {
        let Installation { program, data_root, .. } = Installation::find(self.version)?;
        let folder = data_root.with_file_name("crash");
        make_crashes(&folder)?;
        Ok(self.arg(format!("--plugin-dir={}", program.inside(&folder).display())))
    }

    /// Starts the server; returns when it admits sessions.
    pub fn start(self) -> Result<Server> {
        let version = self.version;
        let installation = Installation::find(version)?;
        let Installation { program, data_root, .. } = &installation;
        fs::create_dir_all(data_root).map_err(Error::io("create", data_root))?;
        let directory = Directory::create_in(data_root, program, 0);
        let directory = directory.map_err(Error::server(version))?;
        // Tests look at their servers as other users, too.
        for path in [directory.path(), &directory.own()] {
            let open = fs::set_permissions(path, Permissions::from_mode(0o755));
            open.map_err(Error::io("open", path))?;
        }
        template::copy_to(&installation, &directory)?;
        let mut server = Server {
            program: installation.executable(),
            installation,
            choices: self.choices,
            directory,
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
    directory: Directory,
    program: PathBuf,
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

    /// A session of root by the unix socket; for others see [`Client::connect`].
    pub fn root(&self) -> Result<Client> {
        Client::connect(self, Transport::Unix, Account::ROOT)
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
        self.directory.socket()
    }

    /// The data directory, as seen from outside of a chroot.
    pub fn datadir(&self) -> PathBuf {
        self.directory.data()
    }

    /// What the server writes to its standard error.
    pub fn error_log(&self) -> PathBuf {
        self.directory.log()
    }

    /// The certificate of the authority that signed the server's.
    pub fn ca_certificate(&self) -> PathBuf {
        self.home().join(tls::FILES[0])
    }

    /// The server's program, as seen from outside of a chroot.
    pub fn program(&self) -> &Path {
        &self.program
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

    /// The option file of an account named `few` that has these rights and no others.
    pub fn few(&self, grants: &[&str]) -> Result<PathBuf> {
        let mut root = self.root()?;
        root.run("DROP USER IF EXISTS few@localhost")?;
        root.run("CREATE USER few@localhost")?;
        for grant in grants {
            root.run(format!("GRANT {grant} TO few@localhost"))?;
        }
        self.option_file(Account { user: "few", password: "" })
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
        self.directory.path()
    }

    fn option_path(&self, account: Account) -> PathBuf {
        self.home().join(format!("{}.cnf", account.user))
    }

    fn halt(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let ended = child.try_wait().map_err(Error::io("wait for", &self.program))?;
        if ended.is_some() {
            return Ok(());
        }
        stop(&mut child, &self.directory).map_err(|error| {
            // What stays is killed when this process ends.
            let _ = launch::kill(&mut child);
            Error::server(self.version())(error)
        })
    }

    /// Another process can take a port between our finding it free and the server's use of it.
    fn launch_on_free_port(&mut self) -> Result<()> {
        let mut tries = 1;
        loop {
            let localhost = Path::new("127.0.0.1");
            let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            self.port = found.map_err(Error::io("listen on", localhost))?.port();
            match self.launch() {
                Err(error)
                    if tries < PORT_TRIES && error.to_string().contains("already in use") =>
                {
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    fn launch(&mut self) -> Result<()> {
        let Installation { version, program, .. } = &self.installation;
        let mut arguments = self.directory.listening(program);
        arguments.push(format!("--port={}", self.port));
        for (name, file) in ["ca", "cert", "key"].iter().zip(tls::FILES) {
            let file = program.inside(&self.home().join(file));
            arguments.push(format!("--ssl-{name}={}", file.display()));
        }
        arguments.extend(settings::chosen(*version, &self.choices));
        let (program, log, own) = (program.clone(), self.error_log(), self.directory.own());
        let spawned = launch::spawn(move || {
            launch::launcher().spawn(&program, &arguments, Stdio::null(), [&log, &own])
        })?;
        let mut child = spawned.map_err(Error::server(*version))?;
        match launch::launcher().wait_ready(&mut child, &self.directory) {
            Ok(version) => {
                self.version_string = version;
                self.child = Some(child);
                Ok(())
            }
            Err(error) => {
                launch::kill(&mut child)?;
                Err(Error::server(*version)(error))
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
