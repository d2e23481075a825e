//! Which server is meant, and with which token it is asked.
//!
//! A token goes to the server that it was given for: the owner's own, which lies in the folder of a server, only to the
//! server that has announced itself in that folder, and only on this machine.

use crate::cli::ServerArgs;
use crate::context::Context;
use crate::output;
use crate::place::{Place, shell};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_client::Client;
use loopd_fixture::excerpt;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What a running server tells of itself in its folder: `server.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Announced {
    address: String,
    pid: u32,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Where {
    address: String,
    /// The options that lead there again.
    options: String,
    /// A person named it; otherwise it runs on the folder of the store.
    pub named: bool,
}

/// A server, and how commands name it.
#[derive(Debug)]
pub struct Reach {
    /// Asks it.
    pub client: Client,
    /// The options that lead there again, besides those of the store.
    options: String,
    place: Place,
}

/// The folder that a server keeps beside this store.
fn folder(place: &Place) -> PathBuf {
    let folder = place.path().parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

fn announced(place: &Place) -> Option<Announced> {
    let text = std::fs::read(folder(place).join("server.json")).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The server that is meant, where there is one: that of --server or LOOPD_SERVER, or else the one that runs on the
/// folder of the store.
pub fn locate(place: &Place, args: &ServerArgs) -> Option<Where> {
    let token = args.token_file.as_ref().map(|file| format!(" --token-file {}", shell(&file.to_string_lossy())));
    let token = token.unwrap_or_default();
    if let Some(address) = args.server.clone().filter(|address| !address.trim().is_empty()) {
        let from_env = std::env::var("LOOPD_SERVER").is_ok_and(|value| value == address);
        let option = if from_env { String::new() } else { format!(" --server {}", shell(&address)) };
        return Some(Where { address, options: option + &token, named: true });
    }
    // What a server that was killed left behind leads to whoever has its port now.
    let running = announced(place).filter(|running| place.driver_process() == Some(running.pid))?;
    Some(Where { address: running.address, options: token, named: false })
}

impl Reach {
    /// The server that is meant.
    ///
    /// # Errors
    /// [`Problem`] when there is none, or no token for it. Nothing is sent.
    pub fn new(context: &Context, args: &ServerArgs) -> Result<Self, Problem> {
        let found = locate(&context.place, args).ok_or_else(|| none(&context.place))?;
        Self::at(&context.place, found, args)
    }

    /// The server there.
    ///
    /// # Errors
    /// As [`Reach::new`].
    pub fn at(place: &Place, found: Where, args: &ServerArgs) -> Result<Self, Problem> {
        let bare = Client::new(&found.address, None)?;
        let token = match given(args)? {
            Some(token) => {
                let server = bare.server();
                if !bare.is_local() && server.starts_with("http:") {
                    output::note(&format!("warning: the token goes to {server} unencrypted; https:// would hide it"));
                }
                token
            }
            None => own(place, &bare)?,
        };
        let client = Client::new(&found.address, Some(&token))?;
        Ok(Self { client, options: found.options, place: place.clone() })
    }

    /// A command of this program for this server, ready to be copied.
    pub fn command(&self, words: &str) -> String {
        self.place.command(words) + &self.options
    }
}

fn none(place: &Place) -> Problem {
    let folder = folder(place).display().to_string();
    let fix = "start one with `loopd up`, or name one with --server URL or LOOPD_SERVER";
    let problem = Problem::new(Code::ServerUnreachable, format!("no server runs on {folder}"));
    match announced(place) {
        Some(gone) => {
            let address = excerpt::line(&gone.address, 80);
            problem.why(format!("the last one, process {} at {address}, ended without a word", gone.pid)).fix(fix)
        }
        None => problem.fix(fix),
    }
}

/// The token that a person gave for this command.
fn given(args: &ServerArgs) -> Result<Option<String>, Problem> {
    let text = match &args.token_file {
        Some(file) => {
            let wrong = |error| Problem::new(Code::File, format!("{}: {}", file.display(), words::os(&error)));
            Some(std::fs::read_to_string(file).map_err(wrong)?)
        }
        None => std::env::var("LOOPD_TOKEN").ok(),
    };
    let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if text.is_none() && args.token_file.is_some() {
        return Err(Problem::new(Code::ServerToken, "the file of --token-file holds no token"));
    }
    Ok(text)
}

/// The owner's own token, if this is the server that it is for.
fn own(place: &Place, server: &Client) -> Result<String, Problem> {
    let folder = folder(place);
    let file = folder.join("admin.token");
    let problem = || Problem::new(Code::ServerToken, format!("there is no token for {}", server.server()));
    let fix = "name a file with one with --token-file, or put it into LOOPD_TOKEN";
    // Whoever has the port of a server that was killed is not that server.
    let is_its_own =
        announced(place).is_some_and(|own| own.address == server.server() && place.driver_process() == Some(own.pid));
    if !server.is_local() || !is_its_own {
        let why = format!("{} goes only to the server that runs on this folder", file.display());
        return Err(if file.exists() { problem().why(why).fix(fix) } else { problem().fix(fix) });
    }
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|error| problem().why(format!("{}: {}", file.display(), words::os(&error))).fix(fix))?;
    Ok(text.trim().to_owned())
}
