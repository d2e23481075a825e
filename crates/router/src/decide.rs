//! What is next: a pure function of what is known. Whatever died before, the same board leads to the same steps.

use crate::board::{Board, Round, Task, Tries};
use crate::plan::{Form, Kind, Plan};
use crate::purse::Purse;
use crate::words;
use loopd_protocol::{Budget, CallPhase, HarnessCall, HarnessCallId, MessageId, Target};

/// Calls that an answer names at most, the last ones: what the platform takes.
const NAMED: usize = 100;

/// What the Router may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Whom it may give work to.
    pub agents: &'a [Target],
    /// Who plans and sums up.
    pub planner: &'a str,
    /// Who answers where there is no plan to follow.
    pub usual: &'a str,
    pub max_tasks: usize,
    pub max_rounds: usize,
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
    /// Why nobody can be asked for anything.
    pub obstacle: Option<&'a str>,
}

/// What is done next. All steps of one look are one Turn, but for [`Step::Cancel`], which may be done twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// People are told that what they said meanwhile is taken in.
    TakeIn { key: String, said: MessageId, text: String },
    /// A call.
    Call { key: String, name: String, target: String, budget: Budget, ask: Ask },
    /// The plan is taken.
    Take { key: String, plan: Plan },
    /// Something about a step, said at work.
    Note { key: String, text: String },
    /// The call is of no use any more.
    Cancel { call: HarnessCallId, why: &'static str },
    /// The answer.
    Answer { text: String, calls: Vec<HarnessCallId> },
}

/// What a call is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// To plan.
    Plan,
    /// To plan with what was found, and what was said since.
    Replan { late: String },
    /// To mend the plan.
    Repair { reply: String, error: String },
    /// To answer.
    Answer,
    /// To do a task.
    Task { title: String, prompt: String },
    /// To sum up.
    Sum,
}

/// The next steps; none while something goes on.
pub(crate) fn decide(board: &Board, rules: &Rules<'_>) -> Vec<Step> {
    let (Some(round), Some(question)) = (board.last(), board.question()) else { return Vec::new() };
    Decision { board, number: board.rounds.len(), round, root: question.id, rules }.steps()
}

struct Decision<'a> {
    board: &'a Board,
    root: MessageId,
    /// The round that counts, and its number from 1.
    round: &'a Round,
    number: usize,
    rules: &'a Rules<'a>,
}

impl Decision<'_> {
    fn steps(&self) -> Vec<Step> {
        // What goes on is waited for: it has been paid for.
        if let Some(obstacle) = self.rules.obstacle {
            let goes_on = self.board.calls().any(|call| !call.phase.is_final());
            return if goes_on { Vec::new() } else { self.answer(None, Some(obstacle)) };
        }
        if let Some(steps) = self.new_round() {
            return steps;
        }
        match &self.round.planned {
            None => self.planning(),
            Some(plan) => self.working(plan),
        }
    }

    fn purse(&self) -> Purse {
        Purse::after((self.rules.tokens, self.rules.micro_usd), self.board.calls())
    }

    /// What people said since goes into a plan of its own, at once. Where no further round is allowed or paid for, it is
    /// left for the answer after this one.
    fn new_round(&self) -> Option<Vec<Step>> {
        if self.board.fresh.is_empty() || self.board.rounds.len() >= self.rules.max_rounds {
            return None;
        }
        // What plans and sums up without what was said now is of no use; the work itself may be.
        let of_no_use: Vec<_> = self.round.plan.all().chain(&self.round.repair).chain(self.round.sum.all()).collect();
        let mut steps: Vec<_> = of_no_use.iter().filter_map(|call| cancel(call, "more was said")).collect();
        let Some(budget) = self.purse().for_plan() else {
            // What they hold of the budget is free once they have ended.
            return of_no_use.iter().any(|call| !call.phase.is_final()).then_some(steps);
        };
        let begun = Round::begun(self.board.fresh.clone());
        let text = words::taken_in(self.board);
        let last = self.board.fresh.last()?;
        steps.push(Step::TakeIn { key: begun.key(self.root, "late"), said: last.id, text });
        let late = words::said(self.board.late().chain(&self.board.fresh));
        let next =
            Decision { board: self.board, root: self.root, round: &begun, number: self.number + 1, rules: self.rules };
        steps.push(next.ask_planner("plan", budget, Ask::Replan { late }));
        Some(steps)
    }

    fn plan(&self) -> Ask {
        match self.number {
            1 => Ask::Plan,
            _ => Ask::Replan { late: words::said(self.board.late()) },
        }
    }

    fn planning(&self) -> Vec<Step> {
        let Some(call) = self.round.plan.last() else {
            return match self.purse().for_plan() {
                Some(budget) => vec![self.ask_planner("plan", budget, self.plan())],
                None => self.answer(None, Some(words::NO_BUDGET)),
            };
        };
        match call.phase {
            CallPhase::Queued | CallPhase::Running | CallPhase::Waiting => Vec::new(),
            CallPhase::Succeeded => self.planned(),
            CallPhase::Cancelled => self.answer(None, Some(words::STOPPED)),
            CallPhase::Failed | CallPhase::TimedOut | CallPhase::Unknown => match self.purse().for_plan() {
                Some(budget) if self.round.plan.may_repeat() => {
                    let note = self.note("plan", format!("Planning failed: {}. Once more.", words::why(call)));
                    vec![note, self.ask_planner("plan/again", budget, self.plan())]
                }
                _ => self.without_plan(format!("planning failed: {}", words::why(call)), true),
            },
        }
    }

    /// The planner has replied.
    fn planned(&self) -> Vec<Step> {
        let reply = self.round.plan.text().unwrap_or_default();
        let form = Form {
            agents: self.rules.agents,
            max_tasks: self.rules.max_tasks,
            has_evidence: self.board.tasks().next().is_some(),
        };
        let error = match Plan::read(&reply, &form) {
            Ok(plan) => return self.take(plan),
            Err(error) => error,
        };
        let Some(repair) = &self.round.repair else {
            return match self.purse().for_plan() {
                Some(budget) => {
                    let note = self.note("plan", format!("The plan cannot be followed:\n\n{error}\n\nOnce more."));
                    vec![note, self.ask_planner("plan/repair", budget, Ask::Repair { reply, error })]
                }
                None => self.without_plan("the plan could not be followed".to_owned(), false),
            };
        };
        match repair.phase {
            CallPhase::Queued | CallPhase::Running | CallPhase::Waiting => Vec::new(),
            CallPhase::Cancelled => self.answer(None, Some(words::STOPPED)),
            CallPhase::Succeeded => {
                let mended = Tries { first: Some(repair.clone()), again: None };
                match Plan::read(&mended.text().unwrap_or_default(), &form) {
                    Ok(plan) => self.take(plan),
                    Err(error) => self.without_plan(format!("no plan could be followed: {error}"), false),
                }
            }
            CallPhase::Failed | CallPhase::TimedOut | CallPhase::Unknown => {
                self.without_plan(format!("mending the plan failed: {}", words::why(repair)), false)
            }
        }
    }

    /// What is done where nobody can plan: what is there already is summed up, or one agent answers.
    fn without_plan(&self, why: String, planner_fails: bool) -> Vec<Step> {
        if self.board.tasks().next().is_some() {
            return self.take(Plan::enough().instead(why));
        }
        // Who cannot be reached for a plan cannot be reached for an answer.
        if self.rules.usual.is_empty() || (planner_fails && self.rules.usual == self.rules.planner) {
            return self.answer(None, Some(&why));
        }
        self.take(Plan::simple(self.rules.usual).instead(why))
    }

    /// The plan and its calls are one commit.
    fn take(&self, plan: Plan) -> Vec<Step> {
        let dropped = self.board.tasks().filter(|task| plan.drop.contains(&task.name));
        let stopped = dropped.flat_map(|task| task.calls.all()).filter_map(|call| cancel(call, "it is not needed"));
        let mut steps: Vec<_> = stopped.collect();
        let share = match plan.kind {
            Kind::Simple => self.purse().rest(),
            Kind::Complex => self.purse().for_tasks(plan.tasks.len()),
        };
        let (kind, parts) = (plan.kind, plan.tasks.clone());
        steps.push(Step::Take { key: self.round.key(self.root, "planned"), plan });
        let Some(budget) = share else {
            if parts.is_empty() {
                return steps;
            }
            return self.answer(None, Some(words::NO_BUDGET));
        };
        steps.extend(parts.into_iter().zip(1..).map(|(part, index)| {
            let ask = match kind {
                Kind::Simple => Ask::Answer,
                Kind::Complex => Ask::Task { title: part.title, prompt: part.prompt },
            };
            self.call(&format!("work/{index}"), part.agent, budget, ask)
        }));
        steps
    }

    fn working(&self, plan: &Plan) -> Vec<Step> {
        let repeated: Vec<_> = self.board.tasks().filter(|task| self.may_repeat(task)).collect();
        if let Some(first) = repeated.first()
            && let Some(budget) = self.purse().for_tasks(repeated.len())
        {
            // One note for all of them: a Turn has room for the calls and little else.
            let text = repeated.iter().map(|task| failed(task)).collect::<Vec<_>>().join("\n\n");
            let note = Step::Note { key: format!("{}/note", first.key), text };
            return std::iter::once(note).chain(repeated.iter().map(|task| repeat(task, budget))).collect();
        }
        let goes_on = |task: &Task| task.calls.last().is_some_and(|call| !call.phase.is_final());
        if self.board.tasks().any(goes_on) { Vec::new() } else { self.summing(plan) }
    }

    fn may_repeat(&self, task: &Task) -> bool {
        let is_there = self.rules.agents.iter().any(|agent| agent.name == task.part.agent);
        is_there && task.calls.may_repeat()
    }

    /// All tasks are over.
    fn summing(&self, plan: &Plan) -> Vec<Step> {
        let tasks: Vec<_> = self.board.tasks().collect();
        let found = tasks.iter().filter(|task| task.calls.text().is_some()).count();
        // What one agent was asked as a whole is the answer, and needs nobody to repeat it.
        let whole = match (plan.kind, self.round.tasks.as_slice(), tasks.as_slice()) {
            (Kind::Simple, [task], _) => task.calls.text(),
            (Kind::Complex, _, [task]) => task.calls.text(),
            _ => None,
        };
        if whole.is_some() || found == 0 {
            return self.answer(whole, None);
        }
        let Some(call) = self.round.sum.last() else {
            return match self.purse().rest() {
                Some(budget) => vec![self.ask_planner("sum", budget, Ask::Sum)],
                None => self.answer(None, Some("it could not be summed up: the budget of this answer is used up")),
            };
        };
        match call.phase {
            CallPhase::Queued | CallPhase::Running | CallPhase::Waiting => Vec::new(),
            CallPhase::Succeeded => self.answer(self.round.sum.text(), None),
            CallPhase::Cancelled => self.answer(None, Some("summing it up was stopped")),
            CallPhase::Failed | CallPhase::TimedOut | CallPhase::Unknown => match self.purse().rest() {
                Some(budget) if self.round.sum.may_repeat() => {
                    let note = self.note("sum", format!("Summing up failed: {}. Once more.", words::why(call)));
                    vec![note, self.ask_planner("sum/again", budget, Ask::Sum)]
                }
                _ => self.answer(None, Some(&format!("it could not be summed up: {}", words::why(call)))),
            },
        }
    }

    fn answer(&self, text: Option<String>, why: Option<&str>) -> Vec<Step> {
        let text = words::answer(self.board, text, why);
        let made_of = self.board.calls().filter(|call| call.phase == CallPhase::Succeeded).map(|call| call.id);
        let mut calls: Vec<_> = made_of.collect();
        calls.drain(..calls.len().saturating_sub(NAMED));
        // Nobody waits any more for what still goes on.
        let rest = self.board.calls().filter_map(|call| cancel(call, "it was answered without it"));
        let mut steps: Vec<_> = rest.collect();
        steps.push(Step::Answer { text, calls });
        steps
    }

    fn ask_planner(&self, step: &str, budget: Budget, ask: Ask) -> Step {
        self.call(step, self.rules.planner.to_owned(), budget, ask)
    }

    fn call(&self, step: &str, target: String, budget: Budget, ask: Ask) -> Step {
        let name = if self.number == 1 { step.to_owned() } else { format!("{}/{step}", self.number) };
        Step::Call { key: self.round.key(self.root, step), name, target, budget, ask }
    }

    fn note(&self, step: &str, text: String) -> Step {
        Step::Note { key: self.round.key(self.root, &format!("{step}/note")), text }
    }
}

fn failed(task: &Task) -> String {
    let why = task.calls.last().map(words::why).unwrap_or_default();
    format!("{} failed: {why}. Once more.", words::titled(task))
}

fn repeat(task: &Task, budget: Budget) -> Step {
    let (key, target) = (format!("{}/again", task.key), task.part.agent.clone());
    Step::Call { key, name: format!("{}/again", task.step), target, budget, ask: task.ask() }
}

fn cancel(call: &HarnessCall, why: &'static str) -> Option<Step> {
    let goes_on = !call.phase.is_final() && !call.cancel_requested;
    goes_on.then_some(Step::Cancel { call: call.id, why })
}

#[cfg(test)]
mod tests;
