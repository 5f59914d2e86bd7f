//! From the layout of a build to what the program copies.
//!
//! The cost of a statement is mostly the number of reads from the server's memory, not their size
//! (about 50 ns each; 4 KiB cost as much as two). So neighbouring fields are read as one span, and
//! user space picks the fields out of the bytes.

use waggle_model::Flavour;

use super::TapError;
use super::skeleton::types;
use crate::target::CurrentThdAt;
use crate::target::layout::{ContextStrings, Field, Layout};

/// Two fields nearer than this are read together.
const GAP_MAX: u32 = 256;
/// `STACK_SPAN_MAX` and `SPANS_MAX` of `shared.h`.
const STACK_SPAN_MAX: u32 = 128;
const SPANS_MAX: usize = 6;

/// What one loaded program copies, and where each field stands in its records.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) config: types::config,
    at: [Option<u32>; Field::ALL.len()],
}

/// The numbers that a statement carries.
const SESSION_FIELDS: [Field; 7] = [
    Field::ConnectionId,
    Field::ServerStatus,
    Field::Command,
    Field::StartTime,
    Field::LockTime,
    Field::RowsSent,
    Field::RowsExamined,
];
const QUERY_FIELDS: [Field; 4] =
    [Field::QueryText, Field::QueryLength, Field::Database, Field::DatabaseLength];
const DIAGNOSTICS_FIELDS: [Field; 4] =
    [Field::DiagnosticsStatus, Field::IsSent, Field::RowsAffected, Field::ErrorNumber];

impl Plan {
    /// The plan for a layout. Only the fields that nothing works without are demanded of it.
    pub(super) fn new(
        layout: &Layout,
        current: CurrentThdAt,
        text_limit: u32,
    ) -> Result<Plan, TapError> {
        let mut plan = Plan { config: types::config::default(), at: [None; Field::ALL.len()] };
        let mut place = Placer { layout, at: &mut plan.at, next: 0 };
        let config = &mut plan.config;

        (config.query, config.session_spans, config.session) =
            place.spans(Field::QueryText, &QUERY_FIELDS, &SESSION_FIELDS)?;
        (config.status, config.diagnostics_spans, config.diagnostics_span) =
            place.spans(Field::DiagnosticsStatus, &DIAGNOSTICS_FIELDS, &[])?;
        config.data_length = place.next;
        config.text_limit = text_limit;
        config.status_empty = layout.diagnostics.empty;
        config.status_ok = layout.diagnostics.ok;
        config.status_error = layout.diagnostics.error;
        config.has_query_cache = u8::from(has_query_cache(layout));
        config.diagnostics = demand(layout, Field::Diagnostics)?;
        config.start = demand(layout, Field::StartTime)?;
        set_current(config, current);
        config.id = demand(layout, Field::ConnectionId)?;
        config.command = demand(layout, Field::Command)?;
        config.rows_sent = layout.offset(Field::RowsSent).unwrap_or(0);
        config.rows_examined = layout.offset(Field::RowsExamined).unwrap_or(0);
        set_context(config, layout);
        plan.set_places(layout)?;
        Ok(plan)
    }

    /// The same with room for `bytes` more at the end of the data of a record.
    pub(crate) fn with_room(&self, bytes: u32) -> Plan {
        let mut plan = self.clone();
        plan.config.data_length += bytes;
        plan
    }

    /// The same for a layout that lost fields since: the program goes on copying what they hold, and
    /// nobody reads it.
    ///
    /// # Errors
    ///
    /// Where a field is gone that nothing works without.
    pub(super) fn narrowed(&self, layout: &Layout) -> Result<Plan, TapError> {
        let mut plan = self.clone();
        for field in Field::ALL.into_iter().filter(|field| layout.offset(*field).is_none()) {
            plan.at[field as usize] = None;
        }
        demand(layout, Field::Diagnostics)?;
        plan.set_places(layout)?;
        Ok(plan)
    }

    fn set_places(&mut self, layout: &Layout) -> Result<(), TapError> {
        let places = self.at;
        let at = |field: Field| places[field as usize].ok_or_else(|| missing(layout, field));
        self.config.at_text = at(Field::QueryText)?;
        self.config.at_text_length = at(Field::QueryLength)?;
        self.config.at_status = at(Field::DiagnosticsStatus)?;
        self.config.at_id = at(Field::ConnectionId)?;
        self.config.at_start = at(Field::StartTime)?;
        self.config.at_command = at(Field::Command)?;
        if let (Ok(text), Ok(length)) = (at(Field::Database), at(Field::DatabaseLength)) {
            self.config.has_database = 1;
            self.config.at_database = text;
            self.config.at_database_length = length;
        }
        if let Ok(status) = at(Field::ServerStatus) {
            self.config.has_server_status = 1;
            self.config.at_server_status = status;
        }
        Ok(())
    }

    /// Where a field stands in the data of a record.
    pub(super) fn at(&self, field: Field) -> Option<u32> {
        self.at[field as usize]
    }

    /// Whether one program can serve both.
    pub(super) fn is_same_program(&self, other: &Plan) -> bool {
        bytes_of(&self.config) == bytes_of(&other.config)
    }
}

/// The bytes of the configuration as the program sees them.
pub(super) fn bytes_of(config: &types::config) -> &[u8] {
    // SAFETY: `config` is plain old data that was made by `Default`, which sets its padding
    // members; the slice lives as long as the reference.
    unsafe {
        std::slice::from_raw_parts(
            std::ptr::from_ref(config).cast::<u8>(),
            std::mem::size_of::<types::config>(),
        )
    }
}

fn missing(layout: &Layout, field: Field) -> TapError {
    let why = layout.fields.get(&field).and_then(|reading| reading.why());
    TapError::Layout {
        build: layout.build.to_string(),
        field: field.name(),
        why: why.unwrap_or("it was not looked for").to_owned(),
    }
}

/// MySQL 8.0 removed the query cache (release notes of 8.0.3); MariaDB still has it.
fn has_query_cache(layout: &Layout) -> bool {
    layout.flavour == Flavour::Mariadb || layout.version.starts_with("5.")
}

fn demand(layout: &Layout, field: Field) -> Result<u32, TapError> {
    layout.offset(field).ok_or_else(|| missing(layout, field))
}

fn set_current(config: &mut types::config, current: CurrentThdAt) {
    match current {
        CurrentThdAt::ThreadLocal { offset } => config.session_offset = offset,
        CurrentThdAt::PthreadKey { block_pointer_offset, slot_offset } => {
            config.session_by_key = 1;
            config.key_block = block_pointer_offset;
            config.key_slot = slot_offset;
        }
    }
}

/// Where a session tells its user and host.
pub(super) fn context_of(layout: &Layout) -> Option<[u32; 4]> {
    let fields = [Field::SecurityContext, Field::User, Field::Host, Field::Address];
    let [context, user, host, address] = fields.map(|field| layout.offset(field));
    Some([context?, user?, host?, address?])
}

fn set_context(config: &mut types::config, layout: &Layout) {
    if let Some([context, user, host, address]) = context_of(layout) {
        config.has_context = 1;
        config.context = context;
        config.user = user;
        config.host = host;
        config.address = address;
    }
    config.zero_ended_strings = u8::from(layout.context_strings == ContextStrings::ZeroEnded);
    debug_assert!(layout.flavour == Flavour::Mariadb || config.zero_ended_strings == 0);
}

/// Gives every span its place in the data of a record.
struct Placer<'a> {
    layout: &'a Layout,
    at: &'a mut [Option<u32>; Field::ALL.len()],
    next: u32,
}

type Spans = (types::span, u32, [types::span; SPANS_MAX]);

impl Placer<'_> {
    /// The span around `first` that passes through the stack, with those of `near` that fit, and
    /// the spans of the rest and of `others`.
    fn spans(&mut self, first: Field, near: &[Field], others: &[Field]) -> Result<Spans, TapError> {
        let start = demand(self.layout, first)?;
        let (mut low, mut high) = (start, start + first.width());
        let mut inside = Vec::new();
        for field in near {
            let Some(offset) = self.layout.offset(*field) else { continue };
            let reach = (low.min(offset), high.max(offset + field.width()));
            if reach.1 - reach.0 <= STACK_SPAN_MAX {
                (low, high) = reach;
                inside.push(*field);
            }
        }
        let outside: Vec<Field> =
            near.iter().chain(others).filter(|field| !inside.contains(field)).copied().collect();
        let stacked = self.merge(&inside);
        let spans = self.merge(&outside);
        let [stack] = stacked[..] else {
            return Err(missing(self.layout, first));
        };
        if spans.len() > SPANS_MAX {
            return Err(missing(self.layout, first));
        }
        let mut table = [types::span::default(); SPANS_MAX];
        table[..spans.len()].copy_from_slice(&spans);
        Ok((stack, spans.len() as u32, table))
    }

    fn merge(&mut self, fields: &[Field]) -> Vec<types::span> {
        let mut places: Vec<(u32, Field)> =
            fields.iter().filter_map(|field| Some((self.layout.offset(*field)?, *field))).collect();
        places.sort_unstable();
        let mut spans: Vec<types::span> = Vec::new();
        for (offset, field) in places {
            let end = offset + field.width();
            match spans.last_mut() {
                Some(span) if offset <= span.offset + span.length + GAP_MAX => {
                    span.length = span.length.max(end - span.offset);
                }
                _ => {
                    self.close(spans.last_mut());
                    spans.push(types::span { offset, length: end - offset, at: self.next });
                }
            }
            let at = spans.last().map(|span| span.at + offset - span.offset);
            self.at[field as usize] = at;
        }
        self.close(spans.last_mut());
        spans
    }

    /// Rounds a span up to whole words, as they are copied, and goes on behind it.
    fn close(&mut self, span: Option<&mut types::span>) {
        if let Some(span) = span {
            span.length = span.length.next_multiple_of(8);
            self.next = span.at + span.length;
        }
    }
}
