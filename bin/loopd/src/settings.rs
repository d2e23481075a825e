//! What the server is told: options go before the environment, and that before the file.

use crate::cli::{DEFAULT_DATA, ServeArgs};
use crate::limits::Limits;
use crate::router::RouterSettings;
use crate::trouble::{Exit, Trouble};
use loopd_assemble::words;
use loopd_protocol::{ActorKey, ActorKind};
use loopd_server::ServerConfig;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The port that nobody has to know.
const PORT: u16 = 7717;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where to listen.
    pub addr: SocketAddr,
    /// The folder for everything that is kept.
    pub data: PathBuf,
    /// The folder of agents.
    pub agents: Option<PathBuf>,
    /// Who owns this server.
    pub person: ActorKey,
    /// Names under which it is reached besides those of loopback.
    pub hosts: Vec<String>,
    /// Calls that execute at once.
    pub slots: Option<u32>,
    /// Calls that wait.
    pub queue: Option<u32>,
    /// The file with facts about models.
    pub models: Option<PathBuf>,
    /// Whether the demo agent is there.
    pub demo: bool,
    /// Origins of pages that may send requests besides the server's own.
    pub origins: Vec<String>,
    /// Whether `/metrics` wants a token of an admin.
    pub private_metrics: bool,
    /// What is too much.
    pub limits: Limits,
    /// How the Router works.
    pub router: RouterSettings,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct File {
    addr: Option<SocketAddr>,
    data: Option<PathBuf>,
    agents: Option<PathBuf>,
    person: Option<String>,
    allow_hosts: Vec<String>,
    slots: Option<u32>,
    queue: Option<u32>,
    models: Option<PathBuf>,
    demo: Option<bool>,
    origins: Vec<String>,
    private_metrics: bool,
    limits: Limits,
    router: RouterSettings,
}

/// How the Router works, as a file says.
///
/// # Errors
/// [`Trouble`] when the file does not read.
pub fn router(path: Option<&Path>) -> Result<RouterSettings, Trouble> {
    Ok(path.map(file).transpose()?.unwrap_or_default().router)
}

impl Settings {
    /// The platform's configuration.
    pub fn platform(&self) -> loopd_platform::Config {
        let usual = loopd_platform::Config::default();
        let (slots, queue) = (self.slots.unwrap_or(usual.slots), self.queue.unwrap_or(usual.queue));
        self.limits.platform(loopd_platform::Config { slots, queue, ..usual })
    }

    /// The server's configuration.
    ///
    /// # Errors
    /// [`Trouble`] when this machine gives no random bytes.
    pub fn server(&self, instance: [u8; 16]) -> Result<ServerConfig, Trouble> {
        let usual = ServerConfig::new(instance);
        let usual = usual.map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
        Ok(ServerConfig {
            person: self.person.clone(),
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
            private_metrics: self.private_metrics,
            limits: self.limits.server(&usual.limits),
            ..usual
        })
    }
}

/// Puts the settings together.
///
/// # Errors
/// [`Trouble`] when the file does not read, or the settings contradict each other.
pub fn read(args: ServeArgs) -> Result<Settings, Trouble> {
    let file = args.config.as_deref().map(file).transpose()?.unwrap_or_default();
    let person = args.person.or(file.person).unwrap_or_else(|| "me".to_owned());
    let person = ActorKey::new(ActorKind::Person, person.strip_prefix("person/").unwrap_or(&person))
        .map_err(|error| Trouble::new(Exit::Usage, format!("person `{person}`: {error}")))?;
    let settings = Settings {
        addr: args.addr.or(file.addr).unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))),
        data: args.data.or(file.data).unwrap_or_else(|| PathBuf::from(DEFAULT_DATA)),
        agents: args.agents.or(file.agents),
        person,
        hosts: if args.allow_host.is_empty() { file.allow_hosts } else { args.allow_host },
        slots: args.slots.or(file.slots),
        queue: args.queue.or(file.queue),
        // A variable that is set to nothing names no file.
        models: args.models.or(file.models).filter(|file| !file.as_os_str().is_empty()),
        demo: !args.no_demo && file.demo.unwrap_or(true),
        origins: file.origins,
        private_metrics: file.private_metrics,
        limits: file.limits,
        router: file.router,
    };
    if !settings.addr.ip().is_loopback() && settings.hosts.is_empty() {
        return Err(Trouble::new(Exit::Usage, format!("{} is reached from other machines", settings.addr))
            .why("requests are taken only under names that were named, and the connection is not encrypted")
            .fix("name the server with --allow-host NAME and put a proxy with TLS before it, or listen on 127.0.0.1"));
    }
    if settings.slots == Some(0) {
        return Err(Trouble::new(Exit::Usage, "slots: at least one call has to execute"));
    }
    Ok(settings)
}

/// Paths in the file are taken from its folder.
fn file(path: &Path) -> Result<File, Trouble> {
    let wrong = |why: String| Trouble::new(Exit::Usage, format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(words::os(&error)))?;
    let read: File = toml::from_str(&text).map_err(|error| {
        let line = error.span().map(|span| 1 + text.get(..span.start).unwrap_or_default().matches('\n').count());
        wrong(line.map_or_else(|| error.message().to_owned(), |line| format!("line {line}: {}", error.message())))
            .fix("`loopd serve --help` names what may be set")
    })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let below = |named: Option<PathBuf>| named.map(|named| folder.join(named));
    let (data, agents, models) = (below(read.data), below(read.agents), below(read.models));
    Ok(File { data, agents, models, router: read.router.below(folder), ..read })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, args: ServeArgs) -> Result<Settings, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("loopd.toml");
        std::fs::write(&path, text).expect("written");
        let args = ServeArgs { config: Some(path), ..args };
        let shown = folder.path().display().to_string();
        let relative = |named: PathBuf| named.strip_prefix(folder.path()).map(Path::to_path_buf).unwrap_or(named);
        read(args)
            .map(|read| Settings { data: relative(read.data), agents: read.agents.map(relative), ..read })
            .map_err(|trouble| trouble.to_string().replace(&shown, "DIR"))
    }

    #[test]
    fn options_go_before_the_file_and_the_file_before_what_is_usual() {
        let text = "addr = \"127.0.0.1:1\"\ndata = \"kept\"\nagents = \"agents\"\nperson = \"ann\"\nslots = 3\ndemo = false\n\
                    private-metrics = true\n[limits]\nfeeds = 7\n[router]\ntokens = 9000";
        let args = ServeArgs { slots: Some(9), data: Some("else".into()), ..ServeArgs::default() };
        let expected = Settings {
            addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            data: "else".into(),
            agents: Some("agents".into()),
            person: "person/ann".parse().expect("an actor"),
            hosts: Vec::new(),
            slots: Some(9),
            queue: None,
            models: None,
            demo: false,
            origins: Vec::new(),
            private_metrics: true,
            limits: toml::from_str("feeds = 7").expect("limits"),
            router: toml::from_str("tokens = 9000").expect("settings"),
        };
        assert_eq!(with(text, args), Ok(expected));
        let usual = read(ServeArgs::default()).expect("the usual");
        assert_eq!((usual.addr.port(), usual.data, usual.demo), (PORT, DEFAULT_DATA.into(), true));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |text: &str| with(text, ServeArgs::default()).unwrap_err();
        assert!(said("slots = 1\nports = 2").starts_with("loopd: DIR/loopd.toml: line 2: unknown field `ports`"));
        assert!(said("person = \"A B\"").starts_with("loopd: person `A B`: an actor is written"));
        assert!(said("addr = \"0.0.0.0:1\"").contains("is reached from other machines"));
        assert!(with("addr = \"0.0.0.0:1\"\nallow-hosts = [\"a.example\"]", ServeArgs::default()).is_ok());
        assert!(said("slots = 0").contains("at least one call"));
        assert!(said("[limits]\n\nfeed = 1").contains("line 3: unknown field `feed`"));
        assert!(said("[limits]\nfeeds = 0").contains("line 2: invalid value: integer `0`"));
    }
}
