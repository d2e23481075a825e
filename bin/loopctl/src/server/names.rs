//! What a person means: an id, the beginning of one, or `last`.

use super::reach::Reach;
use crate::problem::{Code, Problem};
use loopd_client::{Client, Part};
use loopd_fixture::excerpt;
use loopd_protocol::{
    Conversation, ConversationId, HarnessCall, HarnessCallId, Page, Question, QuestionId, Token, TokenId,
};
use std::fmt::Display;
use std::str::FromStr;

/// Items of one part of a list.
const PAGE: u32 = 200;

/// Conversations whose calls are looked through.
const PLACES: usize = 20;

/// Hexadecimal digits of an id as it is shown: enough to tell them apart, and enough to name one.
const SHOWN: usize = 4 + 14;

/// An id as it is shown.
pub fn short(id: impl Display) -> String {
    id.to_string().chars().take(SHOWN).collect()
}

/// Every item of a list that comes in parts, or the first so many.
pub async fn all<T>(
    most: usize,
    mut part: impl AsyncFnMut(Part) -> Result<Page<T>, loopd_client::Error>,
) -> Result<Vec<T>, Problem> {
    let mut items: Vec<T> = Vec::new();
    let mut cursor = None;
    while items.len() < most {
        let left = u32::try_from(most - items.len()).unwrap_or(PAGE).min(PAGE);
        let page = part(Part { cursor, limit: Some(left) }).await?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    items.truncate(most);
    Ok(items)
}

/// A kind of thing that has ids.
struct Kind {
    prefix: &'static str,
    one: &'static str,
    list: &'static str,
}

const CONVERSATION: Kind = Kind { prefix: "con_", one: "conversation", list: "conv list" };
const CALL: Kind = Kind { prefix: "hcl_", one: "call", list: "call list CONV" };
const QUESTION: Kind = Kind { prefix: "qst_", one: "open question", list: "ask list" };
const TOKEN: Kind = Kind { prefix: "tok_", one: "token", list: "token list" };

impl Kind {
    /// The whole id that was written, or the beginning of one.
    fn read<I: FromStr>(&self, text: &str) -> Result<Result<I, String>, Problem> {
        let digits = text.strip_prefix(self.prefix).unwrap_or(text).to_ascii_lowercase();
        if digits.is_empty() || digits.len() > 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let what = format!("`{}` is no {}", excerpt::line(text, 60), self.one);
            return Err(Problem::new(Code::ServerNotFound, what)
                .why(format!("it is named by its id, {}…, by the beginning of it, or by `last`", self.prefix))
                .fix(format!("list them with `loopctl {}`", self.list)));
        }
        let written = format!("{}{digits}", self.prefix);
        Ok(written.parse().map_err(|_| written))
    }

    fn none(&self, what: impl Into<String>) -> Problem {
        Problem::new(Code::ServerNotFound, what).fix(format!("list them with `loopctl {}`", self.list))
    }

    fn only<T>(&self, written: &str, items: Vec<T>, id: impl Fn(&T) -> String) -> Result<T, Problem> {
        let mut found: Vec<T> = items.into_iter().filter(|item| id(item).starts_with(written)).collect();
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                let ids: Vec<_> = found.iter().map(&id).take(7).chain([id(&last)]).collect();
                Err(Problem::new(Code::ServerAmbiguous, format!("several {}s begin with `{written}`", self.one))
                    .fix(format!("write more of it:\n{}", ids.join("\n"))))
            }
            (None, _) => Err(self.none(format!("no {} begins with `{written}`", self.one))),
        }
    }
}

async fn conversations(client: &Client, archived: bool) -> Result<Vec<Conversation>, Problem> {
    all(usize::MAX, async |part| client.conversations(archived, &part).await).await
}

/// The Conversation with this id, the one whose id begins like this, or the one where something happened last (`last`).
///
/// # Errors
/// [`Problem`] when there is none, or more than one.
pub async fn conversation(reach: &Reach, text: &str) -> Result<ConversationId, Problem> {
    let client = &reach.client;
    if text == "last" {
        let newest = client.conversations(false, &Part::first(1)).await?.items.into_iter().next();
        let none = || {
            let fix = reach.command("conv new \"First try\"");
            Problem::new(Code::ServerNotFound, "there are no conversations yet").fix(format!("open one:  {fix}"))
        };
        return Ok(newest.ok_or_else(none)?.id);
    }
    match CONVERSATION.read(text)? {
        Ok(id) => Ok(id),
        Err(written) => {
            let mut all = conversations(client, false).await?;
            all.extend(conversations(client, true).await?);
            Ok(CONVERSATION.only(&written, all, |one| one.id.to_string())?.id)
        }
    }
}

/// The call with this id; or the one whose id begins like this, or the newest (`last`), in the Conversations where
/// something happened lately.
///
/// # Errors
/// [`Problem`] when there is none, or more than one.
pub async fn call(reach: &Reach, text: &str) -> Result<HarnessCallId, Problem> {
    let client = &reach.client;
    let written = if text == "last" { None } else { Some(CALL.read(text)?) };
    if let Some(Ok(id)) = written {
        return Ok(id);
    }
    let mut calls: Vec<HarnessCall> = Vec::new();
    for place in all(PLACES, async |part| client.conversations(false, &part).await).await? {
        let most = if written.is_none() { 1 } else { usize::MAX };
        calls.extend(all(most, async |part| client.calls(place.id, &part).await).await?);
    }
    match written {
        Some(Err(written)) => Ok(CALL.only(&written, calls, |one| one.id.to_string())?.id),
        Some(Ok(id)) => Ok(id),
        None => {
            let newest = calls.into_iter().max_by_key(|call| (call.created_at, call.id));
            Ok(newest.ok_or_else(|| CALL.none("there are no calls yet"))?.id)
        }
    }
}

/// The Question with this id; or of the open ones the one whose id begins like this, or the newest (`last`).
///
/// # Errors
/// [`Problem`] when there is none, or more than one.
pub async fn question(reach: &Reach, text: &str) -> Result<QuestionId, Problem> {
    let open = async || all(usize::MAX, async |part| reach.client.questions(None, &part).await).await;
    if text == "last" {
        let newest = open().await?.into_iter().max_by_key(|question: &Question| (question.asked_at, question.id));
        return Ok(newest.ok_or_else(|| QUESTION.none("nothing is asked now"))?.id);
    }
    match QUESTION.read(text)? {
        Ok(id) => Ok(id),
        Err(written) => Ok(QUESTION.only(&written, open().await?, |one| one.id.to_string())?.id),
    }
}

/// The token with this id, or the one whose id begins like this.
///
/// # Errors
/// [`Problem`] when there is none, or more than one.
pub async fn token(reach: &Reach, text: &str) -> Result<TokenId, Problem> {
    match TOKEN.read(text)? {
        Ok(id) => Ok(id),
        Err(written) => {
            let tokens: Vec<Token> = all(usize::MAX, async |part| reach.client.tokens(&part).await).await?;
            Ok(TOKEN.only(&written, tokens, |one| one.id.to_string())?.id)
        }
    }
}
