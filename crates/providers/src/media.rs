//! What comes with a message, sorted by how a model can take it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loopd_kernel::model::Attachment;

/// One attachment, as an adapter has to say it.
pub(crate) enum Media<'a> {
    /// A picture of a type that the adapter takes.
    Image(&'a Attachment),
    /// A file of a type that the adapter takes.
    File(&'a Attachment),
    /// Text, or the words that stand for what this model cannot take: nothing is left out silently.
    Text(String),
}

/// Sorts `attachment`. `images` and `files` are the media types that the adapter takes as such.
pub(crate) fn media<'a>(attachment: &'a Attachment, images: &[&str], files: &[&str]) -> Media<'a> {
    let kind = attachment.media_type.as_str();
    let takes = |list: &[&str]| list.contains(&kind);
    if takes(images) {
        return Media::Image(attachment);
    }
    if takes(files) {
        return Media::File(attachment);
    }
    let name = name(attachment);
    match text(attachment) {
        Some(text) => Media::Text(format!("File {name}:\n{text}")),
        None => {
            Media::Text(format!("[The file {name} of type {kind} came with this message; it cannot be shown here.]"))
        }
    }
}

/// Its name, or a name for it.
pub(crate) fn name(attachment: &Attachment) -> &str {
    attachment.name.as_deref().unwrap_or("without a name")
}

/// The bytes as a URL.
pub(crate) fn data_url(attachment: &Attachment) -> String {
    format!("data:{};base64,{}", attachment.media_type, attachment.data)
}

/// The text of an attachment that is text.
fn text(attachment: &Attachment) -> Option<String> {
    let kind = attachment.media_type.as_str();
    let is_text = kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(kind, "application/json" | "application/xml" | "application/yaml" | "application/toml");
    let bytes = STANDARD.decode(&attachment.data).ok().filter(|_| is_text)?;
    String::from_utf8(bytes).ok()
}
