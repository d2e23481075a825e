//! HTML as text for reading.

use super::fetch::error;
use loopd_runtime::ToolError;

/// Columns of a page.
const WIDTH: usize = 120;

/// Elements inside each other. The rendering takes more than linear time in it; pages have some dozens.
const MAX_DEPTH: usize = 200;

/// Elements whose ends are left out by those who may, and those that have none: their number says nothing of depth.
const FLAT: [&str; 31] = [
    "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup", "rt", "rp", "a", "html",
    "head", "body", "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// The text of a page, with its links numbered at the end.
pub(super) fn readable(html: &str) -> Result<String, ToolError> {
    let not_readable = |why: String| error("http.html", format!("the page cannot be made readable: {why}"));
    if depth(html) > MAX_DEPTH {
        return Err(not_readable(format!("it is nested more than {MAX_DEPTH} deep")));
    }
    html2text::config::plain()
        .allow_width_overflow()
        .string_from_read(html.as_bytes(), WIDTH)
        .map_err(|why| not_readable(why.to_string()))
}

/// How many elements are open at once at most, as far as tags say it: never less than a reader makes of them.
fn depth(html: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        let (end, rest) = tag.strip_prefix('/').map_or((false, tag), |rest| (true, rest));
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let name = rest.get(..length).unwrap_or_default();
        if name.is_empty() || FLAT.iter().any(|flat| flat.eq_ignore_ascii_case(name)) {
            continue;
        }
        open = if end { open.saturating_sub(1) } else { open + 1 };
        most = most.max(open);
    }
    most
}
