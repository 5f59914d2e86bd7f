//! What sessions allocate when they log in is of the scenario, too.

use std::fs;

use waggle_lab::suite::Suite;

use super::{Place, done, windows};

/// The suite whose arms have a server each, whose servers log what they are asked.
fn suite(place: &Place, log: &str) -> String {
    let (text, options) = (Suite::text("line").unwrap(), "\noptions = [");
    assert_eq!(text.matches(options).count(), 1);
    let logged = format!("{options}\"--general-log=ON\", \"--general-log-file={log}\",");
    let file = place.dir.path().join("logged.toml");
    fs::write(&file, text.replace(options, &logged)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_scenario_with_a_server_for_itself_is_set_before_the_sessions_of_its_load_log_in() {
    let place = Place::new();
    let log = place.dir.path().join("general.log");
    let suite = suite(&place, log.to_str().unwrap());
    let words = ["--only", "closed", "--only", "instruments-on", "--blocks", "2"];
    done(&place.small(&suite, "mysql-8.0", &words).output().unwrap());
    assert_eq!(windows(&place.run()).len(), 2 * 3);

    let log = fs::read_to_string(log).unwrap();
    let mut set = 0;
    // A server writes that at its start.
    for server in log.split("started with:") {
        let lines: Vec<&str> = server.lines().collect();
        let is_login = |line: &&str| line.contains("Connect") && line.contains("on sbtest");
        let is_change = |line: &&str| line.contains("UPDATE performance_schema.");
        let login = lines.iter().position(is_login);
        let change = lines.iter().rposition(is_change);
        if let Some((login, change)) = login.zip(change) {
            assert!(change < login, "{}", lines[change]);
            set += 1;
        }
    }
    assert_eq!(set, 2, "{log}");
}
