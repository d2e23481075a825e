//! Boards as text, and what follows from them.

use super::*;
use crate::Config;
use crate::board::Saying;
use expect_test::{Expect, expect};
use loopd_protocol::Spent;
use serde_json::json;

/// A call that stands like this.
fn call(step: &str, phase: &str, said: &str) -> HarnessCall {
    let phase: CallPhase = serde_json::from_value(json!(phase)).unwrap();
    let id = step.bytes().fold([1; 16], |mut id: [u8; 16], byte| {
        id.rotate_left(1);
        id[0] ^= byte;
        id
    });
    let (result, error) = match phase {
        CallPhase::Succeeded => (json!(said), None),
        _ => (json!(null), Some(said).filter(|said| !said.is_empty())),
    };
    let (code, message) = error.and_then(|error| error.split_once(": ")).unwrap_or(("model.failed", said));
    let mut call = json!({
        "id": HarnessCallId(id), "conversation": loopd_protocol::ConversationId([2; 16]), "message": MessageId(id),
        "target": "any", "effect_key": step, "caller": "operator/router", "actor": "harness/any", "prompt": "p",
        "budget": {"tokens": 1000}, "phase": phase, "created_at": 0, "deadline": 0, "revision": 1,
        "spent": Spent { tokens: 100, micro_usd: 0, iterations: 1 },
        "may_have_changed": said.contains("changed"),
    });
    if !result.is_null() {
        call["result"] = result;
    }
    if error.is_some() {
        call["error"] = json!({"code": code, "message": message});
        if code == "call.policy_denied" {
            call["reason"] = json!("PolicyDenied");
        }
    }
    serde_json::from_value(call).unwrap()
}

fn saying(number: u8, text: &str) -> Saying {
    Saying {
        id: MessageId([number; 16]),
        from: "person/ann".parse().unwrap(),
        text: text.to_owned(),
        files: Vec::new(),
    }
}

/// A board from lines: `question TEXT`, `late TEXT`, `planned JSON`, `STEP PHASE [TEXT]`.
fn board(lines: &str) -> Board {
    let mut board = Board { rounds: Vec::new(), fresh: Vec::new() };
    for (line, number) in lines.lines().map(str::trim).filter(|line| !line.is_empty()).zip(1..) {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "question" => board.rounds.push(Round::begun(vec![saying(number, rest)])),
            "late" => board.fresh.push(saying(number, rest)),
            step => {
                if !board.fresh.is_empty() {
                    board.rounds.push(Round::begun(std::mem::take(&mut board.fresh)));
                }
                let number = board.rounds.len();
                let round = board.rounds.last_mut().unwrap();
                match step {
                    "planned" => round.plan_is(number, rest),
                    step => {
                        let (phase, said) = rest.split_once(' ').unwrap_or((rest, ""));
                        *round.slot(step) = Some(call(step, phase, said));
                    }
                }
            }
        }
    }
    let dropped: Vec<_> =
        board.rounds.iter().filter_map(|round| round.planned.as_ref()).flat_map(|plan| plan.drop.clone()).collect();
    for task in board.rounds.iter_mut().flat_map(|round| &mut round.tasks) {
        task.dropped = dropped.contains(&task.name);
    }
    board
}

impl Round {
    fn plan_is(&mut self, number: usize, json: &str) {
        self.planned = Some(serde_json::from_str(json).unwrap());
        self.plan_tasks(MessageId([1; 16]), number);
    }

    fn slot(&mut self, step: &str) -> &mut Option<HarnessCall> {
        match step {
            "plan" => &mut self.plan.first,
            "plan/again" => &mut self.plan.again,
            "plan/repair" => &mut self.repair,
            "sum" => &mut self.sum.first,
            "sum/again" => &mut self.sum.again,
            work => {
                let mut parts = work.strip_prefix("work/").unwrap().split('/');
                let index: usize = parts.next().unwrap().parse().unwrap();
                let calls = &mut self.tasks[index - 1].calls;
                if parts.next().is_some() { &mut calls.again } else { &mut calls.first }
            }
        }
    }
}

fn shown(step: Step) -> String {
    match step {
        Step::TakeIn { text, .. } => format!("take in: {text}"),
        Step::Call { name, target, budget, ask, .. } => {
            format!("call {target} for {name} with {} tokens: {ask:?}", budget.tokens.unwrap_or(0))
        }
        Step::Take { plan, .. } => format!("take {}", json!(plan)),
        Step::Note { text, .. } => format!("note: {text}"),
        Step::Cancel { why, .. } => format!("cancel: {why}"),
        Step::Answer { text, calls } => format!("answer, of {} calls: {text}", calls.len()),
    }
}

fn steps(lines: &str, change: impl FnOnce(&mut Rules<'_>)) -> Vec<Step> {
    let target = |name: &str| -> Target {
        let target = json!({"name": name, "description": "", "adapter": "loop", "actor": format!("harness/{name}"),
            "slots": 1, "running": 0, "queued": 0});
        serde_json::from_value(target).unwrap()
    };
    let agents = [target("finder"), target("writer")];
    let mut rules = Rules {
        agents: &agents,
        planner: "planner",
        usual: "writer",
        max_tasks: 3,
        max_rounds: 2,
        tokens: Some(100_000),
        micro_usd: None,
        obstacle: None,
    };
    change(&mut rules);
    decide(&board(lines), &rules)
}

#[track_caller]
fn check_with(lines: &str, change: impl FnOnce(&mut Rules<'_>), expected: Expect) {
    let steps: Vec<_> = steps(lines, change).into_iter().map(shown).collect();
    let steps = if steps.is_empty() { "wait".to_owned() } else { steps.join("\n") };
    expected.assert_eq(&(steps + "\n"));
}

#[track_caller]
fn check(lines: &str, expected: Expect) {
    check_with(lines, |_| {}, expected);
}

const TWO: &str = r#"{"kind":"complex","tasks":[{"title":"A","agent":"finder","prompt":"a"},{"title":"B","agent":"writer","prompt":"b"}]}"#;
const ONE: &str = r#"{"kind":"simple","tasks":[{"title":"Answer","agent":"finder"}]}"#;

/// The beginning of a board whose two tasks are planned.
fn two() -> String {
    format!("question Q\nplan succeeded x\nplanned {TWO}\n")
}

#[test]
fn a_question_is_planned_and_its_plan_is_taken_with_its_calls() {
    check(
        "question Q",
        expect![[r#"
        call planner for plan with 25000 tokens: Plan
    "#]],
    );
    check(
        "question Q\nplan running",
        expect![[r#"
            wait
        "#]],
    );
    check(
        &format!("question Q\nplan succeeded {TWO}"),
        expect![[r#"
        take {"kind":"complex","tasks":[{"agent":"finder","prompt":"a","title":"A"},{"agent":"writer","prompt":"b","title":"B"}]}
        call finder for work/1 with 39960 tokens: Task { title: "A", prompt: "a" }
        call writer for work/2 with 39960 tokens: Task { title: "B", prompt: "b" }
    "#]],
    );
    check(
        "question Q\nplan succeeded {\"kind\":\"simple\",\"agent\":\"finder\"}",
        expect![[r#"
        take {"kind":"simple","tasks":[{"agent":"finder","title":"Answer"}]}
        call finder for work/1 with 99900 tokens: Answer
    "#]],
    );
}

#[test]
fn a_plan_that_is_none_is_mended_once_and_then_one_agent_answers() {
    check(
        "question Q\nplan succeeded I would say yes.",
        expect![[r#"
        note: The plan cannot be followed:

        there is no JSON object in it

        Once more.
        call planner for plan/repair with 24975 tokens: Repair { reply: "I would say yes.", error: "there is no JSON object in it" }
    "#]],
    );
    check(
        "question Q\nplan succeeded no\nplan/repair running",
        expect![[r#"
            wait
        "#]],
    );
    check(
        &format!("question Q\nplan succeeded no\nplan/repair succeeded {TWO}"),
        expect![[r#"
        take {"kind":"complex","tasks":[{"agent":"finder","prompt":"a","title":"A"},{"agent":"writer","prompt":"b","title":"B"}]}
        call finder for work/1 with 39920 tokens: Task { title: "A", prompt: "a" }
        call writer for work/2 with 39920 tokens: Task { title: "B", prompt: "b" }
    "#]],
    );
    check(
        "question Q\nplan succeeded no\nplan/repair succeeded no",
        expect![[r#"
        take {"instead":"no plan could be followed: there is no JSON object in it","kind":"simple","tasks":[{"agent":"writer","title":"Answer"}]}
        call writer for work/1 with 99800 tokens: Answer
    "#]],
    );
    check(
        "question Q\nplan succeeded no\nplan/repair failed broken",
        expect![[r#"
        take {"instead":"mending the plan failed: broken","kind":"simple","tasks":[{"agent":"writer","title":"Answer"}]}
        call writer for work/1 with 99800 tokens: Answer
    "#]],
    );
}

#[test]
fn planning_that_fails_is_repeated_once() {
    check(
        "question Q\nplan failed away",
        expect![[r#"
        note: Planning failed: away. Once more.
        call planner for plan/again with 24975 tokens: Plan
    "#]],
    );
    check(
        "question Q\nplan failed away\nplan/again timed_out",
        expect![[r#"
        take {"instead":"planning failed: it took too long","kind":"simple","tasks":[{"agent":"writer","title":"Answer"}]}
        call writer for work/1 with 99800 tokens: Answer
    "#]],
    );
    check_with(
        "question Q\nplan failed away\nplan/again failed away",
        |rules| rules.usual = "planner",
        expect![[r#"
        answer, of 0 calls: I have no answer: planning failed: away.
    "#]],
    );
    check(
        "question Q\nplan cancelled",
        expect![[r#"
        answer, of 0 calls: I have no answer: it was stopped.
    "#]],
    );
}

#[test]
fn what_was_found_is_summed_up_once_everything_is_over() {
    check(
        &(two() + "work/1 succeeded one\nwork/2 running"),
        expect![[r#"
            wait
        "#]],
    );
    check(
        &(two() + "work/1 succeeded one\nwork/2 succeeded two"),
        expect![[r#"
        call planner for sum with 99700 tokens: Sum
    "#]],
    );
    check(
        &(two() + "work/1 succeeded one\nwork/2 succeeded two\nsum running"),
        expect![[r#"
            wait
        "#]],
    );
    check(
        &(two() + "work/1 succeeded one\nwork/2 succeeded two\nsum succeeded both"),
        expect![[r#"
        answer, of 4 calls: both
    "#]],
    );
    check(
        &format!("question Q\nplan succeeded x\nplanned {ONE}\nwork/1 succeeded it is so"),
        expect![[r#"
        answer, of 2 calls: it is so
    "#]],
    );
}

#[test]
fn a_task_that_fails_is_repeated_once_and_then_named() {
    check(
        &(two() + "work/1 succeeded one\nwork/2 failed away"),
        expect![[r#"
        note: **B** (writer) failed: away. Once more.
        call writer for work/2/again with 79760 tokens: Task { title: "B", prompt: "b" }
    "#]],
    );
    check(
        &(two() + "work/1 succeeded one\nwork/2 failed away\nwork/2/again running"),
        expect![[r#"
            wait
        "#]],
    );
    check(
        &(two() + "work/1 succeeded one\nwork/2 failed away\nwork/2/again timed_out\nsum succeeded one"),
        expect![[r#"
        answer, of 3 calls: one

        ---

        Not everything went well:

        - **B** (writer), twice: it took too long
    "#]],
    );
    check(
        &(two() + "work/1 failed away\nwork/2 failed away\nwork/1/again failed away\nwork/2/again failed away"),
        expect![[r#"
            answer, of 1 calls: I have no answer.

            - **A** (finder), twice: away
            - **B** (writer), twice: away
        "#]],
    );
}

#[test]
fn what_is_decided_or_may_have_changed_something_is_not_done_again() {
    for how in [
        "failed refund: something changed",
        "unknown",
        "cancelled",
        "failed call.parked: it parked (BudgetExceeded), and its caller does not wait",
        "failed call.policy_denied: the rule no-refunds forbids it",
    ] {
        let rest = || {
            expect![[r#"
                call planner for sum with 99700 tokens: Sum
            "#]]
        };
        check(&(two() + "work/1 succeeded one\nwork/2 " + how), rest());
    }
}

/// A round whose plan has as many tasks as it may have, each of which ended like this.
fn wide(end: &str) -> String {
    let tasks = vec![r#"{"title":"A","agent":"finder","prompt":"a"}"#; Config::MOST_TASKS].join(",");
    let ends = (1..=Config::MOST_TASKS).map(|number| format!("work/{number} {end}\n"));
    format!("plan succeeded x\nplanned {{\"kind\":\"complex\",\"tasks\":[{tasks}]}}\n{}", ends.collect::<String>())
}

#[test]
fn as_much_as_may_be_fits_into_a_turn() {
    let again = steps(&format!("question Q\n{}", wide("failed away")), |_| {});
    assert_eq!((again.len(), matches!(again[0], Step::Note { .. })), (Config::MOST_TASKS + 1, true));
    let round = wide("succeeded one");
    let rounds = format!("question Q\n{round}late And?\n{round}late And?\n{round}sum succeeded all");
    match steps(&rounds, |_| {}).as_slice() {
        [Step::Answer { calls, .. }] => assert_eq!(calls.len(), NAMED),
        other => panic!("no answer but {other:?}"),
    }
}

#[test]
fn an_answer_fits_into_a_message() {
    let long = "x".repeat(1 << 20);
    let answer = |lines: &str| match steps(lines, |_| {}).pop() {
        Some(Step::Answer { text, .. }) => format!("{} x\n{}\n", text.matches('x').count(), text.replace('x', "")),
        other => panic!("no answer but {other:?}"),
    };
    let one = format!("question Q\nplan succeeded x\nplanned {ONE}\nwork/1 succeeded {long}");
    expect![[r#"
        131072 x
         […917504 bytes left out]
    "#]]
    .assert_eq(&answer(&one));
    let failed = format!("{}work/1 succeeded {long}\nwork/2 failed away\nwork/2/again failed away", two());
    let failed = format!("{failed}\nsum failed away\nsum/again failed away");
    expect![[r#"
        131066 x
        ## A

         […917510 bytes left out]

        ---

        Not everything went well:

        - **B** (writer), twice: away
        - It could not be summed up: away.
    "#]]
    .assert_eq(&answer(&failed));
}

#[test]
fn what_is_said_meanwhile_goes_into_a_new_plan() {
    check(
        &(two() + "work/1 succeeded one\nwork/2 running\nlate And C?"),
        expect![[r#"
        take in: I take that in, and plan anew with what is there: 1 of 2 parts are done.
        call planner for 2/plan with 24700 tokens: Replan { late: "person/ann: And C?" }
    "#]],
    );
    check(
        "question Q\nplan running\nlate And C?",
        expect![[r#"
        cancel: more was said
        take in: I take that in, and plan anew.
        call planner for 2/plan with 24750 tokens: Replan { late: "person/ann: And C?" }
    "#]],
    );
    let planned = two() + "work/1 succeeded one\nwork/2 running\nlate And C?\nplan succeeded ";
    check(
        &(planned.clone()
            + r#"{"kind":"complex","tasks":[{"title":"C","agent":"finder","prompt":"c"}],"drop":["1.2"]}"#),
        expect![[r#"
            cancel: it is not needed
            take {"drop":["1.2"],"kind":"complex","tasks":[{"agent":"finder","prompt":"c","title":"C"}]}
            call finder for 2/work/1 with 78960 tokens: Task { title: "C", prompt: "c" }
        "#]],
    );
    check(
        &(planned.clone() + r#"{"kind":"complex","tasks":[]}"#),
        expect![[r#"
        take {"kind":"complex","tasks":[]}
    "#]],
    );
    check(
        &(planned + "no\nplan/repair succeeded no"),
        expect![[r#"
        take {"instead":"no plan could be followed: there is no JSON object in it","kind":"complex","tasks":[]}
    "#]],
    );
    let summed = two() + "work/1 succeeded one\nwork/2 succeeded two\nsum running\nlate And C?";
    check(
        &summed,
        expect![[r#"
        cancel: more was said
        take in: I take that in, and plan anew with what is there: 2 of 2 parts are done.
        call planner for 2/plan with 24675 tokens: Replan { late: "person/ann: And C?" }
    "#]],
    );
}

#[test]
fn what_holds_all_of_the_budget_ends_before_a_new_plan() {
    let summing = two() + "work/1 succeeded one\nwork/2 succeeded two\nsum running\nlate And C?";
    check_with(
        &summing,
        |rules| rules.tokens = Some(1300),
        expect![[r#"
        cancel: more was said
    "#]],
    );
    let ended = two() + "work/1 succeeded one\nwork/2 succeeded two\nsum cancelled\nlate And C?";
    check_with(
        &ended,
        |rules| rules.tokens = Some(1300),
        expect![[r#"
        take in: I take that in, and plan anew with what is there: 2 of 2 parts are done.
        call planner for 2/plan with 225 tokens: Replan { late: "person/ann: And C?" }
    "#]],
    );
}

#[test]
fn what_is_said_after_the_last_round_is_left_for_the_next_answer() {
    let second = two()
        + "work/1 succeeded one\nwork/2 succeeded two\nlate And C?\nplan succeeded x\nplanned {\"kind\":\"complex\"}\n";
    check(
        &(second.clone() + "late And D?"),
        expect![[r#"
        call planner for 2/sum with 99600 tokens: Sum
    "#]],
    );
    check(
        &(second + "sum succeeded all\nlate And D?"),
        expect![[r#"
        answer, of 5 calls: all
    "#]],
    );
}

#[test]
fn the_budget_of_the_answer_bounds_everything() {
    check_with(
        "question Q",
        |rules| rules.tokens = Some(700),
        expect![[r#"
        answer, of 0 calls: I have no answer: the budget of this answer is used up.
    "#]],
    );
    check_with(
        &format!("question Q\nplan succeeded {TWO}"),
        |rules| rules.tokens = Some(500),
        expect![[r#"
        answer, of 1 calls: I have no answer: the budget of this answer is used up.
    "#]],
    );
    let done = two() + "work/1 succeeded one\nwork/2 succeeded two";
    check_with(
        &done,
        |rules| rules.tokens = Some(400),
        expect![[r#"
        answer, of 3 calls: ## A

        one

        ## B

        two

        ---

        Not everything went well:

        - It could not be summed up: the budget of this answer is used up.
    "#]],
    );
    // What goes on may still use all that it was given.
    check_with(
        &(two() + "work/1 running\nwork/2 failed away"),
        |rules| rules.tokens = Some(1300),
        expect![[r#"
            wait
        "#]],
    );
}

#[test]
fn where_nobody_can_be_asked_that_is_said() {
    check_with(
        "question Q",
        |rules| rules.obstacle = Some("there is no agent"),
        expect![[r#"
        answer, of 0 calls: I have no answer: there is no agent.
    "#]],
    );
    check_with(
        &(two() + "work/1 running\nwork/2 succeeded two"),
        |rules| rules.obstacle = Some("no agent"),
        expect![[r#"
            wait
        "#]],
    );
    check_with(
        &(two() + "work/1 failed x\nwork/2 succeeded two"),
        |rules| rules.obstacle = Some("no agent"),
        expect![[r#"
            answer, of 2 calls: ## B

            two

            ---

            Not everything went well:

            - **A** (finder): x
            - No agent.
        "#]],
    );
}

#[test]
fn keys_name_the_message_the_round_and_the_step() {
    let board = board(&(two() + "work/1 succeeded one\nwork/2 succeeded two\nlate And C?"));
    let rules = Rules {
        agents: &[],
        planner: "p",
        usual: "u",
        max_tasks: 3,
        max_rounds: 2,
        tokens: None,
        micro_usd: None,
        obstacle: None,
    };
    let keys = decide(&board, &rules).into_iter().map(|step| match step {
        Step::TakeIn { key, .. } | Step::Call { key, .. } => key,
        other => panic!("{other:?}"),
    });
    let (root, late) = (MessageId([1; 16]), MessageId([6; 16]));
    assert_eq!(keys.collect::<Vec<_>>(), [format!("{root}/{late}/late"), format!("{root}/{late}/plan")]);
}
