//! A body: at most so many bytes of it, and what they are.

use super::fetch::{because, error, shown};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use loopd_runtime::ToolError;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Response, Url};

/// Bytes of HTML in which it says its own encoding.
const HTML_HEAD: usize = 1024;

/// A response that is no redirect, as bytes.
pub(super) struct Fetched {
    pub(super) url: Url,
    pub(super) status: u16,
    pub(super) media: Media,
    pub(super) bytes: Vec<u8>,
    /// There was more than may be read.
    pub(super) cut: bool,
    /// How long the server said that it is.
    pub(super) length: Option<u64>,
}

/// A media type without its parameters, in lower case, and the encoding that it names.
pub(super) struct Media {
    pub(super) name: Option<String>,
    charset: Option<&'static Encoding>,
}

/// What to make of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Html,
    Text,
    Binary,
}

/// Reads at most `max` bytes.
pub(super) async fn read(url: Url, mut response: Response, max: u64) -> Result<Fetched, ToolError> {
    let status = response.status().as_u16();
    let packed =
        response.headers().get(CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    if let Some(packed) = packed.filter(|packed| !packed.eq_ignore_ascii_case("identity")) {
        let message = format!("{} sends `{}`, though it was not asked for", shown(url.as_str()), shown(&packed));
        return Err(error("http.encoding", message));
    }
    let (media, length) = (Media::of(response.headers()), response.content_length());
    let (mut bytes, mut cut) = (Vec::new(), false);
    loop {
        let chunk = response.chunk().await.map_err(|why| {
            let message = format!("{} broke off after {} bytes: {}", shown(url.as_str()), bytes.len(), because(&why));
            error("http.broke_off", message)
        })?;
        let Some(chunk) = chunk else { break };
        let room = usize::try_from(max).unwrap_or(usize::MAX) - bytes.len();
        bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Fetched { url, status, media, bytes, cut, length })
}

impl Media {
    fn of(headers: &HeaderMap) -> Self {
        let Some(text) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
            return Self { name: None, charset: None };
        };
        let mut parts = text.split(';');
        let name = parts.next().map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty());
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            let named = key.trim().eq_ignore_ascii_case("charset");
            named.then(|| Encoding::for_label(value.trim().trim_matches('"').as_bytes())).flatten()
        });
        Self { name, charset }
    }
}

impl Fetched {
    /// What the body is: by its type, and without one by its first bytes.
    pub(super) fn kind(&self) -> Kind {
        let is_text = |name: &str| {
            name.starts_with("text/")
                || name.ends_with("+json")
                || name.ends_with("+xml")
                || matches!(
                    name,
                    "application/json"
                        | "application/xml"
                        | "application/javascript"
                        | "application/x-javascript"
                        | "application/x-ndjson"
                        | "application/jsonl"
                        | "application/yaml"
                        | "application/x-yaml"
                        | "application/toml"
                        | "application/x-sh"
                )
        };
        match self.media.name.as_deref() {
            Some("text/html" | "application/xhtml+xml") => Kind::Html,
            Some(name) if is_text(name) => Kind::Text,
            Some(_) => Kind::Binary,
            None if self.bytes.contains(&0) => Kind::Binary,
            None => {
                let begins = self.bytes.trim_ascii_start().get(..9).unwrap_or_default().to_ascii_lowercase();
                if begins.starts_with(b"<!doctype") || begins.starts_with(b"<html") { Kind::Html } else { Kind::Text }
            }
        }
    }

    /// The body as text, its encoding, and whether something did not read in it.
    pub(super) fn decode(&self) -> (String, &'static Encoding, bool) {
        let (encoding, mark) = match Encoding::for_bom(&self.bytes) {
            Some(found) => found,
            None => (self.media.charset.or_else(|| self.own_charset()).unwrap_or_else(|| self.guess()), 0),
        };
        let bytes = self.bytes.get(mark..).unwrap_or_default();
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
        // Of a cut body the end may be half a character, which is nobody's mistake.
        let (_, _, odd) = decoder.decode_to_string(bytes, &mut text, !self.cut);
        (text, encoding, odd)
    }

    /// What HTML says of itself.
    fn own_charset(&self) -> Option<&'static Encoding> {
        if self.kind() != Kind::Html {
            return None;
        }
        let head = self.bytes.get(..HTML_HEAD).unwrap_or(&self.bytes).to_ascii_lowercase();
        let head = String::from_utf8_lossy(&head);
        let mut rest = head.split("<meta").skip(1).filter_map(|tag| tag.split('>').next());
        rest.find_map(|tag| {
            let value = tag.split_once("charset")?.1.trim_start().strip_prefix('=')?.trim_start();
            let value = value.trim_start_matches(['"', '\'']);
            let label = value.split(|c: char| c.is_whitespace() || ['"', '\'', ';', '/'].contains(&c)).next()?;
            // A page that reads as far as here is not UTF-16, whatever it says.
            Encoding::for_label(label.as_bytes()).map(Encoding::output_encoding)
        })
    }

    fn guess(&self) -> &'static Encoding {
        let utf8 = match std::str::from_utf8(&self.bytes) {
            Ok(_) => true,
            Err(error) => self.cut && error.error_len().is_none(),
        };
        if utf8 || self.kind() != Kind::Html { UTF_8 } else { WINDOWS_1252 }
    }
}
