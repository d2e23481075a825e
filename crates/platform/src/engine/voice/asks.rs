//! The Questions of a Run, and of its children, as Questions of its Conversation.

use crate::Platform;
use crate::conversations::wake;
use crate::error::Error;
use crate::messages::message_of;
use crate::questions::{Stored, asking, closing, reply};
use crate::rows::{body, named};
use loopd_kernel::question::{Ask, OpenQuestion, QuestionEnd};
use loopd_kernel::record::{Record as Said, Resolved};
use loopd_kernel::{RunId, TimeMs};
use loopd_protocol::{Answered, AskKind, Authorises, HarnessCall, Question, QuestionId, QuestionStatus, Scope};
use loopd_runtime::Stepped;
use loopd_store::{RecordId, Table, Write};

/// The identity of a Run's Question.
pub(in crate::engine) fn identity(run: RunId, open: &OpenQuestion) -> QuestionId {
    QuestionId(named(&format!("question {} of {run}", open.id.0)).0)
}

/// What is to be said of the Questions of one step. A call that has ended does not end them: a child may still ask.
pub(super) struct Asking<'a> {
    pub step: &'a Stepped<'a>,
    pub call: &'a HarnessCall,
    pub at: TimeMs,
    pub writes: Vec<Write>,
}

impl Asking<'_> {
    pub async fn questions(&mut self, platform: &Platform) -> Result<(), Error> {
        let (before, after) = (self.step.before.questions, &self.step.after.questions);
        let opened: Vec<_> = after.iter().filter(|new| !before.iter().any(|old| old.id == new.id)).collect();
        let closed: Vec<_> = before.iter().filter(|old| !after.iter().any(|new| new.id == old.id)).collect();
        for open in &closed {
            self.closed(platform, open).await?;
        }
        if opened.is_empty() {
            return Ok(());
        }
        let row = platform.get(Table::Conversation, RecordId(self.call.conversation.0)).await?;
        let Some(found) = row.map(|row| platform.found(row)).transpose()?.filter(|found| !found.stored.deleted) else {
            return Ok(());
        };
        for open in opened {
            let stored = self.asked(open);
            let seq = self.step.entries.last().map(|entry| entry.seq.0);
            self.writes.extend(asking(&stored, None, seq, self.at));
        }
        let people = platform.people(&found).await?;
        self.writes.extend(people.iter().map(|person| wake(person, found.id, "question", self.at)));
        Ok(())
    }

    fn asked(&self, open: &OpenQuestion) -> Stored {
        let (run, call) = (self.step.after.run, self.call);
        let id = identity(run, open);
        let mut question = Question {
            id,
            conversation: call.conversation,
            message: message_of(&id.to_string()),
            kind: AskKind::Ask,
            from: call.actor.clone(),
            to: None,
            title: String::new(),
            prompt: String::new(),
            choices: Vec::new(),
            free_text: false,
            schema: None,
            authorises: None,
            status: QuestionStatus::Open,
            answer: None,
            asked_at: open.asked_at.0,
            deadline: open.expires_at.map(|at| at.0),
            run: Some(run.to_string()),
        };
        match &open.ask {
            Ask::Ask { prompt, schema, .. } => {
                question.prompt.clone_from(prompt);
                question.schema = schema.as_deref().and_then(|schema| serde_json::from_str(schema).ok());
                question.free_text = question.schema.is_none();
            }
            Ask::Confirm { prompt, .. } => {
                (question.kind, question.prompt) = (AskKind::Confirm, prompt.clone());
            }
            Ask::Resolve { tool, args, reason, .. } => {
                question.kind = AskKind::Resolve;
                question.prompt.clone_from(reason);
                question.authorises = Some(Authorises { tool: tool.clone(), args: args.clone() });
            }
        }
        Stored { question, request: String::new(), of_run: Some(open.id.0), sent: None }
    }

    /// The Question ended in the Run: what the Run says is how.
    async fn closed(&mut self, platform: &Platform, open: &OpenQuestion) -> Result<(), Error> {
        let id = identity(self.step.after.run, open);
        let Some(row) = platform.get(Table::Question, RecordId(id.0)).await? else { return Ok(()) };
        let stored: Stored = body(&row)?;
        if stored.question.status.is_final() {
            return Ok(());
        }
        let (status, by) = self.how(open);
        let told = by.and_then(|(actor, value)| {
            let value = serde_json::from_str(&value).ok();
            Some(Answered { by: actor.parse().ok()?, at: self.at.0, value, scope: Scope::Once })
        });
        // Of an answer that was given here the moment and the scope are known, too.
        let sent = stored.question.answer.clone();
        let same = |sent: &Answered| told.as_ref().is_some_and(|told| told.by == sent.by);
        let taken = matches!(status, QuestionStatus::Answered | QuestionStatus::Declined | QuestionStatus::Dismissed);
        // One that did not count is no answer of the Question.
        let answer = sent.filter(same).or(told).filter(|_| taken);
        let question = Question { status, answer, ..stored.question.clone() };
        if let Some(answered) = &question.answer {
            self.writes.extend(reply(&question, answered, self.at));
        }
        self.writes.extend(closing(&row, &Stored { question, ..stored }, self.at));
        Ok(())
    }

    fn how(&self, open: &OpenQuestion) -> (QuestionStatus, Option<(String, String)>) {
        for entry in self.step.entries {
            match Said::decode(entry.kind, &entry.record) {
                Ok(Said::QuestionEnded(ended)) if ended.question == open.id => {
                    let status = match ended.end {
                        QuestionEnd::Answered => QuestionStatus::Answered,
                        QuestionEnd::Declined => QuestionStatus::Declined,
                        QuestionEnd::Dismissed => QuestionStatus::Dismissed,
                        QuestionEnd::TimedOut => QuestionStatus::TimedOut,
                        QuestionEnd::Withdrawn => QuestionStatus::Withdrawn,
                    };
                    let value = String::from_utf8_lossy(&entry.payload).into_owned();
                    return (status, Some((ended.actor, value)));
                }
                Ok(Said::Resolved(Resolved { call, by, resolution, .. })) if is_of(open, call) => {
                    let value = serde_json::to_string(&resolution).unwrap_or_default();
                    return (QuestionStatus::Answered, Some((by, value)));
                }
                Ok(_) | Err(_) => {}
            }
        }
        (QuestionStatus::Withdrawn, None)
    }
}

fn is_of(open: &OpenQuestion, resolved: loopd_kernel::CallId) -> bool {
    match &open.ask {
        Ask::Resolve { call, .. } => *call == resolved,
        Ask::Ask { .. } | Ask::Confirm { .. } => false,
    }
}
