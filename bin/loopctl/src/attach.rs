//! Files that come with a question.

use crate::problem::{Code, Problem};
use crate::words;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loopd_kernel::model::{Attachment, Message};
use std::path::{Path, PathBuf};

/// All files of one question together, in bytes: what providers take at most, and what a journal can hold.
const MOST: u64 = 10 * 1024 * 1024;

/// Media types by the ending of a file's name.
const TYPES: [(&str, &str); 20] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("pdf", "application/pdf"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mp3"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("mp4", "video/mp4"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("csv", "text/csv"),
    ("md", "text/markdown"),
];

/// The input of a Run that says `text` and brings `files`, as JSON text.
///
/// # Errors
/// [`Problem`] when a file does not read, is of no type that a model takes, or all are too large together.
pub fn message(text: &str, files: &[PathBuf]) -> Result<String, Problem> {
    let mut left = MOST;
    let attachments = files.iter().map(|file| attachment(file, &mut left)).collect::<Result<_, _>>()?;
    let message = Message::User { text: text.into(), attachments };
    serde_json::to_string(&message).map_err(|error| Problem::new(Code::Input, error.to_string()))
}

/// The input of a Run as people read it: a text is what it says, and files stand behind it by their names.
pub fn asked(input: &str) -> String {
    if let Ok(text) = serde_json::from_str::<String>(input) {
        return text;
    }
    match serde_json::from_str(input) {
        Ok(Message::User { text, attachments }) if !attachments.is_empty() => {
            let names = attachments.iter().map(|file| file.name.as_deref().unwrap_or(&file.media_type));
            format!("{text} + {}", names.collect::<Vec<_>>().join(", "))
        }
        Ok(Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. }) | Err(_) => input.into(),
    }
}

fn attachment(file: &Path, left: &mut u64) -> Result<Attachment, Problem> {
    let wrong = |why: &str| Problem::new(Code::Input, format!("{}: {why}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| wrong(&words::os(&error)))?.len();
    let Some(rest) = left.checked_sub(size) else {
        let most = words::bytes(usize::try_from(MOST).unwrap_or(usize::MAX));
        return Err(wrong(&format!("the attached files hold more than {most} together"))
            .fix("attach smaller files, or let the agent read them with the tool `files`"));
    };
    *left = rest;
    let bytes = std::fs::read(file).map_err(|error| wrong(&words::os(&error)))?;
    let media_type = media_type(file, &bytes).ok_or_else(|| {
        wrong("nobody knows what kind of file this is")
            .why("it is no text, and its ending is that of no image, document or recording which models take")
    })?;
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Attachment { media_type: media_type.into(), name, data: STANDARD.encode(bytes) })
}

/// The media type of a file, by its name and by what is in it.
pub fn media_type(file: &Path, bytes: &[u8]) -> Option<&'static str> {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let known = TYPES.iter().find(|(known, _)| *known == ending).map(|(_, media_type)| *media_type);
    known.or_else(|| std::str::from_utf8(bytes).is_ok().then_some("text/plain"))
}
