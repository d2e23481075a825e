//! Recorded streams, read without any connection.

use crate::intake::{Assemble, End, Intake};
use crate::{anthropic, gemini, openai};
use loopd_runtime::{ModelAnswer, ModelError};

/// A wire on which answers stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    ChatCompletions,
    /// The Messages API.
    Messages,
    /// Gemini's `generateContent`.
    GenerateContent,
}

/// The answer in the body of a stream that was recorded from a provider and ended properly: exactly what the adapter
/// makes of it over a connection. `pieces` are its bytes, cut anywhere; `show` gets the text as it comes. Ids that the
/// provider left out are those of Call 1.
///
/// # Errors
/// As [`Model::call`](loopd_runtime::Model::call): the stream is an error, is cut, or is none.
pub fn read<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    show: &mut dyn FnMut(String),
) -> Result<ModelAnswer, ModelError> {
    let mut pieces = pieces.into_iter();
    match wire {
        Wire::ChatCompletions => openai::recorded(&mut pieces, show),
        Wire::Messages => anthropic::recorded(&mut pieces, show),
        Wire::GenerateContent => gemini::recorded(&mut pieces, show),
    }
}

/// The way of the adapters that share their intake.
pub(crate) fn assemble(
    assembler: impl Assemble,
    pieces: &mut dyn Iterator<Item = &[u8]>,
    show: &mut dyn FnMut(String),
) -> Result<ModelAnswer, ModelError> {
    let mut intake = Intake::new(assembler);
    for piece in pieces {
        intake.push(piece, show)?;
        if intake.is_done() {
            break;
        }
    }
    intake.end(End::Proper)
}
