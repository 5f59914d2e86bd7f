//! The thread that asks one server. The capture never waits for it: a digest that does not fit into
//! its queue is asked for when it comes again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use waggle_account::{Digests, Grouping, settings_of};
use waggle_model::{Reading, Server, SessionSettings, Text};
use waggle_mysql::{ConnectionError, DigestSession, Options};
use waggle_sql::mask_secrets;

use super::answers::{Answers, Hash};
use super::own::OwnConnections;

/// Between two questions: at most 20 a second.
const PAUSE: Duration = Duration::from_millis(50);
/// Until a server that could not be reached is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How often a connection sends its mark, because a mark can be lost, and how long the capture may
/// take each time to see it.
const SAYINGS: u32 = 5;
const HEARD_WITHIN: Duration = Duration::from_secs(1);
const LISTEN_EVERY: Duration = Duration::from_millis(10);

/// `ER_PARSE_ERROR_IN_DIGEST_FN` and `ER_UNDISCLOSED_PARSE_ERROR_IN_DIGEST_FN`.
const UNPARSED: [u16; 2] = [3676, 3677];
/// `ER_INVALID_CHARACTER_STRING`.
const INVALID_CHARACTERS: u16 = 1300;

/// A statement of a digest whose hash is not known.
pub(super) struct Question {
    pub(super) digest: u64,
    pub(super) text: Vec<u8>,
    pub(super) settings: SessionSettings,
}

/// What the thread works with.
pub(super) struct Asker {
    pub(super) server: Server,
    pub(super) options: Options,
    pub(super) own: Arc<OwnConnections>,
    pub(super) answers: Arc<Answers>,
    pub(super) news: Sender<String>,
    pub(super) questions: Receiver<Question>,
}

/// Why there is no session to ask in.
struct Refusal {
    why: String,
    /// Trying again would change nothing, and may lock the account.
    is_final: bool,
}

/// How the asking ended.
enum End {
    /// The watch, or the server, has ended.
    Over,
    Broken(String),
}

impl Asker {
    /// Asks until nobody can ask any more.
    pub(super) fn run(self) {
        let mut digests = Digests::of(&self.server, Grouping::Digest);
        loop {
            let refusal = match self.connect() {
                Ok(mut session) => {
                    self.refuse(None);
                    self.ask_length(&mut session);
                    match self.answer(&mut session, &mut digests) {
                        End::Over => return,
                        End::Broken(why) => Refusal { why, is_final: false },
                    }
                }
                Err(refusal) => refusal,
            };
            self.refuse(Some(refusal.why));
            if refusal.is_final || !self.rest() {
                return;
            }
        }
    }

    /// A session in this very server: the texts are for nobody else.
    fn connect(&self) -> Result<DigestSession, Refusal> {
        let mut session =
            DigestSession::open(&self.options).map_err(|error| self.refusal(&error))?;
        let marker = self.own.add(session.connection_id());
        for _ in 0..SAYINGS {
            session.say(&marker).map_err(|error| self.refusal(&error))?;
            for _ in 0..HEARD_WITHIN.as_millis() / LISTEN_EVERY.as_millis() {
                match self.own.leads_to(&marker) {
                    Some(pid) if pid == self.server.pid => return Ok(session),
                    Some(pid) => return Err(Refusal::is_final(format!("it leads to pid {pid}"))),
                    None => thread::sleep(LISTEN_EVERY),
                }
            }
        }
        Err(Refusal::is_final("it leads to a server that is not watched here".to_owned()))
    }

    fn refusal(&self, error: &ConnectionError) -> Refusal {
        let is_final = matches!(
            error,
            ConnectionError::LoginRefused { .. }
                | ConnectionError::TlsFile { .. }
                | ConnectionError::PasswordNotUtf8
        );
        if error.is_access_denied() {
            let user = self.options.user.as_deref().unwrap_or("this user");
            return Refusal::is_final(format!(
                "{user} may not use the database performance_schema; \
                 GRANT SELECT ON performance_schema.* TO it"
            ));
        }
        Refusal { why: error.to_string(), is_final }
    }

    /// Tells, once, that the server cannot be asked, or that it can be again.
    fn refuse(&self, why: Option<String>) {
        let why = why.map(|why| format!("the server cannot be asked: {why}"));
        if self.answers.refuse(why.clone())
            && let Some(why) = why
        {
            // Nobody may listen any more.
            let _ = self.news.send(format!("pid {}: no server digests: {why}", self.server.pid));
        }
    }

    /// Lets the server alone for a while. Returns whether there is somebody left to ask for.
    fn rest(&self) -> bool {
        while let Ok(question) = self.questions.try_recv() {
            self.answers.forget(question.digest);
        }
        match self.questions.recv_timeout(RETRY) {
            Ok(question) => self.answers.forget(question.digest),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        true
    }

    /// Asks for what could not be read from the memory of the server.
    fn ask_length(&self, session: &mut DigestSession) {
        if self.server.max_digest_length.value().is_none()
            && let Ok(length) = session.max_digest_length()
        {
            self.answers.put_length(length);
        }
    }

    fn answer(&self, session: &mut DigestSession, digests: &mut Digests) -> End {
        for question in &self.questions {
            match hash_of(&question, session, digests) {
                Ok(hash) => self.answers.put(question.digest, hash),
                Err(error) => {
                    self.answers.forget(question.digest);
                    return End::Broken(error.to_string());
                }
            }
            thread::sleep(PAUSE);
        }
        End::Over
    }
}

impl Refusal {
    fn is_final(why: String) -> Refusal {
        Refusal { why, is_final: true }
    }
}

/// An answer, or why there will never be one.
///
/// # Errors
///
/// The connection is broken.
fn hash_of(
    question: &Question,
    session: &mut DigestSession,
    digests: &mut Digests,
) -> Result<Hash, ConnectionError> {
    let Question { text, settings, .. } = question;
    // What the server keeps of our question it does not mask.
    let masked = mask_secrets(text, settings_of(Some(*settings)));
    let mut digest_text = |bytes: &[u8]| {
        let text = Text { bytes, length: bytes.len() as u64 };
        digests.text_of(text, Some(*settings)).to_owned()
    };
    if *masked != **text && digest_text(&masked) != digest_text(text) {
        return Ok(Reading::absent(
            "the text holds a secret, and without it it has another digest",
        ));
    }
    match session.digest(&masked, *settings) {
        Ok(hash) => Ok(Reading::Value(hash.into())),
        Err(error) => match error.number() {
            // What the server says beside the number quotes the text.
            Some(number) => Ok(Reading::absent(refused(number))),
            None => Err(error),
        },
    }
}

fn refused(number: u16) -> String {
    match number {
        number if UNPARSED.contains(&number) => {
            format!("the server cannot parse this text by itself (error {number})")
        }
        INVALID_CHARACTERS => {
            format!("the text is not valid in the character set of its session (error {number})")
        }
        _ => format!("the server refuses this text (error {number})"),
    }
}
