//! Rights of an account: how to grant one, and whether the server says that ours has it.

use crate::connection::{Connection, ConnectionError, ServerIdentity, text};

impl ServerIdentity {
    /// The statement that gives our account a right, such as `PROCESS ON *.*`.
    pub fn grant(&self, right: &str) -> String {
        let (user, host) = self.account.rsplit_once('@').unwrap_or((&self.account, "%"));
        format!("GRANT {right} TO '{user}'@'{host}'")
    }
}

/// Whether our account has a right, such as `PROCESS`, on one of these, such as `*.*` or `schema.table`, by what
/// `SHOW GRANTS` says. A role counts where the server lists its rights: the one that is on, not others.
///
/// # Errors
/// The connection is broken.
pub fn has(connection: &mut Connection, right: &str, on: &[&str]) -> Result<bool, ConnectionError> {
    Ok(connection.rows("SHOW GRANTS")?.iter().any(|row| gives(&text(row, 0), right, on)))
}

fn gives(grant: &str, right: &str, on: &[&str]) -> bool {
    let Some((rights, rest)) = grant.strip_prefix("GRANT ").and_then(|all| all.split_once(" ON "))
    else {
        return false;
    };
    let of = rest.split(" TO ").next().unwrap_or_default().replace(['`', '\\'], "");
    let is_it = |one: &str| one == right || one == "ALL PRIVILEGES";
    on.contains(&of.as_str()) && rights.split(", ").any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_read_from_grants() {
        let on = ["*.*", "performance_schema.*", "performance_schema.setup_objects"];
        for grant in [
            "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
            "GRANT SELECT, DROP ON `performance\\_schema`.* TO 'a'@'b'",
            "GRANT DROP ON `performance_schema`.`setup_objects` TO 'a'@'b'",
        ] {
            assert!(gives(grant, "DROP", &on), "{grant}");
        }
        for grant in [
            "GRANT USAGE ON *.* TO 'a'@'b'",
            "GRANT DROP ON `shop`.* TO 'a'@'b'",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON `performance_schema`.* TO 'a'@'b'",
            "GRANT PROXY ON ''@'' TO 'root'@'localhost' WITH GRANT OPTION",
            "SET DEFAULT ROLE r FOR 'a'@'b'",
        ] {
            assert!(!gives(grant, "DROP", &on), "{grant}");
        }
        let process = "GRANT RELOAD, PROCESS ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*0'";
        assert!(gives(process, "PROCESS", &["*.*"]));
        assert!(!gives("GRANT SELECT ON *.* TO `a`@`%`", "PROCESS", &["*.*"]));
    }
}
