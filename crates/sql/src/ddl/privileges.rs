//! `GRANT` and `REVOKE`.

use super::walk::Walk;
use super::{Ddl, DdlKind, Object, ObjectType};
use crate::lexer::Lexeme;

impl Walk<'_> {
    pub(super) fn grant(&mut self) -> Option<Ddl> {
        self.privileges("TO", [DdlKind::Grant, DdlKind::GrantRoles, DdlKind::GrantRoles])
    }

    pub(super) fn revoke(&mut self) -> Option<Ddl> {
        self.skip_condition();
        self.privileges("FROM", [DdlKind::Revoke, DdlKind::RevokeRoles, DdlKind::RevokeAll])
    }

    /// What is granted, `ON` what, and to whom. The kinds are those of privileges on something, of
    /// roles, and of anything else without `ON`.
    fn privileges(&mut self, before_accounts: &str, kinds: [DdlKind; 3]) -> Option<Ddl> {
        let [on_something, roles, other] = kinds;
        let mut ahead = self.clone();
        let mut ddl = Ddl::new(roles);
        ahead.accounts(&mut ddl, ObjectType::Role);
        if ahead.take(before_accounts) {
            ahead.accounts(&mut ddl, ObjectType::User);
            *self = ahead;
            return Some(ddl);
        }
        let mut ddl = Ddl::new(on_something);
        let mut depth = 0_u32;
        loop {
            if depth == 0 && self.take("ON") {
                self.level(&mut ddl);
                if self.take(before_accounts) {
                    self.accounts(&mut ddl, ObjectType::User);
                }
                return Some(ddl);
            }
            if depth == 0 && self.take(before_accounts) {
                ddl.kind = other;
                self.accounts(&mut ddl, ObjectType::User);
                return Some(ddl);
            }
            let Some(token) = self.skip() else { return Some(ddl) };
            match (token.lexeme, self.bytes(&token)) {
                (Lexeme::Symbol, b"(") => depth += 1,
                (Lexeme::Symbol, b")") => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// `*`, `*.*`, `db.*`, `db.t`, `t`, also with what it is before it.
    fn level(&mut self, ddl: &mut Ddl) {
        let types = [
            ("TABLE", ObjectType::Table),
            ("FUNCTION", ObjectType::Function),
            ("PROCEDURE", ObjectType::Procedure),
            ("LIBRARY", ObjectType::Library),
            ("PACKAGE", ObjectType::Package),
        ];
        let named = types.into_iter().find(|(word, _)| self.take(word));
        let object = named.map_or(ObjectType::Table, |(_, object)| object);
        if object == ObjectType::Package {
            self.take("BODY");
        }
        let all = || Some("*".to_owned());
        if self.take_symbol(b"*") {
            let schema = if self.take_symbol(b".") { all() } else { None };
            self.take_symbol(b"*");
            ddl.add(Object { object_type: object, schema, name: all() });
            return;
        }
        let before = ddl.objects.len();
        // `GRANT PROXY ON 'a'@'h' TO …` names an account.
        if !self.name(ddl, object) {
            self.accounts(ddl, ObjectType::User);
        }
        if self.take_symbol(b"*")
            && let Some(object) = ddl.objects.get_mut(before)
        {
            object.schema = object.name.take();
            object.name = all();
        }
    }
}
