//! The answer: a part of a text, and what is known of the whole.

use super::body::{Fetched, Kind};
use super::fetch::{error, shown};
use super::html::readable;
use loopd_runtime::ToolError;
use serde::{Deserialize, Serialize};

/// Bytes of text of one answer.
const MAX_TEXT: usize = 64 * 1024;

/// The answer of `http_get`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Where it came from, after all redirects.
    pub url: String,
    /// The status. Only 200 to 299 is what was asked for; the text of another one says what is wrong.
    pub status: u16,
    /// The media type that the server said, without its parameters.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// The encoding, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charset: Option<String>,
    /// Bytes of the body that were read.
    pub bytes: u64,
    /// The text, or the part of it that was asked for.
    pub text: String,
    /// The text goes on; absent when it goes to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What else a reader has to know: a body that was too long, bytes that did not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Where a text was cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Bytes of text after this part.
    pub left_bytes: u64,
    /// The offset that goes on.
    pub next_offset: u64,
}

/// Makes the answer of a response.
pub(super) async fn make(fetched: Fetched, offset: u64) -> Result<Page, ToolError> {
    // HTML is somebody else's, and may take its time.
    let made = tokio::task::spawn_blocking(move || page(fetched, offset));
    made.await.map_err(|why| error("http.html", format!("the page cannot be made readable: {why}")))?
}

fn page(fetched: Fetched, offset: u64) -> Result<Page, ToolError> {
    let mut notes = Vec::new();
    if fetched.cut {
        let whole = fetched.length.map(|length| format!(" of {length}")).unwrap_or_default();
        notes.push(format!("the body was cut after {} bytes{whole}; what follows was not read", fetched.bytes.len()));
    }
    let (text, charset) = match fetched.kind() {
        Kind::Binary if (200..300).contains(&fetched.status) => return Err(not_text(&fetched)),
        Kind::Binary => {
            notes.push("the body is not text and is left out".into());
            (String::new(), None)
        }
        kind @ (Kind::Html | Kind::Text) => {
            let (text, encoding, odd) = fetched.decode();
            if text.contains('\0') {
                return Err(not_text(&fetched));
            }
            if odd {
                notes.push(format!("not all of it is {}; each wrong byte is \u{fffd}", encoding.name()));
            }
            let charset = (encoding != encoding_rs::UTF_8).then(|| encoding.name().to_owned());
            (if kind == Kind::Html { readable(&text)? } else { text }, charset)
        }
    };
    let (text, cut) = part(&text, offset)?;
    Ok(Page {
        url: fetched.url.to_string(),
        status: fetched.status,
        media: fetched.media.name,
        charset,
        bytes: fetched.bytes.len() as u64,
        text,
        cut,
        notes,
    })
}

fn not_text(fetched: &Fetched) -> ToolError {
    let media = fetched.media.name.as_deref().unwrap_or("without a type");
    let (read, length) = (fetched.bytes.len(), fetched.length);
    let size = match length {
        Some(length) => format!("{length} bytes"),
        None if fetched.cut => format!("more than {read} bytes"),
        None => format!("{read} bytes"),
    };
    let message =
        format!("{} is not text: {}, {size}, status {}", shown(fetched.url.as_str()), shown(media), fetched.status);
    error("http.not_text", message)
}

/// The part of the text from `offset` on, both ends moved to whole characters.
fn part(text: &str, offset: u64) -> Result<(String, Option<Cut>), ToolError> {
    let from = usize::try_from(offset)
        .ok()
        .filter(|from| *from <= text.len())
        .ok_or_else(|| error("http.past_end", format!("the text has {} bytes", text.len())))?;
    let from = text.floor_char_boundary(from);
    let to = text.floor_char_boundary(from.saturating_add(MAX_TEXT));
    let left = text.len() - to;
    let cut = (left > 0).then_some(Cut { left_bytes: left as u64, next_offset: to as u64 });
    Ok((text.get(from..to).unwrap_or_default().to_owned(), cut))
}
