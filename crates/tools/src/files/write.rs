//! `write_file`: a whole file, new or in the place of an old one.

use super::place::{Place, exists};
use super::root::{Below, Root};
use super::tool::Attempt;
use loopd_runtime::{ProbeAnswer, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const DESCRIPTION: &str = "Writes a whole text file: a new one, or in the place of the one that is there. \
                                      Folders on the way are made. To change a part of a file, use `edit_file`.";

/// Bytes of a file that is written.
const MAX_CONTENT: usize = 1024 * 1024;

/// What to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file.
    path: String,
    /// All that it is to hold, exactly; at most 1 MiB.
    content: String,
    /// Whether it is an error when the file exists.
    #[serde(default)]
    must_not_exist: bool,
}

/// The answer of `write_file`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The file.
    pub path: String,
    /// Its length now.
    pub bytes: u64,
    /// Whether there was none before; absent where that was found out only afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
}

pub(super) fn run(root: &Root, args: Args, attempt: &Attempt) -> Result<Written, ToolError> {
    let path = Below::parse(&args.path)?;
    let content = args.content.as_bytes();
    if content.len() > MAX_CONTENT {
        let message = format!("the content has {} bytes; at most {MAX_CONTENT} are written", content.len());
        return Err(ToolError::did_not_happen("file.too_large", message));
    }
    attempt.stop.check()?;
    let place = Place::make(root, &path, attempt)?;
    let present = place.present()?;
    if args.must_not_exist && present.is_some() {
        return Err(exists(&path));
    }
    let staged = place.stage(content, present.as_ref())?;
    attempt.stop.check()?;
    if args.must_not_exist {
        staged.create()?
    } else {
        staged.replace()?
    }
    Ok(Written { path: path.to_string(), bytes: content.len() as u64, created: Some(present.is_none()) })
}

/// Whether it has been written, as far as the folder shows.
pub(super) fn look(root: &Root, args: Args, attempt: &Attempt) -> ProbeAnswer {
    seen(root, &args, attempt).unwrap_or_else(|error| ProbeAnswer::Unclear(error.to_string()))
}

fn seen(root: &Root, args: &Args, attempt: &Attempt) -> Result<ProbeAnswer, ToolError> {
    let path = Below::parse(&args.path)?;
    let place = Place::find(root, &path, attempt)?;
    let content = args.content.as_bytes();
    // Looked for first: an attempt that goes on meanwhile takes this name away and then shows in the content.
    let unfinished = !place.unfinished()?.is_empty();
    let unclear = |what: &str| ProbeAnswer::Unclear(format!("{path}: {what}"));
    if args.must_not_exist {
        // Somebody else's file may have the same content, and that is a different end.
        let absent = place.present()?.is_none();
        return Ok(match (unfinished, absent) {
            (true, true) => ProbeAnswer::NotLanded,
            (false, true) => unclear("there is no such file; it was never made, or somebody removed it"),
            (true | false, false) => unclear("there is such a file; whether this call made it cannot be seen"),
        });
    }
    if place.holds(content)? {
        let written = Written { path: path.to_string(), bytes: content.len() as u64, created: None };
        return Ok(serde_json::to_string(&written)
            .map_or_else(|error| ProbeAnswer::Unclear(error.to_string()), ProbeAnswer::Landed));
    }
    Ok(match unfinished {
        true => ProbeAnswer::NotLanded,
        false => unclear("it holds something else; it was never written, or somebody changed it since"),
    })
}
