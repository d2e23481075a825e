//! Conversations: what the loop does with what a model says.

use crate::harness::check;
use expect_test::expect;

#[test]
fn an_answer_ends_the_run() {
    check(
        r#"
        start "How many?"
        reply
          text 42
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"42"}],"stop":"end_turn","model":"m"}
            ended
            = Completed "42"
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn tools_run_and_their_results_start_the_next_iteration() {
    check(
        r#"
        start {"question":"What is in a?","limit":3}
        reply tool_use
          text Let me look.
          use c1 read_file {"path":"a.md"}
        tool read_file hello
        reply
          text It says hello.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"c1","name":"read_file","args":"{\"path\":\"a.md\"}"}],"stop":"tool_use","model":"m"}
              call-2 read_file {"path":"a.md"} for c1
            call-2 landed: hello
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"It says hello."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "It says hello."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn tools_of_one_reply_run_at_the_same_time() {
    check(
        r#"
        start "Compare"
        reply tool_use
          use c1 read_file {"path":"a"}
          use c2 read_file {"path":"b"}
          use c3 now
        fail read_file tool.not_found there is no file a
        tool now 12:00
        tool read_file bee
        reply
          text Only b exists.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"read_file","args":"{\"path\":\"a\"}"},{"type":"tool_use","id":"c2","name":"read_file","args":"{\"path\":\"b\"}"},{"type":"tool_use","id":"c3","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-2 read_file {"path":"a"} for c1
              call-3 read_file {"path":"b"} for c2
              call-4 now {} for c3
            call-2 failed tool.not_found: there is no file a
            call-4 landed: 12:00
            call-3 landed: bee
            iteration 2
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[{"type":"text","text":"Only b exists."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Only b exists."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn what_cannot_run_comes_back_to_the_model() {
    check(
        r#"
        start "Go"
        reply tool_use
          use c1 readfile {"path":"a"}
          use c2 shell {}
          use c3 read_file {"path":
          use c4 read_file {"city":"A"}{"city":"B"}
          use c5 read_file {"limit":0,"paht":"a"}
          use c6 read_file ["a"]
          use c7 read_file {"path":"a","path":"/etc/passwd"}
          use c8 read_file {"path":NaN}
          use c9 read_file
        reply
          text I give up.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: 717 bytes
              error for c1: {"error":"tool.unknown","message":"there is no tool `readfile`; the tools are ask, now, pay, read_file, read_result. Did you mean `read_file`?"}
              error for c2: {"error":"tool.unknown","message":"there is no tool `shell`; the tools are ask, now, pay, read_file, read_result."}
              error for c3: {"error":"tool.invalid_args","message":"the arguments were not read: it is not valid JSON: EOF while parsing a value at line 1 column 8. Send one JSON object."}
              error for c4: {"error":"tool.invalid_args","message":"the arguments were not read: it is not valid JSON: trailing characters at line 1 column 13. Send one JSON object."}
              error for c5: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `read_file`; nothing was run","problems":["/limit: expected at least 1","the value: the property \"path\" is missing","the value: unknown: `paht`"]}
              error for c6: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `read_file`; nothing was run","problems":["the value: expected type object"]}
              error for c7: {"error":"tool.invalid_args","message":"the arguments were not read: the key `path` occurs twice. Send one JSON object."}
              error for c8: {"error":"tool.invalid_args","message":"the arguments were not read: it is not valid JSON: expected value at line 1 column 9. Send one JSON object."}
              error for c9: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `read_file`; nothing was run","problems":["the value: the property \"path\" is missing"]}
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"text","text":"I give up."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "I give up."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn good_calls_run_beside_bad_ones() {
    check(
        r#"
        start "Go"
        reply tool_use
          use c1 nope {}
          use c2 read_file {"path":"a"}
        tool read_file ay
        reply
          text Done.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"nope","args":"{}"},{"type":"tool_use","id":"c2","name":"read_file","args":"{\"path\":\"a\"}"}],"stop":"tool_use","model":"m"}
              error for c1: {"error":"tool.unknown","message":"there is no tool `nope`; the tools are ask, now, pay, read_file, read_result."}
              call-2 read_file {"path":"a"} for c2
            call-2 landed: ay
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"Done."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Done."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn arguments_keep_their_exact_text() {
    check(
        r#"
        start "Pay"
        reply tool_use
          use c1 pay {"id":2512292042121000001,"amount":1e400, "z":-0.0,"y":1.0}
          use c2 now   
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"pay","args":"{\"id\":2512292042121000001,\"amount\":1e400, \"z\":-0.0,\"y\":1.0}"},{"type":"tool_use","id":"c2","name":"now","args":"  "}],"stop":"tool_use","model":"m"}
              call-2 pay {"id":2512292042121000001,"amount":1e400, "z":-0.0,"y":1.0} for c1
              call-3 now {} for c2
            = open
              state {"phase":"tools"}
        "#]],
    );
}

#[test]
fn one_id_twice_in_a_reply_runs_once_and_an_id_may_come_back_later() {
    check(
        r#"
        start "Pay"
        reply tool_use
          use c1 pay {"id":1}
          use c1 pay {"id":1}
        tool pay paid
        reply tool_use
          use c1 pay {"id":2}
        tool pay paid
        reply
          text Both paid.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"pay","args":"{\"id\":1}"},{"type":"tool_use","id":"c1","name":"pay","args":"{\"id\":1}"}],"stop":"tool_use","model":"m"}
              call-2 pay {"id":1} for c1
              error for c1: {"error":"tool.duplicate_id","message":"this use of `pay` was not run: an earlier one in the same reply has the same id. Ask for one tool at a time."}
            call-2 landed: paid
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"tool_use","id":"c1","name":"pay","args":"{\"id\":2}"}],"stop":"tool_use","model":"m"}
              call-4 pay {"id":2} for c1
            call-4 landed: paid
            iteration 3
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[{"type":"text","text":"Both paid."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Both paid."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_person_is_asked_and_answers_or_does_not() {
    check(
        r#"
        start "Paint it"
        reply tool_use
          use c1 ask {"question":"Which colour?","choices":["red","blue"]}
          use c2 now {}
        tool now noon
        answer "blue"
        reply tool_use
          use c3 ask {"question":"Sure?"}
        decline
        reply tool_use
          use c4 ask {"question":""}
          use c5 ask {"quest":"x"}
        reply
          text Painted.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"ask","args":"{\"question\":\"Which colour?\",\"choices\":[\"red\",\"blue\"]}"},{"type":"tool_use","id":"c2","name":"now","args":"{}"}],"stop":"tool_use","model":"m"}
              q1 {"kind":"ask","prompt":"Which colour?","schema":"{\"enum\":[\"red\",\"blue\"]}","reply_to":"c1"}
              call-2 now {} for c2
            call-2 landed: noon
            q1 Answered "blue"
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"tool_use","id":"c3","name":"ask","args":"{\"question\":\"Sure?\"}"}],"stop":"tool_use","model":"m"}
              q2 {"kind":"ask","prompt":"Sure?","reply_to":"c3"}
            q2 Declined 
            iteration 3
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"tool_use","id":"c4","name":"ask","args":"{\"question\":\"\"}"},{"type":"tool_use","id":"c5","name":"ask","args":"{\"quest\":\"x\"}"}],"stop":"tool_use","model":"m"}
              error for c4: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `ask`; nothing was run","problems":["/question: expected at least 1 characters"]}
              error for c5: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `ask`; nothing was run","problems":["the value: the property \"question\" is missing","the value: unknown: `quest`"]}
            iteration 4
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[{"type":"text","text":"Painted."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Painted."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn the_output_is_repaired_once() {
    check(
        r#"
        output {"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]}
        start "How many?"
        reply
          text It is 42.
        reply
          text Here:\n```json\n{"answer": 42, "big": 9007199254740993}\n```
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"It is 42."}],"stop":"end_turn","model":"m"}
              note The answer was not accepted (agent.output_schema):
                   - it is not valid JSON: expected value at line 1 column 1
                   Answer again with one JSON value that matches the schema, and nothing else.
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"text","text":"Here:\n```json\n{\"answer\": 42, \"big\": 9007199254740993}\n```"}],"stop":"end_turn","model":"m"}
            ended
            = Completed {"answer": 42, "big": 9007199254740993}
              state {"phase":"idle","repairs":1}
        "#]],
    );
}

#[test]
fn an_output_that_stays_wrong_fails() {
    check(
        r#"
        output {"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]}
        start "How many?"
        reply
          text {"answer":"many"}
        reply tool_use
          use c1 now {}
        tool now noon
        reply
          text {"answer":"lots"}
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"{\"answer\":\"many\"}"}],"stop":"end_turn","model":"m"}
              note The answer was not accepted (agent.output_schema):
                   - /answer: expected type integer
                   Answer again with one JSON value that matches the schema, and nothing else.
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":"{}"}],"stop":"tool_use","model":"m"}
              call-3 now {} for c1
            call-3 landed: noon
            iteration 3
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"text","text":"{\"answer\":\"lots\"}"}],"stop":"end_turn","model":"m"}
            ended
            = Failed agent.output_schema: the answer does not match spec.output.schema:
            - /answer: expected type integer
            It was: {"answer":"lots"}
              state {"phase":"idle","repairs":1}
        "#]],
    );
}

#[test]
fn refusals_cuts_and_unknown_stops_are_no_answers() {
    check(
        r#"
        start "Do harm"
        reply refusal
          text I can not help with that.
          use c1 now {}
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"I can not help with that."},{"type":"tool_use","id":"c1","name":"now","args":"{}"}],"stop":"refusal","model":"m"}
            ended
            = Failed agent.refused: the model refused: I can not help with that.
              state {"phase":"model"}
        "#]],
    );
    check(
        r#"
        start "Tell all"
        reply length
          text Once upon a
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"Once upon a"}],"stop":"length","model":"m"}
            ended
            = Failed agent.output_truncated: the output limit of 100 tokens cut the answer; raise spec.model.maxOutputTokens. It began: Once upon a
              state {"phase":"model"}
        "#]],
    );
    check(
        r#"
        start "Tell all"
        reply insufficient_system_resource
          text Once upon a
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"Once upon a"}],"stop":{"other":"insufficient_system_resource"},"model":"m"}
            ended
            = Failed agent.unknown_stop: the model stopped for the unknown reason `insufficient_system_resource` after: Once upon a
              state {"phase":"model"}
        "#]],
    );
}

/// Two model calls, one answer, and nobody speaks in between.
#[test]
fn ant_03_a_paused_turn_goes_on() {
    check(
        r#"
        start "Search"
        reply pause_turn
          text I look.
        reply
          text Found.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"I look."}],"stop":{"other":"pause_turn"},"model":"m"}
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"text","text":"Found."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Found."
              state {"phase":"idle"}
        "#]],
    );
    // What pauses for ever ends at the limit of iterations.
    check(
        r#"
        limits iterations=2
        start "Search"
        reply pause_turn
        reply pause_turn
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[],"stop":{"other":"pause_turn"},"model":"m"}
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[],"stop":{"other":"pause_turn"},"model":"m"}
            parked: BudgetExceeded { breach: Breach { dimension: Iterations, limit: 2, used: 2, needed: 1 } }
            = parked BudgetExceeded
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_cut_reply_with_complete_tool_uses_goes_on() {
    check(
        r#"
        start "Look"
        reply length
          use c1 now
          use c2 read_file {"path":"a"}
        tool now noon
        tool read_file ay
        reply length
          use c1 now {}
          use c2 now
        tool now noon
        reply
          text Done.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""},{"type":"tool_use","id":"c2","name":"read_file","args":"{\"path\":\"a\"}"}],"stop":"length","model":"m"}
              call-2 now {} for c1
              call-3 read_file {"path":"a"} for c2
            call-2 landed: noon
            call-3 landed: ay
            iteration 2
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":"{}"},{"type":"tool_use","id":"c2","name":"now","args":""}],"stop":"length","model":"m"}
              call-5 now {} for c1
              error for c2: {"error":"tool.invalid_args","message":"the arguments are missing: the output limit cut the reply"}
            call-5 landed: noon
            iteration 3
              call-6 model openai/m ≤100
            call-6 landed: {"parts":[{"type":"text","text":"Done."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Done."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn an_empty_reply_gets_one_more_chance() {
    check(
        r#"
        start "Well?"
        reply
          text  
        reply tool_use
          use c1 now {}
        tool now noon
        reply tool_use
          text I will use a tool.
        reply
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":" "}],"stop":"end_turn","model":"m"}
              note Your last reply was empty. Use a tool, or answer.
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":"{}"}],"stop":"tool_use","model":"m"}
              call-3 now {} for c1
            call-3 landed: noon
            iteration 3
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"text","text":"I will use a tool."}],"stop":"tool_use","model":"m"}
              note You announced the use of a tool, and none came. Use the tool, or answer.
            iteration 4
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[],"stop":"end_turn","model":"m"}
            ended
            = Failed agent.empty_reply: the model said nothing twice
              state {"phase":"idle","empty":2}
        "#]],
    );
}

#[test]
fn a_failing_model_fails_the_run_with_its_own_code() {
    check(
        r#"
        start "Well?"
        fail model model.unauthorised the key is wrong
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 failed model.unauthorised: the key is wrong
            ended
            = Failed model.unauthorised: the key is wrong
              state {"phase":"model"}
        "#]],
    );
}

#[test]
fn a_breach_parks_and_a_raise_goes_on() {
    check(
        r#"
        limits iterations=1
        start "Look"
        reply tool_use
          use c1 now {}
        tool now noon
        reopen iterations=2
        reply
          text It is noon.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":"{}"}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
            call-2 landed: noon
            parked: BudgetExceeded { breach: Breach { dimension: Iterations, limit: 1, used: 1, needed: 1 } }
            reopened
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"It is noon."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "It is noon."
              state {"phase":"idle"}
        "#]],
    );
    check(
        r#"
        limits tokens=1500
        start "Look"
        reply tool_use
          use c1 read_file {"path":"a"}
        tool read_file x*2000
        reopen tokens=5000
        reply
          text Many letters.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"read_file","args":"{\"path\":\"a\"}"}],"stop":"tool_use","model":"m"}
              call-2 read_file {"path":"a"} for c1
            call-2 landed: 2000 bytes
            iteration 2
              call-3 model openai/m ≤100
            parked: BudgetExceeded { breach: Breach { dimension: Tokens, limit: 1500, used: 15, needed: 1851 } }
            reopened
            call-3 landed: {"parts":[{"type":"text","text":"Many letters."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Many letters."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_reply_that_the_budget_cut_parks_instead_of_failing() {
    check(
        r#"
        limits tokens=790
        start "Tell all"
        reply length
          text Once upon a
        reopen tokens=5000
        reply
          text Once, briefly.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
              call-1 has room for 28 tokens only
            call-1 landed: {"parts":[{"type":"text","text":"Once upon a"}],"stop":"length","model":"m"}
              note Your last reply was cut off. Answer again, in fewer words.
            iteration 2
              call-2 model openai/m ≤100
            parked: BudgetExceeded { breach: Breach { dimension: Tokens, limit: 790, used: 15, needed: 874 } }
            reopened
            call-2 landed: {"parts":[{"type":"text","text":"Once, briefly."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Once, briefly."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_message_that_arrives_during_the_answer_is_not_lost() {
    check(
        r#"
        start "Count"
        signal message and name them
        signal other not for the model
        reply
          text Two.
        reply
          text Two: Ann and Bo.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            signal message: and name them
            signal other: not for the model
            call-1 landed: {"parts":[{"type":"text","text":"Two."}],"stop":"end_turn","model":"m"}
              note A message arrived while you were writing that reply; it stands before the reply. Take it into account and answer again.
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"text","text":"Two: Ann and Bo."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Two: Ann and Bo."
              state {"phase":"idle"}
        "#]],
    );
    check(
        r#"
        start "Count"
        reply tool_use
          use c1 now {}
        signal message and name them
        tool now noon
        reply
          text Two: Ann and Bo.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":"{}"}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
            signal message: and name them
            call-2 landed: noon
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"Two: Ann and Bo."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Two: Ann and Bo."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_call_that_a_crash_left_in_doubt_is_told_to_the_model_once_a_person_looked() {
    check(
        r#"
        start "Pay"
        reply tool_use
          use c1 pay {"id":1}
          use c2 read_file {"path":"a"}
        crash
        tool read_file ay
        answer {"call":"unknown","evidence":"the bank is closed"}
        crash
        reply
          text I do not know.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"pay","args":"{\"id\":1}"},{"type":"tool_use","id":"c2","name":"read_file","args":"{\"path\":\"a\"}"}],"stop":"tool_use","model":"m"}
              call-2 pay {"id":1} for c1
              call-3 read_file {"path":"a"} for c2
            recovered
            call-2 unknown: the worker died after it might have sent this call and before it recorded a result
            call-3 landed: ay
            q1 Answered {"call":"unknown","evidence":"the bank is closed"}
            resolved
            iteration 2
              call-4 model openai/m ≤100
            recovered
            call-4 landed: {"parts":[{"type":"text","text":"I do not know."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "I do not know."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn an_input_that_is_no_question_is_refused() {
    check(
        "start 42",
        expect![[r#"
        refused: expected a question as a JSON string, or a JSON object (agent.input)
        = open
          state 
    "#]],
    );
    check(
        r#"start "  ""#,
        expect![[r#"
        refused: expected a question as a JSON string, or a JSON object (agent.input)
        = open
          state 
    "#]],
    );
    check(
        "start {\"a\":",
        expect![[r#"
        refused: expected a question as a JSON string, or a JSON object: EOF while parsing a value at line 1 column 5 (agent.input)
        = open
          state 
    "#]],
    );
}
