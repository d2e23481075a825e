//! Finding and exporting.

use crate::messages::Window;
use crate::rows::{body, named};
use crate::{Caller, Error, Platform};
use loopd_protocol::{Block, QuestionStatus};
use loopd_protocol::{Conversation, ConversationId, HarnessCall, KnownBlock, Message, Question};
use loopd_store::{List, Query, RecordId, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// Conversations of one Actor that are searched.
const SEARCHED: usize = 10_000;

/// A whole Conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Exported {
    /// What it says of itself.
    pub conversation: Conversation,
    /// Everything that was said, in order.
    pub messages: Vec<Message>,
    /// Everything that was asked.
    pub questions: Vec<Question>,
    /// Everything that was called.
    pub calls: Vec<HarnessCall>,
}

impl Platform {
    /// Messages that hold all words, as many as a list may have bytes, the latest first within what is searched: one Conversation, or all of the caller.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] without a word.
    pub async fn search(
        &self,
        by: &Caller,
        text: &str,
        within: Option<ConversationId>,
        limit: usize,
    ) -> Result<Vec<Message>, Error> {
        if !text.chars().any(char::is_alphanumeric) || text.len() > 1000 {
            return Err(Error::invalid("text", "words, at most 1,000 bytes"));
        }
        let scopes = match within {
            Some(id) => vec![self.readable(by, id).await?.scope()],
            None => {
                let scope = named(by.actor.owner().as_str());
                let list = List { table: Table::Member, scope, beyond: None, newest_first: true, limit: SEARCHED };
                let members = self.store.records(Query::List(list)).await?;
                let ids = members.iter().map(|row| body::<ConversationId>(row).map(|id| RecordId(id.0)));
                ids.collect::<Result<_, _>>()?
            }
        };
        let (table, limit) = (Table::Message, self.limit(limit));
        let rows = self.store.records(Query::Search { table, scopes, text: text.to_owned(), limit }).await?;
        let (mut messages, mut bytes) = (Vec::with_capacity(rows.len()), 0);
        for row in rows {
            bytes += self.weight(&row)?;
            if bytes > self.config.list_bytes && !messages.is_empty() {
                break;
            }
            messages.push(self.whole(&row, self.config.shown_blocks as u64).await?);
        }
        Ok(messages)
    }

    /// A whole Conversation.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn export(&self, by: &Caller, id: ConversationId) -> Result<Exported, Error> {
        let found = self.readable(by, id).await?;
        let scope = found.scope();
        let mut messages = Vec::new();
        loop {
            let after = messages.last().map_or(0, |last: &Message| last.seq);
            let rows = self.window(scope, Window::After(after), self.config.page).await?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                messages.push(self.whole(&row, u64::MAX).await?);
            }
        }
        let all = |table| List { table, scope, beyond: None, newest_first: false, limit: usize::MAX };
        let questions = self.store.records(Query::List(all(Table::Question))).await?;
        let questions = questions.iter().map(crate::questions::shown).collect::<Result<_, _>>()?;
        let calls = self.store.records(Query::List(all(Table::Call))).await?;
        let calls = calls.iter().map(crate::engine::shown).collect::<Result<_, _>>()?;
        Ok(Exported { conversation: self.described(found).await?, messages, questions, calls })
    }
}

impl Exported {
    /// The Conversation as Markdown, for people. What was said stands in code fences or quotes as it is; it is as
    /// untrusted there as anywhere.
    #[must_use]
    pub fn markdown(&self) -> String {
        let title = if self.conversation.title.is_empty() { "Conversation" } else { &self.conversation.title };
        let mut text = format!("# {title}\n");
        for message in &self.messages {
            let to: Vec<_> = message.to.iter().map(ToString::to_string).collect();
            let to = if to.is_empty() { String::new() } else { format!(" to {}", to.join(", ")) };
            let _ = write!(text, "\n## {} · {}{to}\n", message.seq, message.from);
            for block in &message.blocks {
                let _ = write!(text, "\n{}\n", self.plain(block));
            }
            if let Some(error) = &message.error {
                let _ = write!(text, "\n**{}**: {}\n", error.code, error.message);
            }
        }
        text
    }

    fn plain(&self, block: &Block) -> String {
        match block {
            Block::Known(KnownBlock::Tool { name, status, args, output, call: _ }) => {
                format!("- tool `{name}` {args} ({status:?})\n\n```\n{output}\n```")
            }
            Block::Known(KnownBlock::Result { text: None, json: Some(json) }) => format!("```json\n{json:#}\n```"),
            Block::Known(KnownBlock::Ask { question, prompt } | KnownBlock::Confirm { question, prompt }) => {
                let asked = self.questions.iter().find(|asked| asked.id == *question);
                let status = asked.map_or(QuestionStatus::Open, |asked| asked.status);
                format!("> {prompt} ({status:?})")
            }
            Block::Known(KnownBlock::Reply { snapshot }) => {
                let value = snapshot.value.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("> {}: {:?} {value}", snapshot.prompt, snapshot.status)
            }
            Block::Known(_) if !block.words().is_empty() => block.words().to_owned(),
            Block::Known(_) | Block::Unknown(_) => {
                format!("```json\n{}\n```", serde_json::to_string_pretty(block).unwrap_or_default())
            }
        }
    }
}
