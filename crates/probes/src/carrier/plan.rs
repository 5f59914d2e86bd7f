//! Turns the layout of a build into the spans that the program copies.
//!
//! A statement costs about as much as its number of reads from the server's memory. The size
//! matters little: one read takes 85 to 95 ns, and 4 KiB cost about as much as two reads. So neighbouring
//! fields are read as one span, and user space picks the fields out of the bytes.

use waggle_model::{Command, Flavour, Trial};

use super::CarrierError;
use super::skeleton::types;
use crate::servers::CurrentThdAt;
use crate::servers::layout::{ContextStrings, Field, Layout};

/// Two fields nearer than this are read together.
const GAP_MAX: u32 = 256;
/// `STACK_SPAN_MAX` and `SPANS_MAX` of `shared.h`.
const STACK_SPAN_MAX: u32 = 128;
const SPANS_MAX: usize = 6;
/// `STATEMENTS_MAX` of `shared.h`.
const STATEMENTS_MAX: usize = 4;

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

/// Fields that the program itself decides by: a layout that loses one of them needs another program.
const DECIDED_BY: [Field; 5] = [
    Field::ConnectionId,
    Field::Command,
    Field::StartTime,
    Field::Diagnostics,
    Field::DiagnosticsStatus,
];

impl Plan {
    /// The plan for a layout. What it lacks is not copied. One of two fields must be there: a
    /// statement ends with a reply of a final status, or at the latest when the session has another
    /// start.
    pub(crate) fn new(
        layout: &Layout,
        current: CurrentThdAt,
        text_limit: u32,
    ) -> Result<Plan, CarrierError> {
        let mut plan = Plan { config: types::config::default(), at: [None; Field::ALL.len()] };
        let mut place = Placer { layout, at: &mut plan.at, next: 0 };
        let config = &mut plan.config;
        let flag = |field| u8::from(layout.offset(field).is_some());
        let has_status = layout.shows_status();
        if !layout.shows_ends() {
            return Err(missing(layout, Field::DiagnosticsStatus));
        }

        let text = layout.shows_texts().then_some(Field::QueryText);
        (config.query, config.session_spans, config.session) =
            place.spans(text, &QUERY_FIELDS, &SESSION_FIELDS)?;
        let (status, area): (_, &[Field]) = match layout.offset(Field::Diagnostics) {
            Some(_) => (has_status.then_some(Field::DiagnosticsStatus), &DIAGNOSTICS_FIELDS),
            None => (None, &[]),
        };
        (config.status, config.diagnostics_spans, config.diagnostics_span) =
            place.spans(status, area, &[])?;
        config.data_length = place.next;
        config.has_status = u8::from(has_status);
        config.has_diagnostics = flag(Field::Diagnostics);
        config.has_start = flag(Field::StartTime);
        config.has_id = flag(Field::ConnectionId);
        config.has_command = flag(Field::Command);
        config.text_limit = text_limit;
        config.status_empty = layout.diagnostics.empty;
        config.status_ok = layout.diagnostics.ok;
        config.status_ok_bulk = layout.diagnostics.ok_bulk.unwrap_or(layout.diagnostics.ok);
        config.status_error = layout.diagnostics.error;
        // What is left over repeats one of them.
        config.statements = [u32::from(Command::QUERY.0); STATEMENTS_MAX];
        for (place, command) in config.statements.iter_mut().zip(Command::statements()) {
            *place = u32::from(command.0);
        }
        config.has_query_cache = u8::from(has_query_cache(layout));
        set_current(config, current);
        let or_zero = |field| layout.offset(field).unwrap_or(0);
        config.diagnostics = or_zero(Field::Diagnostics);
        config.start = or_zero(Field::StartTime);
        config.id = or_zero(Field::ConnectionId);
        config.command = or_zero(Field::Command);
        config.rows_sent = or_zero(Field::RowsSent);
        config.rows_examined = or_zero(Field::RowsExamined);
        if let Some(state) = layout.offset(Field::State) {
            config.has_state = 1;
            config.state = state;
        }
        set_context(config, layout);
        plan.set_places();
        plan.config.tells_ready = u8::from(plan.follows_requests());
        Ok(plan)
    }

    /// The same for a program that tells when a session waits for its next request.
    pub(crate) fn with_ready(mut self) -> Plan {
        self.config.tells_ready = 1;
        self
    }

    /// The same for a program that tells where the time of a statement went. It needs the start.
    pub(crate) fn with_parts(mut self) -> Plan {
        self.config.has_parts = self.config.has_start;
        self
    }

    /// The same for a program in which a coin decides what is collected of a statement.
    pub(crate) fn with_trial(mut self, trial: &Trial) -> Plan {
        self.config.has_trial = 1;
        self.config.injects = (trial.inject_ns > 0).into();
        self.config.has_shapes = trial.has_shapes.into();
        self
    }

    /// Whether its programs need a map of this name.
    pub(crate) fn needs(&self, map: &str) -> bool {
        match map {
            "coins" | "trials" => self.has_trial(),
            "shapes" => self.config.has_shapes == 1,
            _ => true,
        }
    }

    /// Whether a coin decides what is collected of a statement.
    pub(crate) fn has_trial(&self) -> bool {
        self.config.has_trial == 1
    }

    /// Whether the program tells where the time of a statement went.
    pub(crate) fn tells_parts(&self) -> bool {
        self.config.has_parts == 1
    }

    /// Whether the program tells when a session waits for its next request, where the kernel can say so.
    pub(crate) fn tells_ready(&self) -> bool {
        self.config.tells_ready == 1
    }

    /// Whether the program also looks at what sessions receive: without a start only that tells when
    /// a statement began, and without the id or the command only that tells when it is over.
    pub(crate) fn follows_requests(&self) -> bool {
        let config = &self.config;
        [config.has_start, config.has_id, config.has_command].contains(&0)
    }

    /// The same with room for `bytes` more at the end of the data of a record.
    pub(crate) fn with_room(&self, bytes: u32) -> Plan {
        let mut plan = self.clone();
        plan.config.data_length += bytes;
        plan
    }

    /// The same for a layout that lost fields since: the program goes on copying what they hold, and
    /// nobody reads it. `None` where it needs another program.
    pub(super) fn narrowed(&self, layout: &Layout) -> Option<Plan> {
        let is_used = |field: Field| match field {
            Field::Diagnostics => self.config.has_diagnostics == 1,
            field => self.at(field).is_some(),
        };
        let is_lost = |field: &Field| layout.offset(*field).is_none() && is_used(*field);
        if DECIDED_BY.iter().any(is_lost) {
            return None;
        }
        let mut plan = self.clone();
        for field in Field::ALL.into_iter().filter(|field| layout.offset(*field).is_none()) {
            plan.at[field as usize] = None;
        }
        Some(plan)
    }

    fn set_places(&mut self) {
        let places = self.at;
        let at = |field: Field| places[field as usize];
        let config = &mut self.config;
        // Both pass through the stack: the program looks at them there.
        let end = config.query.at + config.query.length;
        let stacked = |field| at(field).filter(|at| *at + 8 <= end && config.query.length > 0);
        if let (Some(text), Some(length)) = (stacked(Field::QueryText), stacked(Field::QueryLength))
        {
            config.has_text = 1;
            config.at_text = text;
            config.at_text_length = length;
        }
        config.at_status = at(Field::DiagnosticsStatus).unwrap_or(0);
        config.at_id = at(Field::ConnectionId).unwrap_or(0);
        config.at_start = at(Field::StartTime).unwrap_or(0);
        config.at_command = at(Field::Command).unwrap_or(0);
        if let (Some(text), Some(length)) = (at(Field::Database), at(Field::DatabaseLength)) {
            config.has_database = 1;
            config.at_database = text;
            config.at_database_length = length;
        }
        if let Some(status) = at(Field::ServerStatus) {
            config.has_server_status = 1;
            config.at_server_status = status;
        }
    }

    /// Where a field stands in the data of a record.
    pub(crate) fn at(&self, field: Field) -> Option<u32> {
        self.at[field as usize]
    }

    /// Whether one program can serve both.
    pub(crate) fn is_same_program(&self, other: &Plan) -> bool {
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

fn missing(layout: &Layout, field: Field) -> CarrierError {
    let why = layout.fields.get(&field).and_then(|reading| reading.why());
    CarrierError::Layout {
        build: layout.build.to_string(),
        field: field.name(),
        why: why.unwrap_or("it was not looked for").to_owned(),
    }
}

/// MySQL 8.0 removed the query cache (release notes of 8.0.3); MariaDB still has it.
fn has_query_cache(layout: &Layout) -> bool {
    layout.flavour == Flavour::Mariadb || layout.version.starts_with("5.")
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

/// Where a session tells its user, host and address, as far as that is known.
fn set_context(config: &mut types::config, layout: &Layout) {
    if let Some(context) = layout.offset(Field::SecurityContext) {
        config.has_context = 1;
        config.context = context;
    }
    let place = |field| layout.offset(field).map_or((0, 0), |offset| (1, offset));
    (config.has_user, config.user) = place(Field::User);
    (config.has_host, config.host) = place(Field::Host);
    (config.has_address, config.address) = match layout.offset(Field::Host) {
        // An address that stands for every name would be taken for one.
        None => (0, 0),
        Some(_) => place(Field::Address),
    };
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
    /// the spans of the rest and of `others`. Without `first` nothing passes through the stack.
    fn spans(
        &mut self,
        first: Option<Field>,
        near: &[Field],
        others: &[Field],
    ) -> Result<Spans, CarrierError> {
        let start = first.and_then(|first| Some((self.layout.offset(first)?, first.width())));
        let mut inside = Vec::new();
        if let Some((start, width)) = start {
            let (mut low, mut high) = (start, start + width);
            for field in near {
                let Some(offset) = self.layout.offset(*field) else { continue };
                let reach = (low.min(offset), high.max(offset + field.width()));
                if reach.1 - reach.0 <= STACK_SPAN_MAX {
                    (low, high) = reach;
                    inside.push(*field);
                }
            }
        }
        let outside: Vec<Field> =
            near.iter().chain(others).filter(|field| !inside.contains(field)).copied().collect();
        let stack = self.merge(&inside).first().copied().unwrap_or_default();
        let spans = self.merge(&outside);
        if spans.len() > SPANS_MAX {
            let why = "the fields of this build lie too far apart; please report it".to_owned();
            return Err(CarrierError::Kernel { what: "the layout", why });
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

    /// Rounds a span up to whole words, as they are copied, and goes on after it.
    fn close(&mut self, span: Option<&mut types::span>) {
        if let Some(span) = span {
            span.length = span.length.next_multiple_of(8);
            self.next = span.at + span.length;
        }
    }
}
