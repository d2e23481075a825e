//! `conv send`: says something, once, and may wait for the answer.

use super::follow::Ear;
use super::names;
use super::reach::Reach;
use super::text_of;
use super::wait::{self, Awaited, Patience};
use super::works::Works;
use crate::attach;
use crate::cli::SendArgs;
use crate::context::{Context, fresh_key};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_client::{Error, Start};
use loopd_kernel::Digest;
use loopd_protocol::{Block, ConversationId, KnownBlock, Said, Say};
use std::path::Path;
use std::time::Duration;

/// Pauses between the tries of a request that may have been lost on its way.
const PAUSES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(900)];

/// Says something.
pub async fn send(context: &Context, reach: &Reach, args: SendArgs) -> Result<Exit, Problem> {
    let text = text_of(args.text, "message")?;
    let format = args.format.format;
    let conversation = names::conversation(reach, &args.conv).await?;
    let (given, key) = (args.key.is_some(), args.key.unwrap_or_else(|| fresh_key("send")));
    let mut blocks = vec![Block::Known(KnownBlock::Text { text })];
    for (number, file) in args.attach.iter().enumerate() {
        // Said again with the same key, it is about the same files.
        let key = Digest::sha256(&[key.as_bytes(), format!(" file {number}").as_bytes()]);
        blocks.push(attached(reach, conversation, &format!("file-{key}"), file).await?);
    }
    // Whoever waits listens first: an answer may be quick.
    let ear = if args.wait { Some(Ear::open(reach, conversation, Start::Now).await?) } else { None };
    let progress = args.wait && (args.progress || output::stderr_is_terminal());
    let mut works = if args.wait { Some(Works::open(reach, conversation, Start::Now).await?) } else { None };
    let say = Say { actor: None, to: args.to, reply_to: args.reply_to, blocks };
    let said = again(async || reach.client.say(conversation, &key, &say).await).await;
    let said = said.map_err(|problem| match (problem.code, given) {
        (Code::ServerUnreachable | Code::ServerBusy, false) => {
            problem.fix(format!("nobody knows whether it was said; with --key {key} it will be, once"))
        }
        _ => problem,
    })?;
    let Some(ear) = ear else { return told(&said, format) };
    let awaited = match said.calls.is_empty() {
        false => Awaited::Calls(said.calls),
        true if said.message.to.is_empty() => {
            output::note("it is said, and to nobody in particular: there is no answer to wait for");
            return Ok(Exit::Completed);
        }
        true => Awaited::Reply(said.message.to, said.message.seq),
    };
    if let Some(works) = &mut works {
        works.look().await?;
    }
    let patience = Patience { progress, works, ..Patience::new(args.timeout, format) };
    wait::wait(context, reach, (conversation, ear), awaited, patience).await
}

/// Sends a request that has a key, again where it may have been lost.
///
/// # Errors
/// [`Problem`]: the last one.
pub async fn again<T>(request: impl AsyncFn() -> Result<T, Error>) -> Result<T, Problem> {
    for pause in PAUSES {
        match request().await {
            Err(error) if error.is_retryable() => tokio::time::sleep(pause).await,
            other => return Ok(other?),
        }
    }
    Ok(request().await?)
}

fn told(said: &Said, format: Format) -> Result<Exit, Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json(format, said)?,
        Format::Table | Format::Name => output::line(&said.message.id.to_string())?,
    }
    if said.already {
        output::note("it had been said before, with this key");
    }
    Ok(Exit::Completed)
}

async fn attached(reach: &Reach, conversation: ConversationId, key: &str, file: &Path) -> Result<Block, Problem> {
    let wrong = |error| Problem::new(Code::File, format!("{}: {}", file.display(), words::os(&error)));
    let bytes = std::fs::read(file).map_err(wrong)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let media_type = attach::media_type(file, &bytes).unwrap_or("application/octet-stream");
    let attach = async || reach.client.attach(conversation, key, (&name, media_type), bytes.clone()).await;
    let artifact = again(attach).await?;
    let (name, media_type, bytes) = (artifact.name, artifact.media_type, artifact.bytes);
    Ok(Block::Known(KnownBlock::Artifact { artifact: artifact.id, name, media_type, bytes }))
}
