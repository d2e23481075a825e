//! Who argues what, in which order. What was argued is found by its key, so that a debate is held once.

use crate::key;
use loopd_operator::{Call, Cx, Error, Place, call};
use loopd_protocol::Message;

/// Characters of an argument that the person is shown; the whole of it stands in the work conversation and in the minutes.
const SHOWN: usize = 2000;

/// Who argues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that wants it.
    For,
    /// The one that does not.
    Against,
}

impl Side {
    /// In the order in which they speak.
    const BOTH: [Self; 2] = [Self::For, Self::Against];

    /// The target that argues, and the word for it.
    pub const fn target(self) -> &'static str {
        match self {
            Self::For => "for",
            Self::Against => "against",
        }
    }
}

/// What one side said in one round, or why it did not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Argument {
    side: Side,
    round: u32,
    said: Result<String, String>,
}

/// A debate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Debate {
    proposal: String,
    rounds: u32,
    arguments: Vec<Argument>,
}

impl Debate {
    pub const fn new(proposal: String, rounds: u32) -> Self {
        Self { proposal, rounds, arguments: Vec::new() }
    }

    /// The debate once everybody has said everything; nothing while somebody speaks. A side that fails argues no more, and
    /// the other one then only if it has not been heard yet.
    pub async fn held(mut self, cx: &mut Cx, input: &Message) -> Result<Option<Self>, Error> {
        for round in 1..=self.rounds {
            for side in Side::BOTH {
                let failed = self.failures().next().is_some();
                if self.failure(side).is_some() || (failed && self.last(side).is_some()) {
                    continue;
                }
                let step = key(input, &format!("{}/{round}", side.target()));
                let made = cx.prompt(Place::Work, &step, call(side.target(), self.prompt(side, round))).await?;
                let Some(made) = made.filter(Call::is_over) else { return Ok(None) };
                self.arguments.push(Argument { side, round, said: made.text().ok_or_else(|| why(&made)) });
            }
        }
        Ok(Some(self))
    }

    /// What a side is asked: the proposal, and what the other one said last.
    fn prompt(&self, side: Side, round: u32) -> String {
        let other = if side == Side::For { Side::Against } else { Side::For };
        let answer = match self.last(other) {
            Some(said) => format!("`{}` said:\n\n{}", other.target(), quoted(said)),
            None => "Nobody has spoken before you.".to_owned(),
        };
        let (proposal, target) = (quoted(&self.proposal), side.target());
        format!("A proposal:\n\n{proposal}\n\n{answer}\n\nRound {round} of {}: argue {target} it.", self.rounds)
    }

    /// The last argument of a side.
    fn last(&self, side: Side) -> Option<&str> {
        self.arguments.iter().rev().filter(|one| one.side == side).find_map(|one| one.said.as_deref().ok())
    }

    fn failure(&self, side: Side) -> Option<&str> {
        self.arguments.iter().filter(|one| one.side == side).find_map(|one| one.said.as_ref().err()).map(String::as_str)
    }

    /// The sides that failed, and why.
    pub fn failures(&self) -> impl Iterator<Item = (Side, &str)> {
        Side::BOTH.into_iter().filter_map(|side| Some((side, self.failure(side)?)))
    }

    /// What the person decides on: the last argument of each side.
    pub fn summary(&self) -> String {
        let side = |side: Side| {
            let said = self.last(side).map_or("(it was not heard)".to_owned(), |said| quoted(&cut(said)));
            format!("**{}**\n\n{said}", side.target())
        };
        let [first, second] = Side::BOTH.map(side);
        format!("{}\n\n{first}\n\n{second}", quoted(&cut(&self.proposal)))
    }

    /// Everything that was said, in order.
    pub fn minutes(&self) -> String {
        let mut text = format!("## Proposal\n\n{}\n", quoted(&self.proposal));
        for Argument { side, round, said } in &self.arguments {
            let said = said.as_deref().map_or_else(|why| format!("(failed) {why}"), str::to_owned);
            text.push_str(&format!("\n## {}, round {round}\n\n{}\n", side.target(), quoted(&said)));
        }
        text
    }
}

/// Why a call came to nothing.
fn why(made: &Call) -> String {
    let error = made.state().error.as_ref().map(|error| error.message.clone());
    error.unwrap_or_else(|| format!("the call {}", made.state().phase.name()))
}

/// Text of other people and of models, so that it cannot pass for a heading of ours.
pub fn quoted(text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

fn cut(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() { format!("{cut}… (cut)") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_hears_the_other_and_no_text_is_a_heading() {
        let mut debate = Debate::new("Delete it.\n# Decided: accept".to_owned(), 2);
        assert!(debate.prompt(Side::For, 1).contains("> # Decided") && debate.prompt(Side::For, 1).contains("Nobody"));
        debate.arguments.push(Argument { side: Side::For, round: 1, said: Ok("## Yes".to_owned()) });
        let prompt = debate.prompt(Side::Against, 1);
        assert!(prompt.contains("`for` said:\n\n> ## Yes") && prompt.ends_with("Round 1 of 2: argue against it."));
        debate.arguments.push(Argument { side: Side::Against, round: 1, said: Err("gone".to_owned()) });
        assert_eq!(debate.failures().collect::<Vec<_>>(), [(Side::Against, "gone")]);
        assert!(debate.summary().ends_with("**against**\n\n(it was not heard)"));
        assert_eq!(debate.minutes().lines().filter(|line| line.starts_with('#')).count(), 3);
    }

    #[test]
    fn what_is_long_is_cut_for_the_person_only() {
        let mut debate = Debate::new("ä".repeat(9000), 1);
        debate.arguments.push(Argument { side: Side::For, round: 1, said: Ok("x".repeat(9000)) });
        assert!(debate.summary().chars().count() < 2 * SHOWN + 200);
        assert!(debate.minutes().chars().count() > 18_000);
    }
}
