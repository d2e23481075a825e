//! Questions to people.

use crate::check;
use crate::world::World;
use expect_test::expect;

#[test]
fn a_question_waits_until_it_is_answered() {
    let world = World::new();
    check(
        &world,
        &["run", "agent.yaml", "Which colour?"],
        expect![[r#"
        err: ? RUN1/q1 Which colour?
        err: one of red | blue
        err: answer loopctl ask answer RUN1/q1 red
        err: then loopctl run resume RUN1
        exit 5
    "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 waits
          why it waits for a person
          worker nobody, epoch-1
        ? RUN1/q1 Which colour?
          one of red | blue
          answer loopctl ask answer RUN1/q1 red
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "green"],
        expect![[r#"
        err: error[E-ANSWER]: the answer does not fit RUN1/q1: "green" is not one of "red" or "blue"
        err: why: its schema is {"enum":["red","blue"]}
        err: fix: give an answer that fits; --json takes any JSON value
        exit 2
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last/q7", "red"],
        expect![[r#"
        err: error[E-QUESTION-UNKNOWN]: RUN1 does not ask q7 now
        err: why: it was answered, it expired, or the run has moved on
        err: fix: list them with `loopctl ask list`
        exit 8
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last/q1", "blue"],
        expect![[r#"
        err: RUN1/q1 answered; nobody drives the run now. Go on with loopctl run resume RUN1
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last/q1", "red"],
        expect![[r#"
        err: error[E-RUN-STATE]: RUN1/q1 is answered already
        err: why: the answer waits until somebody drives the run
        err: fix: loopctl run resume RUN1
        exit 8
    "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
        RUN1 waits
          why something waits in its inbox, and nobody drives it
          worker nobody, epoch-1
          inbox 1 item waits
          do loopctl run resume RUN1
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        It is decided.
    "#]],
    );
    check(
        &world,
        &["ask", "list"],
        expect![[r#"
        err: no open questions
    "#]],
    );
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 reader 1
              asked Which colour?
              started MOMENT MOMENT took TIME
              spent 2 iterations · 1,365 tokens limits: 10 iterations
              chain verified, 14 entries, head HASH

               1 model demo 680 tok · TIME
                          I have to ask.
                          → ask {"choices":["red","blue"],"question":"Which colour?"}
               2 ask q1 Which colour? TIME
                          ada: blue
               3 model demo 685 tok · TIME

            completed
              It is decided.
        "#]],
    );
}

#[test]
fn a_declined_question_goes_back_to_the_model() {
    let world = World::new();
    assert_eq!(world.loopctl(&["run", "agent.yaml", "Which colour?"]).code, 5);
    check(
        &world,
        &["ask", "answer", "last", "--decline"],
        expect![[r#"
        err: RUN1/q1 declined; nobody drives the run now. Go on with loopctl run resume RUN1
    "#]],
    );
    check(
        &world,
        &["run", "resume", "last", "-o", "json"],
        expect![[r#"
            {
              "run": "RUN1",
              "status": "ended",
              "outcome": "Completed",
              "output": "It is decided.",
              "iterations": 2,
              "tokens": 1367,
              "spent_micro_usd": 0,
              "exit": 0
            }
        "#]],
    );
}

/// The program died in a call that may have had an effect. Only a loop in Rust has such a call; whoever started it
/// is gone, and a person at the command line says what became of it.
#[test]
fn a_call_that_may_have_happened_asks_a_person() {
    let world = World::new();
    crate::once::dies_in_a_call(&world);
    check(
        &world,
        &["run", "list", "-o", "name"],
        expect![[r#"
        RUN1
    "#]],
    );
    check(
        &world,
        &["ask", "list"],
        expect![[r#"
            ? RUN1/q1 call-1 may have happened, and nobody here can know: the worker died after it might have sent this call and before it recorded a result
              call transfer "7 dollars to Ada"
              answer loopctl ask answer RUN1/q1 landed|failed|retry|unknown
              note it may still land: `failed` and `retry` are taken after MOMENT MOMENT
        "#]],
    );
    check(
        &world,
        &["run", "why"],
        expect![[r#"
            RUN1 waits
              why it waits for a person
              call call-1 transfer unknown · once · given up at MOMENT
              worker nobody, epoch-2
              cannot this machine cannot run it: `pay` is a loop in Rust; start that program again; it goes on with RUN1
            ? RUN1/q1 call-1 may have happened, and nobody here can know: the worker died after it might have sent this call and before it recorded a result
              call transfer "7 dollars to Ada"
              answer loopctl ask answer RUN1/q1 landed|failed|retry|unknown
              note it may still land: `failed` and `retry` are taken after MOMENT MOMENT
        "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "yes"],
        expect![[r#"
        err: error[E-ANSWER]: RUN1/q1 asks what became of a call
        err: fix: answer landed [--output TEXT], failed [--evidence TEXT], retry, or unknown [--evidence TEXT]
        exit 2
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "--decline"],
        expect![[r#"
        err: error[E-ANSWER]: RUN1/q1 cannot be declined
        err: why: a call that may have had an effect stays open until somebody says what became of it
        err: fix: answer `unknown` if nobody can tell; the agent then decides
        exit 2
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last", "retry", "--output", "x"],
        expect![[r#"
        err: error[E-ANSWER]: `retry` does not take that option
        err: fix: landed takes --output; failed and unknown take --evidence
        exit 2
    "#]],
    );
    check(
        &world,
        &["ask", "answer", "last/q1", "landed", "--output", "\"receipt 7\""],
        expect![[r#"
            err: RUN1/q1 answered; nobody drives the run now. Start the program of `pay` again
        "#]],
    );
    check(
        &world,
        &["run", "resume", "last"],
        expect![[r#"
        err: error[E-CANNOT-RUN]: `pay` is a loop in Rust
        err: why: its code is in the program that started it, not in the store
        err: fix: start that program again; it goes on with RUN1
        exit 2
    "#]],
    );
    crate::once::goes_on(&world);
    check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 pay 1
              asked pay
              started MOMENT MOMENT took TIME
              spent 1 iteration · 0 tokens limits: none
              chain verified, 10 entries, head HASH

               1 tool transfer "7 dollars to Ada" unknown · once · TIME
                          the worker died after it might have sent this call and before it recorded a result
               2 recovery the worker died
               3 unknown q1 did the call of transfer happen? TIME
                          it happened: "receipt 7"

            completed
              receipt 7
        "#]],
    );
    check(
        &world,
        &["record", "last", "-o", "once.loopfix"],
        expect![[r#"
        err: once.loopfix written: 10 entries, 2.7 kB
    "#]],
    );
    check(
        &world,
        &["replay", "once.loopfix"],
        expect![[r#"
        err: error[E-REPLAY-RUST]: once.loopfix: `pay` is a loop in Rust
        err: why: its decisions are code that this program does not have; chain and fold verify
        err: fix: replay it in that loop's own tests: looptest::replay(…)
        exit 10
    "#]],
    );
}
