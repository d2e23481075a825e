//! Which protocol a request speaks, and what it wants.

use super::journal::Wire;
use hyper::Method;
use hyper::header::HeaderMap;

/// What a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// That a model says something.
    Completion,
    Response,
    Message,
    Generate {
        model: String,
        stream: bool,
        events: bool,
    },
    /// A number of tokens.
    CountMessage,
    CountContents {
        model: String,
    },
    /// A response of before.
    Stored(String),
    /// The models, or one of them.
    Models,
    Model(String),
    /// This server itself.
    Journal,
    Calls,
    Open(String),
    /// Nothing that there is.
    Unknown,
    /// It is there, but not by this method.
    WrongMethod,
}

impl Wish {
    /// Whether it asks a model to say something.
    pub(super) const fn is_call(&self) -> bool {
        matches!(self, Self::Completion | Self::Response | Self::Message | Self::Generate { .. })
    }
}

/// The protocol and the wish of a request.
pub(super) fn route(method: &Method, path: &str, query: &str, headers: &HeaderMap) -> (Wire, Wish) {
    let path = path.trim_matches('/');
    let segments: Vec<&str> = path.split('/').collect();
    let (wire, wish) = match segments.as_slice() {
        ["_fake", "journal"] => (Wire::Completions, Wish::Journal),
        ["_fake", "calls"] => (Wire::Completions, Wish::Calls),
        ["_fake", "open", gate] => (Wire::Completions, Wish::Open((*gate).to_owned())),
        ["v1", "chat", "completions"] => (Wire::Completions, Wish::Completion),
        ["v1", "responses"] => (Wire::Responses, Wish::Response),
        ["v1", "responses", id] => (Wire::Responses, Wish::Stored((*id).to_owned())),
        ["v1", "messages"] => (Wire::Messages, Wish::Message),
        ["v1", "messages", "count_tokens"] => (Wire::Messages, Wish::CountMessage),
        ["v1" | "v1beta", "models", call] if call.contains(':') => (Wire::Gemini, generate(call, query)),
        [version @ ("v1" | "v1beta"), "models"] => (asker(version, query, headers), Wish::Models),
        [version @ ("v1" | "v1beta"), "models", id] => (asker(version, query, headers), Wish::Model((*id).to_owned())),
        ["v1beta", ..] => (Wire::Gemini, Wish::Unknown),
        _ => (asker("", query, headers), Wish::Unknown),
    };
    let reads = matches!(wish, Wish::Models | Wish::Model(_) | Wish::Stored(_) | Wish::Journal | Wish::Calls);
    let expected = if reads { Method::GET } else { Method::POST };
    if wish != Wish::Unknown && *method != expected {
        return (wire, Wish::WrongMethod);
    }
    (wire, wish)
}

fn generate(call: &str, query: &str) -> Wish {
    let Some((model, verb)) = call.split_once(':') else {
        return Wish::Unknown;
    };
    let model = model.to_owned();
    let events = query.split('&').any(|pair| pair == "alt=sse");
    match verb {
        "generateContent" => Wish::Generate { model, stream: false, events: false },
        "streamGenerateContent" => Wish::Generate { model, stream: true, events },
        "countTokens" => Wish::CountContents { model },
        _ => Wish::Unknown,
    }
}

/// Who asks, where several protocols have the same path.
fn asker(version: &str, query: &str, headers: &HeaderMap) -> Wire {
    if headers.contains_key("anthropic-version") {
        Wire::Messages
    } else if version == "v1beta"
        || headers.contains_key("x-goog-api-key")
        || headers.contains_key("x-goog-api-client")
        || query.split('&').any(|pair| pair.starts_with("key=") || pair.starts_with("pageSize="))
    {
        Wire::Gemini
    } else {
        Wire::Completions
    }
}
