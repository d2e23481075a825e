//! What models this machine offers: keys in the environment, and servers on the usual ports. No secret is read out, and
//! nothing is sent to any other machine.

use crate::obstacle::{Kind, Obstacle};
use loopd_fixture::excerpt;
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Variables in which keys of providers usually are.
pub const KEYS: [&str; 6] =
    ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY"];

/// The providers whose key alone is enough, in the order in which they are taken, with their variable and the model that
/// is used where nobody named one.
pub const PROVIDERS: [(&str, &str, &str); 3] = [
    ("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-5"),
    ("openai", "OPENAI_API_KEY", "gpt-5-mini"),
    ("gemini", "GEMINI_API_KEY", "gemini-2.5-flash"),
];

/// Where servers with OpenAI's interface usually listen, and which.
pub const PORTS: [(u16, &str); 4] = [(11434, "ollama"), (8000, "vllm"), (1234, "LM Studio"), (8080, "llama.cpp")];

/// How long a server on this machine may take.
const PATIENCE: Duration = Duration::from_millis(400);

/// Bytes of an answer that are read.
const ANSWER: u64 = 256 * 1024;

/// A server with OpenAI's interface on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// Its port.
    pub port: u16,
    /// Which one usually listens there.
    pub who: &'static str,
    /// The models that it lists.
    pub models: Vec<String>,
}

impl LocalServer {
    /// Where its interface is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// The servers that answer on the usual ports now.
pub async fn local_servers() -> Vec<LocalServer> {
    let mut asked = JoinSet::new();
    for (port, who) in PORTS {
        asked.spawn(async move {
            let models = tokio::time::timeout(PATIENCE, models(port)).await.ok().flatten()?;
            Some(LocalServer { port, who, models })
        });
    }
    let mut found: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|server| PORTS.iter().position(|(port, _)| *port == server.port));
    found
}

/// The models that a server on this machine lists; `None` when it is no such server.
async fn models(port: u16) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER).read_to_end(&mut answer).await.ok()?;
    listed(&String::from_utf8_lossy(&answer))
}

fn listed(answer: &str) -> Option<Vec<String>> {
    let body = answer.split_once("\r\n\r\n")?.1;
    let json = body.get(body.find('{')?..=body.rfind('}')?)?;
    let listed: Value = serde_json::from_str(json).ok()?;
    let models = listed.get("data")?.as_array()?.iter();
    Some(models.filter_map(|model| model.get("id")?.as_str()).map(str::to_owned).collect())
}

/// Which model is wished for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wish {
    /// A provider whose key is in the environment, else a server on this machine, else none.
    #[default]
    Any,
    /// None: the demo model.
    Demo,
    /// That of a provider; without a name its usual one.
    Provider(&'static str, Option<String>),
    /// One of a server on this machine; without a name its first.
    Local(Option<String>),
}

impl Wish {
    /// Whether a server on this machine may be the answer.
    #[must_use]
    pub const fn looks_around(&self) -> bool {
        matches!(self, Self::Any | Self::Local(_))
    }
}

impl FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, name) = text.split_once('/').map_or((text, None), |(from, name)| (from, Some(name)));
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        match (from, PROVIDERS.iter().find(|(provider, ..)| *provider == from)) {
            ("any", _) if name.is_none() => Ok(Self::Any),
            ("demo", _) if name.is_none() => Ok(Self::Demo),
            ("local", _) => Ok(Self::Local(name)),
            (_, Some((provider, ..))) => Ok(Self::Provider(provider, name)),
            _ => {
                Err("write anthropic, openai, gemini or local, each with /NAME where you want a certain model; or demo"
                    .to_owned())
            }
        }
    }
}

/// A model that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// It, as `spec.model` of a manifest.
    pub model: Value,
    /// Whether using it costs money.
    pub costs: bool,
    /// What it is and why it was chosen, in a few words.
    pub told: String,
}

/// The model that fits the wish; `None` is the demo model.
///
/// # Errors
/// [`Obstacle`] when something was named that is not there.
pub fn choose(wish: &Wish, is_set: &dyn Fn(&str) -> bool, servers: &[LocalServer]) -> Result<Option<Choice>, Obstacle> {
    let by_key = || PROVIDERS.iter().find(|(_, variable, _)| is_set(variable));
    match wish {
        Wish::Demo => Ok(None),
        Wish::Any => Ok(by_key().map(|known| of_provider(known, None)).or_else(|| of_server(servers, None))),
        Wish::Provider(name, model) => {
            let known = PROVIDERS.iter().find(|(provider, ..)| provider == name);
            let Some(known) = known else { return Ok(None) };
            if !is_set(known.1) {
                return Err(Obstacle::new(
                    Kind::Key,
                    format!("{name} needs a key: the variable {} is not set", known.1),
                )
                .fix(format!("export {}=…  and start again", known.1)));
            }
            Ok(Some(of_provider(known, model.as_deref())))
        }
        Wish::Local(model) => of_server(servers, model.as_deref()).map(Some).ok_or_else(|| {
            let ports: Vec<_> = PORTS.iter().map(|(port, who)| format!("{port} ({who})")).collect();
            let what = match model {
                Some(model) => format!("no server on this machine lists a model `{}`", excerpt::line(model, 80)),
                None => "no server on this machine lists a model".to_owned(),
            };
            Obstacle::new(Kind::Model, what).why(format!("looked at were the ports {}", ports.join(", ")))
        }),
    }
}

fn of_provider((provider, variable, usual): &(&str, &str, &str), model: Option<&str>) -> Choice {
    let name = model.unwrap_or(usual);
    Choice {
        model: json!({"provider": provider, "name": name, "apiKeyEnv": variable}),
        costs: true,
        told: format!("{provider}/{}, because {variable} is set", excerpt::line(name, 80)),
    }
}

fn of_server(servers: &[LocalServer], model: Option<&str>) -> Option<Choice> {
    // What makes vectors of texts answers no question.
    let fits = |id: &&String| model.map_or_else(|| !id.to_lowercase().contains("embed"), |model| model == id.as_str());
    let (server, name) = servers.iter().find_map(|server| Some((server, server.models.iter().find(fits)?)))?;
    Some(Choice {
        model: json!({"provider": "openai", "name": name, "baseUrl": server.url()}),
        costs: false,
        told: format!("{}, served on this machine at {}", excerpt::line(name, 80), server.url()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopd_providers::Catalogue;

    #[track_caller]
    fn check(wish: &str, set: &[&str], servers: &[(u16, &[&str])], expected: &str) {
        let server = |(port, models): &(u16, &[&str])| LocalServer {
            port: *port,
            who: "any",
            models: models.iter().map(|id| (*id).to_owned()).collect(),
        };
        let servers: Vec<_> = servers.iter().map(server).collect();
        let wish = wish.parse::<Wish>();
        let chosen = wish.map(|wish| choose(&wish, &|name| set.contains(&name), &servers));
        let said = match chosen {
            Err(error) => error,
            Ok(Err(obstacle)) => obstacle.what,
            Ok(Ok(None)) => "demo".to_owned(),
            Ok(Ok(Some(choice))) => choice.told,
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn the_model_that_fits_is_chosen() {
        let ollama: (u16, &[&str]) = (11434, &["nomic-embed-text", "qwen3:4b"]);
        check("any", &[], &[], "demo");
        check("any", &["OPENAI_API_KEY"], &[ollama], "openai/gpt-5-mini, because OPENAI_API_KEY is set");
        check(
            "any",
            &["GROQ_API_KEY"],
            &[(8000, &[]), ollama],
            "qwen3:4b, served on this machine at http://127.0.0.1:11434/v1",
        );
        check("local", &["OPENAI_API_KEY"], &[ollama], "qwen3:4b, served on this machine at http://127.0.0.1:11434/v1");
        check(
            "local/nomic-embed-text",
            &[],
            &[ollama],
            "nomic-embed-text, served on this machine at http://127.0.0.1:11434/v1",
        );
        check("local/other", &[], &[ollama], "no server on this machine lists a model `other`");
        check("demo", &["OPENAI_API_KEY"], &[ollama], "demo");
        check("gemini/g", &["GEMINI_API_KEY"], &[], "gemini/g, because GEMINI_API_KEY is set");
        check("gemini", &[], &[], "gemini needs a key: the variable GEMINI_API_KEY is not set");
        check(
            "gpt-5",
            &[],
            &[],
            "write anthropic, openai, gemini or local, each with /NAME where you want a certain model; or demo",
        );
    }

    #[test]
    fn the_usual_models_have_a_known_price() {
        for (provider, _, name) in PROVIDERS {
            let model = json!({"provider": provider, "name": name});
            let spec: loopd_agent::manifest::Model = serde_json::from_value(model).unwrap();
            let facts = crate::models::facts(&spec, &Catalogue::default()).unwrap();
            assert!(facts.price.is_some(), "{provider}/{name}");
        }
    }

    #[test]
    fn what_is_no_list_of_models_is_none() {
        assert_eq!(listed("HTTP/1.0 200 OK\r\n\r\n{\"data\":[{\"id\":\"a\"},{\"x\":1}]}"), Some(vec!["a".to_owned()]));
        assert_eq!(listed("HTTP/1.0 200 OK\r\n\r\n{\"data\":7}"), None);
        assert_eq!(listed("HTTP/1.0 404 Not Found\r\n\r\n<html>"), None);
        assert_eq!(listed(""), None);
    }
}
