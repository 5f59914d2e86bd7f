//! A place that is read wrongly on purpose. Only for tests.

use std::str::FromStr;
use std::sync::Arc;

use waggle_model::Reading;

use super::layout::{Field, Layout};
use super::{CurrentThdAt, Instance};

/// By which name the place of the session itself goes.
const CURRENT_THD: &str = "current_thd";

/// As if a build kept something elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// What; `None`: the session of a thread.
    pub field: Option<Field>,
    /// Bytes by which its place differs from the true one.
    pub bytes: i32,
}

impl Shift {
    /// Puts it there. A field without a place stays so.
    pub fn apply(self, instance: &mut Instance, layout: &mut Arc<Layout>) {
        let Some(field) = self.field else {
            match &mut instance.current_thd {
                CurrentThdAt::ThreadLocal { offset } => *offset += i64::from(self.bytes),
                CurrentThdAt::PthreadKey { slot_offset, .. } => {
                    *slot_offset = slot_offset.wrapping_add_signed(self.bytes.into());
                }
            }
            return;
        };
        if let Some(Reading::Value(place)) = Arc::make_mut(layout).fields.get_mut(&field) {
            place.offset = place.offset.wrapping_add_signed(self.bytes);
        }
    }
}

impl FromStr for Shift {
    type Err = String;

    /// `FIELD=BYTES`, the names as `waggle doctor` has them, or `current_thd`.
    fn from_str(text: &str) -> Result<Shift, String> {
        let (name, bytes) = text.split_once('=').ok_or("write FIELD=BYTES")?;
        let bytes = bytes.parse().map_err(|_| format!("{bytes:?} is no number of bytes"))?;
        let field = Field::ALL.into_iter().find(|field| field.name() == name);
        match field {
            None if name != CURRENT_THD => Err(format!("no field is called {name:?}")),
            field => Ok(Shift { field, bytes }),
        }
    }
}
