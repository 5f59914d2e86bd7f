//! The accounts of the private servers.

/// An account that every private server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name in `mysql.user`.
    pub user: &'static str,
    /// The password; empty for none.
    pub password: &'static str,
}

impl Account {
    /// The administrator, from this host only.
    pub const ROOT: Self = Self { user: "root", password: "" };
    /// Every right on everything, from anywhere, without a password.
    pub const APP: Self = Self { user: "app", password: "" };
    /// As [`Account::APP`], with a password of the version's default kind.
    pub const SECRET: Self = Self { user: "secret", password: "s3cret pass" };
}
