//! How Questions end: answered by a person, taken back, or out of time.

use crate::questions::{Stored, closing, reply};
use crate::rows::{Tries, body, expect};
use crate::{Caller, Error, Platform};
use loopd_kernel::machine::accepts;
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::{RunId, TimeMs};
use loopd_protocol::{ActorKind, Answer, Answered, AskKind, Question, QuestionId, QuestionStatus, Scope};
use loopd_store::{Batch, InboxBody, InboxItem, Query, Record, Table, Write};
use serde_json::Value;

impl Platform {
    /// Ends a Question by hand. Only a person does; the same answer by the same person again changes nothing.
    ///
    /// An answer for a Run goes into its inbox in the same commit, and the Question stays open with it until the Run
    /// takes it: that is what ends the Question, in the commit of the Run. A Run that has no use for it any more, because
    /// it was cancelled or a timer was faster, ends the Question otherwise, and nobody was told that the answer counted.
    ///
    /// # Errors
    /// [`Error::Conflict`] `question_closed` when it has ended otherwise, or its deadline has passed;
    /// [`Error::Forbidden`] for whoever may not answer it; [`Error::Invalid`] for an answer that does not fit;
    /// [`Error::NotFound`].
    pub async fn answer(&self, by: &Caller, id: QuestionId, answer: Answer) -> Result<Question, Error> {
        by.must_write()?;
        if by.actor.kind() != ActorKind::Person {
            return Err(Error::Forbidden("only a person answers a question".to_owned()));
        }
        let mut tries = Tries::default();
        loop {
            let (row, stored, _) = self.question_row(by, id).await?;
            let question = &stored.question;
            if question.to.as_ref().is_some_and(|to| *to != by.actor) {
                return Err(Error::Forbidden("the question is for somebody else".to_owned()));
            }
            if question.status != QuestionStatus::Open || stored.sent.is_some() {
                let as_before = stored.sent.unwrap_or(question.status) == answer.status;
                let same = question.answer.as_ref().is_some_and(|before| {
                    as_before && before.by == by.actor && before.value == answer.value && before.scope == answer.scope
                });
                return if same { Ok(question.clone()) } else { Err(closed(question)) };
            }
            fits(question, &answer)?;
            let at = self.time();
            if question.deadline.is_some_and(|deadline| at.0 >= deadline) {
                // Of a Run its own timer ends it; what comes now is late either way.
                if stored.of_run.is_some() {
                    return Err(Error::conflict("question_closed", "its deadline has passed"));
                }
                self.attempt(&mut tries, expiry(&row, &stored, at)).await?;
                continue;
            }
            let answered =
                Answered { by: by.actor.clone(), at: at.0, value: answer.value.clone(), scope: answer.scope };
            let writes = if let Some(number) = stored.of_run {
                let passed_on = self.pass_on(question, number, &answer, by, at).await?;
                let sent = Question { answer: Some(answered), ..question.clone() };
                let sent = Stored { question: sent, sent: Some(answer.status), ..stored.clone() };
                closing(&row, &sent, at).into_iter().chain([passed_on]).collect()
            } else {
                let ended = Question { status: answer.status, answer: Some(answered.clone()), ..question.clone() };
                let told = reply(&ended, &answered, at);
                closing(&row, &Stored { question: ended, ..stored.clone() }, at).into_iter().chain(told).collect()
            };
            let expect = vec![expect(Table::Question, row.id, Some(row.rev))];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// The inbox item that tells a Run the answer, once it would take it.
    async fn pass_on(
        &self,
        question: &Question,
        number: u64,
        answer: &Answer,
        by: &Caller,
        at: TimeMs,
    ) -> Result<Write, Error> {
        let run: RunId = question.run.as_deref().unwrap_or_default().parse().map_err(|_| closed(question))?;
        let open = self.store.questions(Some(run), usize::MAX).await?;
        let open = open.iter().find(|row| row.question.id.0 == number).ok_or_else(|| closed(question))?;
        let end = match answer.status {
            QuestionStatus::Declined => QuestionEnd::Declined,
            QuestionStatus::Dismissed => QuestionEnd::Dismissed,
            QuestionStatus::Answered | QuestionStatus::Open | QuestionStatus::TimedOut | QuestionStatus::Withdrawn => {
                QuestionEnd::Answered
            }
        };
        let value = match (question.kind, end) {
            (AskKind::Confirm, QuestionEnd::Answered) => "true".to_owned(),
            (_, QuestionEnd::Answered) => answer.value.as_ref().map(Value::to_string).unwrap_or_default(),
            _ => String::new(),
        };
        accepts(&open.question, end, &value, at, self.config.skew_ms)
            .map_err(|refused| Error::invalid("value", refused.to_string()))?;
        let (question_id, actor) = (open.question.id, by.actor.to_string());
        let body = InboxBody::Answer { question: question_id, end, actor, value };
        Ok(Write::AddInbox(InboxItem { id: 0, run, key: format!("answer {}", question.id), at, body }))
    }

    /// Takes a Question back, for whoever asked it.
    ///
    /// # Errors
    /// [`Error::Conflict`] `question_closed` when it has ended otherwise; [`Error::Forbidden`], [`Error::NotFound`].
    pub async fn withdraw(&self, by: &Caller, id: QuestionId) -> Result<Question, Error> {
        by.must_write()?;
        let mut tries = Tries::default();
        loop {
            let (row, stored, _) = self.question_row(by, id).await?;
            let question = &stored.question;
            if stored.of_run.is_some() || !(by.speaks_as(&question.from) || by.is_admin()) {
                return Err(Error::Forbidden("only whoever asked takes a question back".to_owned()));
            }
            match question.status {
                QuestionStatus::Withdrawn => return Ok(question.clone()),
                QuestionStatus::Open => {}
                QuestionStatus::Answered
                | QuestionStatus::Declined
                | QuestionStatus::Dismissed
                | QuestionStatus::TimedOut => return Err(closed(question)),
            }
            let ended = Question { status: QuestionStatus::Withdrawn, ..question.clone() };
            let writes = closing(&row, &Stored { question: ended, ..stored.clone() }, self.time());
            let expect = vec![expect(Table::Question, row.id, Some(row.rev))];
            self.attempt(&mut tries, Batch { expect, writes }).await?;
        }
    }

    /// Ends Questions whose deadline has passed; returns how many it looked at.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn expire_questions(&self) -> Result<usize, Error> {
        let (table, until, limit) = (Table::Question, self.time(), 100);
        let due = self.store.records(Query::Due { table, until, limit }).await?;
        for row in &due {
            if let Err(error) = self.expire_question(row).await {
                tracing::warn!(question = %QuestionId(row.id.0), %error, "a question cannot be ended now");
            }
        }
        Ok(due.len())
    }

    async fn expire_question(&self, row: &Record) -> Result<(), Error> {
        let stored: Stored = body(row)?;
        // Somebody may answer at this moment: then this one changes nothing, and the next look finds nothing due.
        self.attempt(&mut Tries::default(), expiry(row, &stored, self.time())).await
    }
}

fn expiry(row: &Record, stored: &Stored, at: TimeMs) -> Batch {
    let ended = Question { status: QuestionStatus::TimedOut, ..stored.question.clone() };
    let writes = closing(row, &Stored { question: ended, ..stored.clone() }, at);
    Batch { expect: vec![expect(Table::Question, row.id, Some(row.rev))], writes }
}

fn closed(question: &Question) -> Error {
    let how = match question.status {
        QuestionStatus::Open if question.answer.is_some() => "another answer was sent to the run that asked",
        QuestionStatus::Open => "the run that asked needs no answer any more",
        QuestionStatus::Answered => "it has been answered",
        QuestionStatus::Declined => "it has been declined",
        QuestionStatus::Dismissed => "it has been dismissed",
        QuestionStatus::TimedOut => "its deadline has passed",
        QuestionStatus::Withdrawn => "it has been withdrawn",
    };
    Error::conflict("question_closed", how)
}

/// Whether the answer is one to this Question.
fn fits(question: &Question, answer: &Answer) -> Result<(), Error> {
    let wrong = |detail: &str| Err(Error::invalid("value", detail));
    if question.run.is_some() && answer.scope != Scope::Once {
        return Err(Error::invalid("scope", "the question of a run is answered `once`"));
    }
    match answer.status {
        QuestionStatus::Answered => {}
        QuestionStatus::Declined | QuestionStatus::Dismissed if question.kind == AskKind::Resolve => {
            return Err(Error::invalid("status", "what became of the call has to be said"));
        }
        QuestionStatus::Declined | QuestionStatus::Dismissed => {
            return if answer.value.is_some() { wrong("only with `answered`") } else { Ok(()) };
        }
        QuestionStatus::Open | QuestionStatus::TimedOut | QuestionStatus::Withdrawn => {
            return Err(Error::invalid("status", "answered, declined or dismissed"));
        }
    }
    match (question.kind, &answer.value) {
        (AskKind::Confirm, None | Some(Value::Bool(true))) => Ok(()),
        (AskKind::Confirm, Some(_)) => wrong("a confirm that is answered is accepted: `true`, or no value"),
        (AskKind::Ask | AskKind::Resolve, None) => wrong("an answer has a value"),
        (AskKind::Resolve, Some(_)) => Ok(()),
        (AskKind::Ask, Some(value)) => match &question.schema {
            Some(schema) => conforms(schema, value),
            None => match value.as_str() {
                Some(text) if text.len() > 100_000 => wrong("at most 100,000 bytes"),
                Some(text) if question.free_text || question.choices.iter().any(|choice| choice.value == text) => {
                    Ok(())
                }
                Some(_) => wrong("one of the choices"),
                None => wrong("a text"),
            },
        },
    }
}

fn conforms(schema: &Value, value: &Value) -> Result<(), Error> {
    // A schema that does not compile cannot refuse an answer: the Run that asked checks by itself.
    let Ok(validator) = jsonschema::validator_for(schema) else { return Ok(()) };
    validator.validate(value).map_err(|error| {
        let at = error.instance_path().as_str();
        Error::invalid("value", if at.is_empty() { error.to_string() } else { format!("{at}: {error}") })
    })
}
