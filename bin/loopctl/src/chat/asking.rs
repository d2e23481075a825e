//! What a person is asked in a conversation, and what they say.

use super::Conversation;
use super::lines::{HELP, Typed};
use crate::commands::typed_answer;
use crate::context::fresh_key;
use crate::drive::describe_question;
use crate::problem::Problem;
use crate::words;
use loopd_kernel::budget::Dimension;
use loopd_kernel::question::{OpenQuestion, QuestionEnd};
use loopd_kernel::{Limits, MicroUsd, Outcome, RunId};
use loopd_store::InboxBody;

/// What a person wants at a limit.
pub(super) enum Raised {
    By(Limits),
    End,
    Leave,
}

impl Conversation {
    /// The next line, while the agent waits.
    pub(super) async fn ask(&mut self) -> Typed {
        self.screen.prompt();
        let typed = tokio::select! {
            typed = self.lines.next() => typed,
            _ = self.interrupts.recv() => None,
            () = self.context.signals.asked() => None,
        };
        typed.unwrap_or_else(|| {
            self.screen.unanswered();
            Typed::Leave
        })
    }

    pub(super) fn explain(&mut self, typed: &Typed) {
        match typed {
            Typed::Unknown(word) => {
                let word = loopd_fixture::excerpt::line(word, 40);
                self.screen.note(&format!("{word} is no command; /help lists them"));
            }
            Typed::Garbled => self.screen.note("that line is no UTF-8 text, and was not sent"),
            Typed::Raise => self.screen.note("no limit has been reached"),
            Typed::Help | Typed::Text(_) | Typed::Leave | Typed::End | Typed::Usage => self.screen.note(HELP),
        }
    }

    /// Asks the person what the agent, or one of its helpers, asks. What they typed: an answer, or that they go.
    pub(super) async fn answer(&mut self, run: RunId, question: &OpenQuestion) -> Result<Typed, Problem> {
        let text = describe_question(&self.context, self.context.paint_err, run, question);
        self.screen.note(&text);
        loop {
            let text = match self.ask().await {
                Typed::Text(text) => text,
                gone @ (Typed::Leave | Typed::End) => return Ok(gone),
                Typed::Usage => {
                    self.screen.usage();
                    continue;
                }
                other => {
                    self.explain(&other);
                    continue;
                }
            };
            let name = format!("{}/{}", words::short(run), question.id);
            match typed_answer(&name, question, text.trim(), self.context.now()) {
                Ok(value) => {
                    let (actor, end) = (self.context.actor(), QuestionEnd::Answered);
                    let body = InboxBody::Answer { question: question.id, end, actor, value };
                    self.runtime.tell(run, fresh_key("chat"), body).await?;
                    return Ok(Typed::Text(text));
                }
                Err(problem) => self.screen.note(&problem.text(self.context.paint_err)),
            }
        }
    }

    /// The limit that was reached, doubled, once the person wants that.
    pub(super) async fn raised(&mut self, outcome: &Outcome) -> Raised {
        let Outcome::BudgetExceeded { breach } = outcome else { return Raised::Leave };
        self.screen.note(&format!("{}; /raise goes on with twice as much", words::outcome(outcome)));
        loop {
            match self.ask().await {
                Typed::Raise => break,
                Typed::Leave => return Raised::Leave,
                Typed::End => return Raised::End,
                Typed::Usage => self.screen.usage(),
                Typed::Text(_) => self.screen.note("that was not sent: only /raise goes on; /exit leaves"),
                other => self.explain(&other),
            }
        }
        // Wall time needs nothing more to be over already.
        let most = breach.limit.saturating_mul(2).max(breach.used.saturating_add(breach.needed.max(1)));
        let none = Limits::default();
        Raised::By(match breach.dimension {
            Dimension::Iterations => Limits { iterations: Some(most), ..none },
            Dimension::Tokens => Limits { tokens: Some(most), ..none },
            Dimension::MicroUsd => Limits { micro_usd: Some(MicroUsd(most)), ..none },
            Dimension::WallMs => Limits { wall_ms: Some(most), ..none },
        })
    }
}
