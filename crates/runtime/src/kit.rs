//! The conformance kit of the [`Model`] port: what every adapter of a model provider must pass, ours or yours.
//!
//! Say how your adapter is built ([`Subject`]) and how your provider writes ([`Dialect`]), and hand both to
//! [`conformance!`](crate::conformance):
//!
//! ```no_run
//! use loopd_runtime::kit::{Dialect, Features, Setup, Subject};
//! use loopd_runtime::Model;
//! use std::sync::Arc;
//!
//! # struct Wire;
//! # impl Dialect for Wire {
//! #     fn streamed(&self, _: &loopd_runtime::kit::Reply) -> loopd_runtime::kit::Streamed { todo!() }
//! #     fn whole(&self, _: &loopd_runtime::kit::Reply) -> String { todo!() }
//! #     fn error(&self, _: u16, _: &str) -> String { todo!() }
//! #     fn overflow(&self) -> (u16, String) { todo!() }
//! #     fn error_event(&self, _: &str) -> loopd_runtime::kit::Frame { todo!() }
//! #     fn hear(&self, _: &serde_json::Value) -> loopd_runtime::kit::Heard { todo!() }
//! # }
//! # fn build(_: &Setup) -> Result<Arc<dyn Model>, String> { todo!() }
//! struct Mine(Wire);
//!
//! impl Subject for Mine {
//!     fn features(&self) -> Features {
//!         Features { streams: true, ..Features::default() }
//!     }
//!
//!     fn dialect(&self) -> &dyn Dialect {
//!         &self.0
//!     }
//!
//!     fn model(&self, setup: &Setup) -> Result<Arc<dyn Model>, String> {
//!         build(setup)
//!     }
//! }
//!
//! mod kit {
//!     loopd_runtime::conformance!(super::Mine(super::Wire));
//! }
//! # fn main() {}
//! ```
//!
//! Each case becomes a test of its own name. Without the macro, [`CASES`] and [`check`] do the same. The provider is
//! played by a [`Server`] on loopback; nothing needs a network, a key, or a sleep.
//!
//! # What it proves
//! The rules of [`Model`] and [`ModelError`](crate::ModelError), over real connections: one call sends one request; an
//! answer exists only when the provider said that it was complete, wherever the stream breaks; bytes may be cut
//! anywhere and framed in every way that server-sent events allow; what is unknown is passed over; errors have the
//! class by which the runtime acts, and their wait; nothing that may have been generated counts as nothing; text is
//! shown as it comes; a call stops when nobody wants it and when its time is over; a key is in its header and nowhere
//! else; what was said goes back in the shape that providers accept.
//!
//! # What it does not prove
//! That the dialect is what the provider really speaks: record a few real exchanges and compare. What is special to a
//! provider, schemas of tools and answers, prices and settings: write tests for them beside the adapter.

mod answers;
mod calls;
mod dialect;
mod endings;
mod errors;
mod framing;
mod past;
pub mod server;
mod stage;

pub use dialect::{Dialect, Frame, Heard, HeardResult, HeardUse, Reply, Said, Streamed, Turn};
pub use server::{Seen, Server, Step};
pub use stage::{Asked, call, context, request};

use crate::ports::Model;
use stage::Stage;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The key that every model of the kit is built with. It must show in one header and nowhere else.
pub const KEY: &str = "sk-kit-3f9c1d77e2";

/// What an adapter and its provider can do, so that the kit knows which cases apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Answers come as a stream of server-sent events.
    pub streams: bool,
    /// Answers come in one piece: instead of a stream, or where a stream was asked for.
    pub whole: bool,
    /// A stream has a last event behind which nothing is waited for.
    pub ends_itself: bool,
    /// The adapter gives up when no byte comes for [`Setup::idle`].
    pub idle: bool,
    /// Reasoning arrives and goes back.
    pub reasoning: bool,
}

/// What a model is built for.
#[derive(Debug, Clone)]
pub struct Setup {
    /// `http://127.0.0.1:PORT`, without a path.
    pub base_url: String,
    /// The model's name at the provider.
    pub model: String,
    /// The key: [`KEY`].
    pub key: String,
    /// Whether to ask for a stream.
    pub stream: bool,
    /// How long no byte may come.
    pub idle: Duration,
}

/// The adapter under test.
pub trait Subject: Send + Sync + 'static {
    /// What it can do.
    fn features(&self) -> Features;

    /// How its provider writes.
    fn dialect(&self) -> &dyn Dialect;

    /// Builds a model.
    ///
    /// # Errors
    /// Why it cannot be built, which is a finding.
    fn model(&self, setup: &Setup) -> Result<Arc<dyn Model>, String>;
}

/// How a case went, if it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The adapter does what the case says.
    Passed,
    /// The case is about a feature that the adapter does not have.
    NotApplicable,
}

/// What an adapter did instead of what it should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding(String);

impl Finding {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Finding {}

impl From<std::io::Error> for Finding {
    fn from(error: std::io::Error) -> Self {
        Self(format!("the kit's server failed: {error}"))
    }
}

type Outcome = Result<Verdict, Finding>;
type Body = fn(Stage) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One thing that every adapter must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    body: Body,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Lists the cases once, for [`CASES`] and for the macro that turns each into a test.
macro_rules! cases {
    ($dollar:tt $($group:ident: $($name:ident)*;)*) => {
        /// Every case.
        pub const CASES: &[Case] =
            &[$($(Case { name: stringify!($name), body: |stage| Box::pin($group::$name(stage)) },)*)*];

        /// One test per case of the conformance kit of the Model port. Takes an expression that makes a
        /// [`Subject`](crate::kit::Subject).
        #[macro_export]
        macro_rules! conformance {
            ($dollar subject:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        let verdict = $dollar crate::kit::check(stringify!($name), $dollar subject);
                        if let Err(finding) = verdict {
                            panic!("{}: {finding}", stringify!($name));
                        }
                    }
                )*)*
            };
        }
    };
}

cases! { $
    answers:
        text_arrives_as_it_was_sent
        parallel_tool_uses_keep_their_order
        arguments_keep_their_exact_text
        usage_is_counted_once
        usage_that_was_not_said_is_unknown
        a_cut_answer_says_so
        a_refusal_says_so
        text_is_shown_in_order_as_it_comes;
    framing:
        a_stream_may_be_cut_anywhere
        lines_may_end_in_every_way
        a_byte_order_mark_is_no_data
        comments_and_pings_are_no_data
        data_may_span_several_lines
        an_event_may_be_huge
        what_is_unknown_is_passed_over
        an_answer_is_read_in_either_form;
    endings:
        a_stream_that_breaks_off_is_no_answer
        a_stream_without_its_end_is_no_answer
        half_a_body_is_no_answer
        an_empty_body_is_no_answer
        a_body_of_another_kind_is_no_answer
        an_event_that_does_not_parse_is_no_answer
        a_connection_that_closes_early_is_no_answer
        after_the_end_nothing_is_waited_for
        silence_is_no_answer;
    errors:
        a_status_has_its_class
        a_status_without_words_has_its_class
        an_overflow_is_too_large
        a_wait_is_read
        an_error_inside_of_a_success_is_an_error
        an_error_in_the_middle_is_no_answer
        a_message_is_bounded
        nobody_there_is_unavailable
        a_key_shows_in_no_error;
    calls:
        a_call_sends_one_request
        a_key_goes_into_a_header_alone
        an_unwanted_call_stops_at_once
        an_unwanted_call_is_not_sent
        an_attempt_ends_in_time;
    past:
        what_was_said_arrives_in_order
        reasoning_goes_back_to_its_origin_alone
        names_of_tools_come_back
        each_tool_use_has_its_result_behind_it
        arguments_go_back_as_objects
        no_tools_are_no_list;
}

/// Longer than any case takes on a machine that is busy with other things; an adapter that hangs fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs the case of this name, on a runtime of its own.
///
/// # Errors
/// The [`Finding`]; also when there is no such case.
pub fn check(name: &str, subject: impl Subject) -> Result<Verdict, Finding> {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Finding::new(format!("there is no case {name}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Finding::new(format!("no runtime: {error}")))?;
    let body = (case.body)(Stage::new(Arc::new(subject)));
    runtime.block_on(async move {
        let late = |_| Finding::new(format!("no end after {} seconds", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, body).await.map_err(late)?
    })
}

/// Compares whole values.
fn same<T: PartialEq + fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Result<(), Finding> {
    if found == expected {
        return Ok(());
    }
    let short = |value: &T| {
        let text = format!("{value:?}");
        if text.chars().count() > 600 { text.chars().take(600).chain(['…']).collect() } else { text }
    };
    Err(Finding(format!("{what}:\n    found {}\n expected {}", short(found), short(expected))))
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Finding> {
    if holds { Ok(()) } else { Err(Finding(what())) }
}
