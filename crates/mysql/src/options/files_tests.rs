use std::os::unix::fs::PermissionsExt;

use super::super::login_path::tests::encipher;
use super::super::{Protocol, TlsMode};
use super::*;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, mode: u32, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn sources(&self) -> Sources {
        Sources {
            environment: Environment {
                home: Some(self.path("")),
                mysql_home: Some(self.path("mysql_home")),
                global_files: vec![self.path("etc/my.cnf"), self.path("etc/mysql/my.cnf")],
                user: Some("runner".to_owned()),
                ..Environment::default()
            },
            ..Sources::default()
        }
    }
}

fn password(options: &Options) -> Option<&[u8]> {
    options.password.as_ref().map(crate::Secret::reveal)
}

#[test]
fn an_empty_home_gives_the_defaults_of_the_clients() {
    let options = Options::read(&Home::new().sources()).unwrap();
    assert_eq!(options, Options { user: Some("runner".to_owned()), ..Options::default() });
}

#[test]
fn later_files_override_earlier_ones_in_the_order_of_the_clients() {
    let home = Home::new();
    let names = ["etc/my.cnf", "etc/mysql/my.cnf", "mysql_home/my.cnf", "extra.cnf", ".my.cnf"];
    let mut sources = home.sources();
    sources.defaults_extra_file = Some(home.path("extra.cnf"));
    home.write("extra.cnf", 0o600, "");
    for name in names {
        home.write(name, 0o600, format!("[client]\nuser={name}\n"));
        if name == "etc/my.cnf" {
            home.write(name, 0o600, format!("[client]\nuser={name}\nhost=first\n"));
        }
        let options = Options::read(&sources).unwrap();
        assert_eq!(options.user.as_deref(), Some(name));
        assert_eq!(options.host.as_deref(), Some("first"));
    }
    home.write(".mylogin.cnf", 0o600, encipher(&["[client]\n", "user=last\n"]));
    assert_eq!(Options::read(&sources).unwrap().user.as_deref(), Some("last"));
}

#[test]
fn a_defaults_file_is_the_only_one() {
    let home = Home::new();
    home.write(".my.cnf", 0o600, "[client]\nuser=no\npassword=no\n");
    home.write(".mylogin.cnf", 0o600, encipher(&["[client]\n", "host=no\n"]));
    let file = home.write("only.cnf", 0o600, "[waggle]\nport=4000\n");
    let mut sources = home.sources();
    sources.defaults_file = Some(file.clone());
    let options = Options::read(&sources).unwrap();
    assert_eq!((options.user.as_deref(), options.port), (Some("runner"), Some(4000)));
    assert_eq!((options.host, options.password, options.read_from), (None, None, vec![file]));
}

#[test]
fn every_key_in_our_groups_is_read_and_other_groups_are_not() {
    let home = Home::new();
    home.write(
        ".my.cnf",
        0o600,
        "[mysqld]\nuser=mysql\nport=1\n[client]\nuser=ann\ndefault-character-set=utf8mb4\n\
         [client-server]\nport=3307\nsocket=/run/s.sock\nconnect-timeout=5\n[client-mariadb]\nhost=db\n\
         [waggle]\npassword=\"p # w\"\nloose_ssl_mode=verify_ca\nssl-ca=/ca\nssl_cert=/cert\n\
         ssl-key=/key\nprotocol=tcp\n[mysql]\nhost=no\n",
    );
    let options = Options::read(&home.sources()).unwrap();
    assert_eq!(options.user.as_deref(), Some("ann"));
    assert_eq!(options.host.as_deref(), Some("db"));
    assert_eq!((options.port, options.protocol), (Some(3307), Some(Protocol::Tcp)));
    assert_eq!(options.socket, Some("/run/s.sock".into()));
    assert_eq!(options.connect_timeout, Some(std::time::Duration::from_secs(5)));
    assert_eq!(password(&options), Some(b"p # w".as_slice()));
    assert_eq!(options.tls.mode, TlsMode::VerifyCa);
    let tls = (options.tls.ca.clone(), options.tls.cert.clone(), options.tls.key.clone());
    assert_eq!(tls, (Some("/ca".into()), Some("/cert".into()), Some("/key".into())));
    assert!(!format!("{options:?}").contains("p # w"));
}

#[test]
fn includes_are_followed_where_they_stand() {
    let home = Home::new();
    home.write("d/2.cnf", 0o600, "[client]\nhost=two\n");
    home.write("d/1.cnf", 0o600, "[client]\nhost=one\nport=1111\n");
    home.write("d/3.txt", 0o600, "[client]\nhost=three\n");
    let inner = home.write("inner.cnf", 0o600, "[client]\nuser=inner\n");
    let folder = home.path("d");
    home.write(
        ".my.cnf",
        0o600,
        format!(
            "[client]\nuser=outer\n!include {}\n!includedir {}\nport=2222\n",
            inner.display(),
            folder.display()
        ),
    );
    let options = Options::read(&home.sources()).unwrap();
    assert_eq!(options.user.as_deref(), Some("inner"));
    assert_eq!((options.host.as_deref(), options.port), (Some("two"), Some(2222)));
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    let home = Home::new();
    let path = home.path(".my.cnf");
    home.write(".my.cnf", 0o600, format!("!include {}\n", path.display()));
    let error = Options::read(&home.sources()).unwrap_err();
    assert!(matches!(error, OptionsError::TooDeep { .. }), "{error}");
}

#[test]
fn a_file_that_everybody_may_write_is_left_out_with_a_note() {
    let home = Home::new();
    home.write(".my.cnf", 0o666, "[client]\nuser=evil\n");
    let options = Options::read(&home.sources()).unwrap();
    assert_eq!(options.user.as_deref(), Some("runner"));
    assert!(options.notes[0].contains("chmod o-w"), "{:?}", options.notes);
}

#[test]
fn a_password_that_everybody_may_read_is_told() {
    let home = Home::new();
    let inner = home.write("inner.cnf", 0o600, "[client]\npassword=x\n");
    home.write(".my.cnf", 0o644, format!("!include {}\n", inner.display()));
    let notes = || Options::read(&home.sources()).unwrap().notes;
    assert_eq!(notes(), Vec::<String>::new(), "it stands in the other file");
    home.write(".my.cnf", 0o644, "[client]\npassword=x\n");
    assert!(notes()[0].contains("chmod o-r"), "{:?}", notes());
}

#[test]
fn a_login_path_is_read_after_the_client_group_and_must_exist() {
    let home = Home::new();
    let file = [
        "[client]\n",
        "user = a\n",
        "host = h\n",
        "[remote]\n",
        "user = b\n",
        "password = \"x\"\n",
    ];
    home.write(".mylogin.cnf", 0o600, encipher(&file));
    let mut sources = home.sources();
    sources.login_path = Some("remote".to_owned());
    let options = Options::read(&sources).unwrap();
    assert_eq!((options.user.as_deref(), options.host.as_deref()), (Some("b"), Some("h")));
    assert_eq!(password(&options), Some(b"x".as_slice()));

    sources.login_path = Some("other".to_owned());
    let error = Options::read(&sources).unwrap_err().to_string();
    assert!(error.contains("mysql_config_editor set --login-path=other"), "{error}");
}

#[test]
fn the_environment_can_name_the_login_path_file() {
    let home = Home::new();
    let mut sources = home.sources();
    let real = include_bytes!("testdata/mylogin.cnf");
    sources.environment.login_file = Some(home.write("elsewhere", 0o600, real));
    sources.login_path = Some("remote".to_owned());
    let options = Options::read(&sources).unwrap();
    assert_eq!(password(&options), Some(b"s3cret \"#x".as_slice()));
    assert_eq!((options.user.as_deref(), options.port), (Some("ann"), Some(4703)));
    assert_eq!(options.socket, Some("/a b.sock".into()));
}

#[test]
fn a_login_path_file_that_others_may_read_is_left_out_with_a_note() {
    let home = Home::new();
    home.write(".mylogin.cnf", 0o640, encipher(&["[client]\n", "user = a\n"]));
    let options = Options::read(&home.sources()).unwrap();
    assert_eq!(options.user.as_deref(), Some("runner"));
    assert!(options.notes[0].contains("chmod 600"), "{:?}", options.notes);
}

#[test]
fn faults_name_the_file_the_line_and_the_remedy_but_no_value() {
    for (text, says) in [
        ("[client]\nport=hunter2\n", "line 2: port is not a TCP port"),
        ("[client]\n\nssl-mode=hunter2\n", "line 3: ssl-mode is not a mode; write DISABLED"),
        ("[client]\nprotocol=pipe\n", "line 2: protocol is not a transport"),
        ("[client]\npassword\n", "make a login path"),
        ("[client]\nuser\n", "line 2: user needs a value"),
        ("[client\npassword=hunter2\n", "line 1: a group is not closed"),
        ("password=hunter2\n", "line 1: an option stands before the first group"),
    ] {
        let home = Home::new();
        let file = home.write(".my.cnf", 0o600, text);
        let error = Options::read(&home.sources()).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(says) && shown.contains(file.to_str().unwrap()), "{shown}");
        assert!(!shown.contains("hunter2") && !format!("{error:?}").contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_named_file_that_is_not_there_is_an_error() {
    let home = Home::new();
    let mut sources = home.sources();
    sources.defaults_file = Some(home.path("none.cnf"));
    let error = Options::read(&sources).unwrap_err().to_string();
    assert!(error.contains("none.cnf: cannot be read"), "{error}");
}

#[test]
fn a_file_without_an_end_is_refused() {
    let home = Home::new();
    home.write(".my.cnf", 0o600, "!include /dev/zero\n");
    let error = Options::read(&home.sources()).unwrap_err();
    assert!(matches!(error, OptionsError::TooLong { .. }), "{error}");
}

#[test]
fn files_that_include_each_other_without_a_circle_and_without_end_are_refused() {
    let home = Home::new();
    for level in 0..9 {
        let next = home.path(&format!("{}.cnf", level + 1));
        let line = format!("!include {}\n", next.display());
        home.write(&format!("{level}.cnf"), 0o600, line.repeat(9));
    }
    home.write("9.cnf", 0o600, "");
    let mut sources = home.sources();
    sources.defaults_file = Some(home.path("0.cnf"));
    let error = Options::read(&sources).unwrap_err();
    assert!(matches!(error, OptionsError::TooMany { .. }), "{error}");
}
