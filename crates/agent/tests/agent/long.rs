//! Long work: other models take over, the window fills, other Agents help, people interrupt.

use crate::harness::check;
use expect_test::expect;

const FALLBACK: &str = "spec fallbacks: [ { model: { provider: anthropic, name: c, maxOutputTokens: 50 } } ]";

fn with_fallback(script: &str, expected: expect_test::Expect) {
    check(&format!("{FALLBACK}\n{script}"), expected);
}

#[test]
fn another_model_takes_over_in_the_middle_and_no_tool_runs_twice() {
    with_fallback(
        r#"
        start "Pay"
        reply tool_use
          use c1 pay {"id":7}
        tool pay paid
        fail model model.rate_limited rate limited: too many requests
        reply tool_use
          use c2 now {}
        tool now noon
        reply
          text Paid at noon.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"pay","args":"{\"id\":7}"}],"stop":"tool_use","model":"m"}
              call-2 pay {"id":7} for c1
            call-2 landed: paid
            iteration 2
              call-3 model openai/m ≤100
            call-3 failed model.rate_limited: rate limited: too many requests
              call-4 model anthropic/c ≤50
            call-4 landed: {"parts":[{"type":"tool_use","id":"c2","name":"now","args":"{}"}],"stop":"tool_use","model":"m"}
              call-5 now {} for c2
            call-5 landed: noon
            iteration 3
              call-6 model anthropic/c ≤50
            call-6 landed: {"parts":[{"type":"text","text":"Paid at noon."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Paid at noon."
              state {"phase":"idle","model":1}
        "#]],
    );
}

#[test]
fn a_wrong_request_stays_wrong_with_every_model() {
    with_fallback(
        r#"
        start "Go"
        fail model model.rejected no such parameter
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 failed model.rejected: no such parameter
            ended
            = Failed model.rejected: no such parameter
              state {"phase":"model"}
        "#]],
    );
}

#[test]
fn the_last_model_that_fails_ends_the_run() {
    with_fallback(
        r#"
        start "Go"
        fail model model.unavailable nobody there
        fail model model.unavailable nobody there either
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 failed model.unavailable: nobody there
              call-2 model anthropic/c ≤50
            call-2 failed model.unavailable: nobody there either
            ended
            = Failed model.unavailable: nobody there either
              state {"phase":"model","model":1}
        "#]],
    );
}

#[test]
fn a_refusal_is_answered_by_another_model_only_where_that_is_said() {
    check(
        r#"
        spec fallbacks: [ { model: { provider: gemini, name: g }, on: [refused] } ]
        start "Go"
        reply refusal
          text I will not.
        reply refusal
          text Nor will I.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"I will not."}],"stop":"refusal","model":"m"}
              note That reply was another model's. Answer in its place.
              call-2 model gemini/g ≤4096
            call-2 landed: {"parts":[{"type":"text","text":"Nor will I."}],"stop":"refusal","model":"m"}
            ended
            = Failed agent.refused: the model refused: Nor will I.
              state {"phase":"model","model":1}
        "#]],
    );
}

#[test]
fn a_full_window_is_summarised_and_the_work_goes_on() {
    check(
        r#"
        window 1000
        start "Read all"
        usage 400
        reply tool_use
          use c1 read_file {"path":"a"}
        tool read_file x*1500
        reply
          text Task: read all. Read a, it holds x.
        usage 40
        reply
          text Done.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"read_file","args":"{\"path\":\"a\"}"}],"stop":"tool_use","model":"m"}
              call-2 read_file {"path":"a"} for c1
            call-2 landed: 1500 bytes
            iteration 2
              call-3 model openai/m ≤100 aside, results of 4000
            call-3 landed: {"parts":[{"type":"text","text":"Task: read all. Read a, it holds x."}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      Task: read all. Read a, it holds x.
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"text","text":"Done."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Done."
              state {"phase":"idle","seen":{"tokens":45,"bytes":215},"compacted":{"iteration":2,"row":1}}
        "#]],
    );
}

#[test]
fn what_the_provider_calls_too_long_is_summarised_once_and_then_ends_clearly() {
    check(
        r#"
        start "Read all"
        reply tool_use
          use c1 read_file {"path":"a"}
        tool read_file x*1500
        fail model model.too_large prompt is too long: 210000 tokens > 200000
        fail model model.too_large prompt is too long: 210000 tokens > 200000
        reply
          text Task: read all. Read a.
        fail model model.too_large prompt is too long: 210000 tokens > 200000
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"read_file","args":"{\"path\":\"a\"}"}],"stop":"tool_use","model":"m"}
              call-2 read_file {"path":"a"} for c1
            call-2 landed: 1500 bytes
            iteration 2
              call-3 model openai/m ≤100
            call-3 failed model.too_large: prompt is too long: 210000 tokens > 200000
              call-4 model openai/m ≤100 aside, results of 4000
            call-4 failed model.too_large: prompt is too long: 210000 tokens > 200000
              call-5 model openai/m ≤100 aside, results of 200
            call-5 landed: {"parts":[{"type":"text","text":"Task: read all. Read a."}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      Task: read all. Read a.
              call-6 model openai/m ≤100
            call-6 failed model.too_large: prompt is too long: 210000 tokens > 200000
            ended
            = Failed agent.context_full: the conversation is too long for the model: a summary did not make it fit; choose a model with a larger window, or give the work in smaller parts
              state {"phase":"model","compacted":{"iteration":2,"row":1}}
        "#]],
    );
}

#[test]
fn summaries_that_follow_each_other_end_the_run() {
    check(
        r#"
        window 300
        start "Read all"
        usage 400
        reply tool_use
          use c1 now
        tool now x*200
        reply
          text one
        reply tool_use
          use c2 now
        tool now x*200
        reply
          text two
        reply tool_use
          use c3 now
        tool now x*200
        reply
          text three
        reply tool_use
          use c4 now
        tool now x*200
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
            call-2 landed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            iteration 2
              call-3 model openai/m ≤100 aside, results of 4000
            call-3 landed: {"parts":[{"type":"text","text":"one"}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      one
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"tool_use","id":"c2","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-5 now {} for c2
            call-5 landed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            iteration 3
              call-6 model openai/m ≤100 aside, results of 4000
            call-6 landed: {"parts":[{"type":"text","text":"two"}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      two
              call-7 model openai/m ≤100
            call-7 landed: {"parts":[{"type":"tool_use","id":"c3","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-8 now {} for c3
            call-8 landed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            iteration 4
              call-9 model openai/m ≤100 aside, results of 4000
            call-9 landed: {"parts":[{"type":"text","text":"three"}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      three
              call-10 model openai/m ≤100
            call-10 landed: {"parts":[{"type":"tool_use","id":"c4","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-11 now {} for c4
            call-11 landed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            iteration 5
            ended
            = Failed agent.context_full: the conversation is too long for the model: the conversation fills the model's window again at once, summary after summary; choose a model with a larger window, or give the work in smaller parts
              state {"phase":"tools","seen":{"tokens":405,"bytes":207},"compacted":{"iteration":4,"row":3}}
        "#]],
    );
}

#[test]
fn no_summary_is_wanted_where_the_manifest_says_so() {
    check(
        r#"
        spec context: { compact: false }
        window 300
        start "Read all"
        usage 400
        reply tool_use
          use c1 now
        tool now x*200
        fail model model.too_large too long
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
            call-2 landed: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            iteration 2
              call-3 model openai/m ≤100
            call-3 failed model.too_large: too long
            ended
            = Failed model.too_large: too long
              state {"phase":"model","seen":{"tokens":405,"bytes":104}}
        "#]],
    );
}

const HELPERS: &str = "spec agents: [ { name: scout, manifest: s.yaml, limits: { iterations: 2, tokens: 900 } }, \
                       { name: critic, manifest: c.yaml, description: Judges. } ]";

#[test]
fn tasks_go_to_other_agents_and_their_answers_come_back() {
    check(
        &format!(
            "{HELPERS}\n{}",
            r#"
        start "Find it"
        reply tool_use
          use c1 scout {"task":"Find \"it\"."}
          use c2 critic {"task":"Judge."}
          use c3 scout {"job":"?"}
        child completed "It is here."
        child failed nothing to judge
        reply
          text Here.
        "#
        ),
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"scout","args":"{\"task\":\"Find \\\"it\\\".\"}"},{"type":"tool_use","id":"c2","name":"critic","args":"{\"task\":\"Judge.\"}"},{"type":"tool_use","id":"c3","name":"scout","args":"{\"job\":\"?\"}"}],"stop":"tool_use","model":"m"}
              call-2 scout as scout:c1 {"iterations":2,"tokens":900}: "Find \"it\"."
              call-3 critic as critic:c2 {"iterations":3}: "Judge."
              error for c3: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `scout`; nothing was run","problems":["the value: the property \"task\" is missing","the value: unknown: `job`"]}
            child_ended
            child_ended
            iteration 2
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"text","text":"Here."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Here."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn an_agent_that_used_up_its_limits_is_given_up() {
    check(
        &format!(
            "{HELPERS}\n{}",
            r#"
        start "Find it"
        reply tool_use
          use c1 scout {"task":"Find it."}
        child parked
        child cancelled it was stopped: its limits for this task are used up
        reply
          text Nobody knows.
        "#
        ),
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"scout","args":"{\"task\":\"Find it.\"}"}],"stop":"tool_use","model":"m"}
              call-2 scout as scout:c1 {"iterations":2,"tokens":900}: "Find it."
            child_parked
              cancel scout:c1: it was stopped: its limits for this task are used up, and what it found is lost
            child_ended
            iteration 2
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"Nobody knows."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Nobody knows."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_skill_is_read_when_it_is_wanted() {
    check(
        r#"
        spec context: { skills: [ ./skills ] }
        skill tidy when it is untidy: Sweep, then mop.
        start "Tidy up"
        reply tool_use
          use c1 use_skill {"name":"tidy"}
          use c2 use_skill {"name":"cook"}
        reply
          text Swept and mopped.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"use_skill","args":"{\"name\":\"tidy\"}"},{"type":"tool_use","id":"c2","name":"use_skill","args":"{\"name\":\"cook\"}"}],"stop":"tool_use","model":"m"}
              result for c1: Sweep, then mop.
              error for c2: {"error":"tool.invalid_args","message":"the arguments do not fit the schema of `use_skill`; nothing was run","problems":["/name: expected one of [\"tidy\"]"]}
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"text","text":"Swept and mopped."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Swept and mopped."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_conversation_waits_for_the_next_message() {
    check(
        r#"
        converse
        start "Hello"
        reply
          text Hello. What can I do?
        signal message "What is the time?"
        reply tool_use
          use c1 now
        tool now noon
        reply
          text Noon.
        signal message "And now?"
        fail model model.unavailable nobody there
        signal message "Hello?"
        reply refusal
          text No.
        signal finish 1
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"Hello. What can I do?"}],"stop":"end_turn","model":"m"}
              speak Hello. What can I do?
              wait message
            signal message: "What is the time?"
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-3 now {} for c1
            call-3 landed: noon
            iteration 3
              call-4 model openai/m ≤100
            call-4 landed: {"parts":[{"type":"text","text":"Noon."}],"stop":"end_turn","model":"m"}
              speak Noon.
              wait message
            signal message: "And now?"
            iteration 4
              call-5 model openai/m ≤100
            call-5 failed model.unavailable: nobody there
              speak [model.unavailable] nobody there
              wait message
            signal message: "Hello?"
            iteration 5
              call-6 model openai/m ≤100
            call-6 landed: {"parts":[{"type":"text","text":"No."}],"stop":"refusal","model":"m"}
              speak [agent.refused] the model refused: No.
              wait message
            signal finish: 1
            ended
            = Completed null
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn an_interrupt_gives_up_what_may_be_cut_and_waits_for_a_message() {
    check(
        &format!(
            "{HELPERS}\n{}",
            r#"
        start "Do it all"
        reply tool_use
          use c1 now
          use c2 pay {"id":1}
          use c3 scout {"task":"Find it."}
        signal interrupt "stop"
        tool pay paid
        child cancelled the person whom it works for interrupted the work
        signal message "Only tell me what you did."
        reply
          text I paid.
        "#
        ),
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""},{"type":"tool_use","id":"c2","name":"pay","args":"{\"id\":1}"},{"type":"tool_use","id":"c3","name":"scout","args":"{\"task\":\"Find it.\"}"}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
              call-3 pay {"id":1} for c2
              call-4 scout as scout:c3 {"iterations":2,"tokens":900}: "Find it."
            signal interrupt: "stop"
              cancel calls
              cancel scout:c3: the person whom it works for interrupted the work
              wait message
            call-2 cancelled call.cancelled: interrupted
            call-3 landed: paid
            child_ended
            signal message: "Only tell me what you did."
            iteration 2
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[{"type":"text","text":"I paid."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "I paid."
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn an_interrupt_while_nothing_is_under_way_changes_nothing() {
    check(
        r#"
        converse
        start "Hello"
        reply
          text Hello.
        signal interrupt 1
        signal message "Go on."
        signal interrupt 1
        signal message "Or not."
        reply
          text Fine.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"Hello."}],"stop":"end_turn","model":"m"}
              speak Hello.
              wait message
            signal interrupt: 1
            signal message: "Go on."
            iteration 2
              call-2 model openai/m ≤100
            signal interrupt: 1
              cancel calls
              wait message
            call-2 cancelled call.cancelled: interrupted
            signal message: "Or not."
            iteration 3
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"Fine."}],"stop":"end_turn","model":"m"}
              speak Fine.
              wait message
            = waits for a person
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn a_summary_that_is_cut_or_refused_replaces_nothing() {
    check(
        r#"
        window 1000
        start "Read all"
        usage 950
        reply tool_use
          use c1 now
        tool now x*20
        reply length
          text The task
        reply refusal
          text No.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
            call-2 landed: xxxxxxxxxxxxxxxxxxxx
            iteration 2
              call-3 model openai/m ≤100 aside, results of 4000
            call-3 landed: {"parts":[{"type":"text","text":"The task"}],"stop":"length","model":"m"}
              call-4 model openai/m ≤100 aside, results of 200
            call-4 landed: {"parts":[{"type":"text","text":"No."}],"stop":"refusal","model":"m"}
            ended
            = Failed agent.context_full: the conversation is too long for the model: the model wrote no complete summary of it; choose a model with a larger window, or give the work in smaller parts
              state {"phase":"tight_summary","seen":{"tokens":955,"bytes":104}}
        "#]],
    );
}

#[test]
fn a_summary_that_the_budget_cut_parks_and_goes_on_whole() {
    check(
        r#"
        limits tokens=1450
        window 1000
        start "Read all"
        usage 600
        reply tool_use
          use c1 now
        tool now x*700
        reply length
          text The task
        reopen tokens=9000
        reply
          text Task: read all.
        reply
          text Done.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"now","args":""}],"stop":"tool_use","model":"m"}
              call-2 now {} for c1
            call-2 landed: 700 bytes
            iteration 2
              call-3 model openai/m ≤100 aside, results of 4000
              call-3 has room for 93 tokens only
            call-3 landed: {"parts":[{"type":"text","text":"The task"}],"stop":"length","model":"m"}
            iteration 3
              call-4 model openai/m ≤100 aside, results of 4000
            parked: BudgetExceeded { breach: Breach { dimension: Tokens, limit: 1450, used: 1210, needed: 753 } }
            reopened
            call-4 landed: {"parts":[{"type":"text","text":"Task: read all."}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      Task: read all.
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[{"type":"text","text":"Done."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Done."
              state {"phase":"idle","seen":{"tokens":605,"bytes":195},"compacted":{"iteration":3,"row":1}}
        "#]],
    );
}

#[test]
fn a_window_that_cut_the_answer_is_summarised() {
    check(
        r#"
        start "Read all"
        reply model_context_window_exceeded
          text It begins
        reply
          text Task: read all.
        reply
          text Done.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"text","text":"It begins"}],"stop":{"other":"model_context_window_exceeded"},"model":"m"}
              call-2 model openai/m ≤100 aside, results of 4000
            call-2 landed: {"parts":[{"type":"text","text":"Task: read all."}],"stop":"end_turn","model":"m"}
              compact [These notes take the place of the conversation so far. The task stands above; go on from here.]
                      Task: read all.
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"text","text":"Done."}],"stop":"end_turn","model":"m"}
            ended
            = Completed "Done."
              state {"phase":"idle","compacted":{"iteration":1,"row":1}}
        "#]],
    );
}

#[test]
fn an_interrupt_after_a_message_goes_on_with_the_message() {
    check(
        r#"
        converse
        start "Count"
        signal message "Count sheep instead."
        signal interrupt 1
        reply
          text One sheep.
        signal message "And a colour?"
        reply tool_use
          use c1 ask {"question":"Which?"}
          use c2 now
        signal interrupt 1
        signal message "Never mind."
        reply
          text Fine.
        "#,
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            signal message: "Count sheep instead."
            signal interrupt: 1
              cancel calls
            call-1 cancelled call.cancelled: interrupted
            iteration 2
              call-2 model openai/m ≤100
            call-2 landed: {"parts":[{"type":"text","text":"One sheep."}],"stop":"end_turn","model":"m"}
              speak One sheep.
              wait message
            signal message: "And a colour?"
            iteration 3
              call-3 model openai/m ≤100
            call-3 landed: {"parts":[{"type":"tool_use","id":"c1","name":"ask","args":"{\"question\":\"Which?\"}"},{"type":"tool_use","id":"c2","name":"now","args":""}],"stop":"tool_use","model":"m"}
              q1 {"kind":"ask","prompt":"Which?","reply_to":"c1"}
              call-4 now {} for c2
            signal interrupt: 1
              cancel calls
              wait message
            call-4 cancelled call.cancelled: interrupted
            q1 Withdrawn 
            signal message: "Never mind."
            iteration 4
              call-5 model openai/m ≤100
            call-5 landed: {"parts":[{"type":"text","text":"Fine."}],"stop":"end_turn","model":"m"}
              speak Fine.
              wait message
            = waits for a person
              state {"phase":"idle"}
        "#]],
    );
}

#[test]
fn an_agent_that_cannot_begin_is_no_longer_waited_for() {
    check(
        &format!(
            "{HELPERS}\n{}",
            r#"
        limits iterations=9 tokens=6000
        start "Find it"
        reply tool_use
          use c1 scout {"task":"Find it."}
        fail scout:c1 child.too_deep too deep
        signal interrupt 1
        "#
        ),
        expect![[r#"
            iteration 1
              call-1 model openai/m ≤100
            call-1 landed: {"parts":[{"type":"tool_use","id":"c1","name":"scout","args":"{\"task\":\"Find it.\"}"}],"stop":"tool_use","model":"m"}
              call-2 scout as scout:c1 {"iterations":2,"tokens":900}: "Find it."
            call-2 failed child.too_deep: too deep
            iteration 2
              call-3 model openai/m ≤100
            signal interrupt: 1
              cancel calls
              wait message
            call-3 cancelled call.cancelled: interrupted
            = waits for a person
              state {"phase":"idle"}
        "#]],
    );
}
