//! `conv new|list|show|rename|archive|members|export|search|delete`.

use super::names::{self, all, short};
use super::part;
use super::reach::Reach;
use super::screen::Screen;
use super::send::again;
use super::works;
use crate::cli::ExportForm;
use crate::commands::{plain_table, table_text};
use crate::context::{Context, fresh_key};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_client::{Document, Window};
use loopd_fixture::excerpt;
use loopd_kernel::TimeMs;
use loopd_protocol::{
    ActorKey, ChangeConversation, Conversation, ConversationId, MemberChange, Message, NewConversation,
};
use std::collections::HashMap;

/// Messages that one look brings.
const PAGE: u32 = 200;

/// Opens a Conversation.
pub async fn new(
    context: &Context,
    reach: &Reach,
    (title, members, key): (String, Vec<ActorKey>, Option<String>),
    format: Format,
) -> Result<Exit, Problem> {
    let key = key.unwrap_or_else(|| fresh_key("new"));
    let new = NewConversation { title, members };
    let opened = again(async || reach.client.open(&key, &new).await).await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &opened)?,
        Format::Name => output::line(&opened.id.to_string())?,
        Format::Table => {
            output::line(&opened.id.to_string())?;
            if output::stdout_is_terminal() {
                let next = reach.command(&format!("conv send {} \"Hello\" --to harness/demo --wait", short(opened.id)));
                output::note(&context.paint_err.dim(format!("say something:  {next}")));
            }
        }
    }
    Ok(Exit::Completed)
}

/// Lists Conversations.
pub async fn list(
    context: &Context,
    reach: &Reach,
    (archived, limit): (bool, u32),
    format: Format,
) -> Result<Exit, Problem> {
    let most = limit as usize;
    let mut found = all(most + 1, async |part| reach.client.conversations(archived, &part).await).await?;
    let more = found.len() > most;
    found.truncate(most);
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(&one.id.to_string()))?,
        Format::Table if found.is_empty() => output::note("no conversations"),
        Format::Table => {
            let mut table = plain_table(["CONVERSATION", "TITLE", "MESSAGES", "LAST", "MEMBERS"]);
            for one in &found {
                table.add_row([
                    short(one.id),
                    excerpt::line(&one.title, 50),
                    words::count(one.last_seq),
                    words::ago(TimeMs(one.updated_at), context.now()),
                    excerpt::line(&members_of(one), 60),
                ]);
            }
            output::line(&table_text(&table))?;
            if more {
                output::note(&context.paint_err.dim(format!("there are more; --limit {}", limit.saturating_mul(5))));
            }
        }
    }
    Ok(Exit::Completed)
}

fn members_of(conversation: &Conversation) -> String {
    conversation.members.iter().map(ActorKey::as_str).collect::<Vec<_>>().join(", ")
}

/// Shows what was said: the last Messages, or all; and what was done for it.
pub async fn show(
    context: &Context,
    reach: &Reach,
    conv: &str,
    (last, work): (Option<u32>, bool),
    format: Format,
) -> Result<Exit, Problem> {
    let id = names::conversation(reach, conv).await?;
    let mut messages = said(reach, id, last).await?;
    let before = messages.first().map_or(0, |first| first.seq.saturating_sub(1));
    let mut calls = HashMap::new();
    if work {
        let since = messages.first().filter(|_| before > 0).map_or(i64::MIN, |first| first.created_at);
        let (done, made) = works::said(reach, id, since).await?;
        messages.extend(done);
        // One clock has written all of it; what was said here comes first.
        messages.sort_by_key(|message| message.created_at);
        calls = made;
    }
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &messages)?,
        Format::Name => messages.iter().try_for_each(|one| output::line(&one.id.to_string()))?,
        Format::Table => {
            let conversation = reach.client.conversation(id).await?;
            let mut screen = Screen::new(std::io::stdout(), context.paint, false).at(id);
            let title = excerpt::line(&conversation.title, 200);
            let title = if title.is_empty() { title } else { format!(" “{title}”") };
            screen.line(None, &format!("{}{title} with {}", short(id), members_of(&conversation)));
            if before > 0 {
                screen.line(None, &format!("{before} before; --all shows them"));
            }
            for message in &messages {
                if let Some(call) = calls.get(&message.id) {
                    let (tone, line) = part::called(call);
                    screen.beside(call.conversation, tone, &line);
                }
                screen.message(message);
            }
            if messages.is_empty() {
                output::note("nothing was said yet");
            }
        }
    }
    Ok(Exit::Completed)
}

/// Messages in their order, each with all its parts.
async fn said(reach: &Reach, id: ConversationId, last: Option<u32>) -> Result<Vec<Message>, Problem> {
    let client = &reach.client;
    let mut messages: Vec<Message> = Vec::new();
    let mut left = last;
    loop {
        let window = match (left, messages.first(), messages.last()) {
            (Some(_), Some(first), _) => Window::Before(first.seq),
            (Some(_), None, _) => Window::Latest,
            (None, _, last) => Window::After(last.map_or(0, |last| last.seq)),
        };
        let page = client.messages(id, window, left.unwrap_or(PAGE).min(PAGE)).await?;
        let count = u32::try_from(page.len()).unwrap_or(u32::MAX);
        match &mut left {
            Some(left) => {
                messages.splice(0..0, page);
                *left = left.saturating_sub(count);
            }
            None => messages.extend(page),
        }
        if count == 0 || left == Some(0) {
            break;
        }
    }
    for message in &mut messages {
        if message.block_count > message.blocks.len() as u64 {
            *message = client.message(message.id).await?;
        }
    }
    Ok(messages)
}

/// Gives it another title.
pub async fn rename(reach: &Reach, conv: &str, title: String, format: Format) -> Result<Exit, Problem> {
    let id = names::conversation(reach, conv).await?;
    let change = ChangeConversation { title: Some(title), archived: None };
    let now = reach.client.change(id, None, &change).await?;
    let said = format!("{} is “{}” now", short(id), excerpt::line(&now.title, 200));
    changed(&now, format, &said)
}

/// Puts it away, or takes it out again.
pub async fn archive(reach: &Reach, conv: &str, archived: bool, format: Format) -> Result<Exit, Problem> {
    let id = names::conversation(reach, conv).await?;
    let change = ChangeConversation { title: None, archived: Some(archived) };
    let now = reach.client.change(id, None, &change).await?;
    let said = match archived {
        true => {
            let undo = reach.command(&format!("conv archive {} --undo", short(id)));
            format!("{} is put away; take it out again with  {undo}", short(id))
        }
        false => format!("{} is in the list again", short(id)),
    };
    changed(&now, format, &said)
}

fn changed(now: &Conversation, format: Format, said: &str) -> Result<Exit, Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json(format, now)?,
        Format::Name => output::line(&now.id.to_string())?,
        Format::Table => output::note(said),
    }
    Ok(Exit::Completed)
}

/// Lists members, after adding and removing some.
pub async fn members(
    reach: &Reach,
    conv: &str,
    (add, remove): (Vec<ActorKey>, Vec<ActorKey>),
    format: Format,
) -> Result<Exit, Problem> {
    let id = names::conversation(reach, conv).await?;
    let now = if add.is_empty() && remove.is_empty() {
        reach.client.conversation(id).await?
    } else {
        reach.client.change_members(id, None, &MemberChange { add, remove }).await?
    };
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &now.members)?,
        Format::Name => now.members.iter().try_for_each(|member| output::line(member.as_str()))?,
        Format::Table => {
            for member in &now.members {
                let organiser = if *member == now.organiser { "  organiser" } else { "" };
                output::line(&format!("{member}{organiser}"))?;
            }
        }
    }
    Ok(Exit::Completed)
}

/// Writes everything as one document.
pub async fn export(reach: &Reach, conv: &str, form: ExportForm) -> Result<Exit, Problem> {
    let id = names::conversation(reach, conv).await?;
    let document = match form {
        ExportForm::Markdown => Document::Markdown,
        ExportForm::Json => Document::Json,
    };
    let text = reach.client.export(id, document).await?;
    // A file keeps every character; a terminal is not to be driven by what others wrote.
    let text = if output::stdout_is_terminal() { excerpt::lines(&text) } else { text };
    output::line(text.trim_end_matches('\n'))?;
    Ok(Exit::Completed)
}

/// Finds Messages.
pub async fn search(
    context: &Context,
    reach: &Reach,
    (text, within, limit): (&str, Option<&str>, u32),
    format: Format,
) -> Result<Exit, Problem> {
    let within = match within {
        Some(conv) => Some(names::conversation(reach, conv).await?),
        None => None,
    };
    let found = reach.client.search(text, within, Some(limit)).await?;
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(&one.id.to_string()))?,
        Format::Table if found.is_empty() => output::note("nothing was found"),
        Format::Table => {
            for message in &found {
                let place = format!("{}#{}", short(message.conversation), message.seq);
                let text = excerpt::line(&part::answer(message), 120);
                let ago = words::ago(TimeMs(message.created_at), context.now());
                output::line(&format!("{}  {} ({ago}): {text}", context.paint.dim(place), message.from))?;
            }
        }
    }
    Ok(Exit::Completed)
}

/// Deletes it, once somebody has said so twice.
pub async fn delete(reach: &Reach, conv: &str, yes: bool) -> Result<Exit, Problem> {
    if conv == "last" {
        return Err(Problem::new(Code::Usage, "`last` is not deleted")
            .why("which one is the last may have changed a moment ago")
            .fix("write its id; `loopctl conv list` has it"));
    }
    let id = names::conversation(reach, conv).await?;
    let conversation = reach.client.conversation(id).await?;
    if !yes {
        let title = excerpt::line(&conversation.title, 100);
        let count = words::plural(conversation.last_seq, "message", "messages");
        let what = format!("this would erase {} “{title}” with {count}, for good", short(id));
        let again = reach.command(&format!("conv delete {} --yes", short(id)));
        return Err(Problem::new(Code::Usage, what).fix(format!("say so:  {again}")));
    }
    reach.client.delete(id).await?;
    output::note(&format!("{} is erased", short(id)));
    Ok(Exit::Completed)
}
