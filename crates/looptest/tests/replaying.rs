//! Recorded Runs, replayed as a user's tests would.

#[cfg(test)]
mod world;

#[cfg(test)]
mod replaying {
    use super::world::{Receipt, Refund, Seen, agent, asked, price, refund, refunded, run, script};
    use expect_test::{Expect, expect, expect_file};
    use loopd_fixture::{Fixture, Secrets, write};
    use loopd_kernel::{MicroUsd, erase};
    use loopd_runtime::{ModelError, Program, RunEnd};
    use looptest::{Recorded, Replayed, ScriptedModel, replay, replay_fixture, state_is_ordered};
    use serde::{Deserialize, Serialize};
    use serde_json::json;
    use std::collections::{BTreeMap, HashMap};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Arc, LazyLock};

    /// What a failing test says.
    fn said<T>(test: impl FnOnce() -> T) -> String {
        let panic = catch_unwind(AssertUnwindSafe(|| drop(test()))).expect_err("the test was expected to fail");
        let text = panic.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| panic.downcast_ref::<&str>().copied().unwrap_or_default().to_owned())
    }

    fn fails<T>(test: impl FnOnce() -> T, expected: Expect) {
        expected.assert_eq(&said(test));
    }

    fn bytes(fixture: &Fixture) -> String {
        String::from_utf8(write(fixture, &Secrets::patterns()).unwrap()).unwrap()
    }

    fn compare_recordings() {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        expect_file!["../testdata/refund.loopfix"].assert_eq(&bytes(&tokio.block_on(refunded())));
        expect_file!["../testdata/clerk.loopfix"].assert_eq(&bytes(&tokio.block_on(asked(&script()))));
    }

    /// With UPDATE_EXPECT the recordings are made anew, before anything is replayed.
    static UPDATED: LazyLock<()> = LazyLock::new(|| {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            compare_recordings();
        }
    });

    fn refund_file() -> Recorded {
        *UPDATED;
        replay("testdata/refund.loopfix")
    }

    fn clerk_file() -> Recorded {
        *UPDATED;
        replay("testdata/clerk.loopfix")
    }

    /// Otherwise UPDATE_EXPECT=1 is wanted: the format or the Loop has changed.
    #[test]
    fn the_committed_recordings_are_what_this_build_records() {
        *UPDATED;
        compare_recordings();
    }

    #[test]
    fn a_loop_in_rust_replays() {
        let run = refund_file().with_loop(Refund::default()).strict();
        run.expect_tools(&["price", "refund"])
            .expect_tools_unordered(&["refund", "price"])
            .expect_tool_args(0, r#""A17""#)
            .expect_tool_args(1, json!({ "cents": 4200, "order": "A17" }))
            .expect_iterations_at_most(1)
            .expect_model_calls_at_most(0)
            .expect_tokens_at_most(0)
            .expect_spend_at_most(MicroUsd(0))
            .expect_spoken("4200 cents")
            .expect_state_ordered::<Seen>()
            .expect_trajectory("testdata/refund.txt");
        assert_eq!(run.expect_completed::<Receipt>(), Receipt { cents: 4200 });
        assert_eq!(run.expect_state::<Seen>().prices, BTreeMap::from([("A17".into(), 4200)]));
        run.expect_outcome("Completed");
    }

    #[test]
    fn an_agent_needs_nothing_but_the_file() {
        let run = clerk_file().strict();
        run.expect_tools(&["price"]).expect_tool_args(0, json!({ "order": "A17" })).expect_spend_at_most(MicroUsd(100));
        assert_eq!(run.expect_completed::<String>(), "It costs $42.");
    }

    /// A recording is replayed by the rules of the form in which its agent was written down.
    #[test]
    fn an_agent_of_the_first_form_replays() {
        let run = replay("testdata/clerk-first-form.loopfix").strict();
        assert_eq!(run.expect_completed::<String>(), "It costs $42.");
    }

    #[test]
    fn a_loop_that_decides_otherwise_is_shown() {
        let half = || Refund { percent: 50, ..Refund::default() };
        let other_words = || Refund { greeting: "Paid", ..Refund::default() };
        fails(
            || refund_file().with_loop(half()).strict(),
            expect![[r#"
            testdata/refund.loopfix does not replay: entry 6: the arguments differ
            --- recorded
            +++ today
            @@ -1 +1 @@
            -tool refund {"order":"A17","cents":4200} as call-2
            +tool refund {"order":"A17","cents":2100} as call-2
            the steps before it:
                3  tool     price "A17"  [0 ms]
                            = 4200
        "#]],
        );
        fails(
            || refund_file().with_loop(other_words()).strict(),
            expect![[r#"
            testdata/refund.loopfix does not replay: entry 9: the arguments differ
            --- recorded
            +++ today
            @@ -1,2 +1,2 @@
             finish {"cents":4200}
            -speak Refunded 4200 cents
            +speak Paid 4200 cents
            the steps before it:
                3  tool     price "A17"  [0 ms]
                            = 4200
                6  tool     refund {"order":"A17","cents":4200}  [0 ms]
                            = {"ok":true}
        "#]],
        );
        // The same calls in the same order are enough for the structure.
        drop(refund_file().with_loop(half()).structure());
    }

    #[test]
    fn an_agent_that_was_changed_is_shown() {
        let verbose = || Arc::new(agent("Be verbose."));
        fails(
            || clerk_file().with_definition(verbose()).strict(),
            expect![[r#"
                testdata/clerk.loopfix does not replay: entry 1: the definition differs
                the agent or loop of today is not the one that was recorded (definition qRo-OjA-jH0Y…, recorded ySBMc8b2oX9p…); `.structure()` compares the calls only
            "#]],
        );
        drop(clerk_file().with_definition(verbose()).structure());
    }

    #[test]
    fn without_its_loop_nothing_is_claimed() {
        fails(
            || refund_file().strict(),
            expect![
                "testdata/refund.loopfix cannot be replayed: `refund` is a loop in Rust, whose code is not in the file; give it to the test: `replay(…).with_loop(MyLoop).strict()`, or check chain and fold only: `replay(…).as_recorded()`"
            ],
        );
        fails(
            || clerk_file().with_loop(Refund::default()).strict(),
            expect!["testdata/clerk.loopfix is a recording of the loop `clerk`; the test gives it `refund`"],
        );
        refund_file().as_recorded().expect_tools(&["price", "refund"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bad_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.loopfix");
        std::fs::write(&path, bytes(&refunded().await).replacen("\"4200\"", "\"9200\"", 1)).unwrap();
        let message = said(|| replay(&path));
        assert!(
            message.ends_with("bad.loopfix: line 6 (entry 5): entry 5 was edited: it is not what was committed"),
            "{message}"
        );
        let message = said(|| replay("testdata/absent.loopfix"));
        assert!(
            message.starts_with("there is no testdata/absent.loopfix; looked for testdata/absent.loopfix"),
            "{message}"
        );
    }

    #[test]
    fn expectations_say_what_happened() {
        type Check = fn(&Replayed) -> String;
        let checks: [Check; 9] = [
            |run| said(|| run.expect_outcome("Failed").name()),
            |run| said(|| run.expect_completed::<u32>()),
            |run| said(|| run.expect_tools(&["price", "mail", "refund"]).name()),
            |run| said(|| run.expect_tools_unordered(&["price"]).name()),
            |run| said(|| run.expect_tool_args(1, json!({ "order": "A18", "cents": 4200 })).name()),
            |run| said(|| run.expect_tool_args(2, "{}").name()),
            |run| said(|| run.expect_iterations_at_most(0).name()),
            |run| said(|| run.expect_spoken("Sorry").name()),
            |run| said(|| run.expect_state::<u32>()),
        ];
        let run = refund_file().as_recorded();
        let mut all = String::new();
        for check in checks {
            let message = check(&run);
            // After the point comes the whole trajectory, which has its own test.
            let point = message.lines().take_while(|line| !line.starts_with("run_"));
            all.push_str(point.collect::<Vec<_>>().join("\n").trim_end());
            all.push_str("\n\n");
        }
        expect![[r#"
            testdata/refund.loopfix: expected the outcome Failed, and it is Completed with {"cents":4200}

            testdata/refund.loopfix: the output is not a u32: invalid type: map, expected u32 at line 1 column 0
              {"cents":4200}

            testdata/refund.loopfix: other tools were called
            --- expected
            +++ actual
            @@ -1,3 +1,2 @@
             price
            -mail
             refund

            testdata/refund.loopfix: other tools were called
            --- expected
            +++ actual
            @@ -1 +1,2 @@
             price
            +refund

            testdata/refund.loopfix: tool call 1 (`refund`, entry 6) had other arguments
            --- expected
            +++ actual
            @@ -1,4 +1,4 @@
             {
               "cents": 4200,
            -  "order": "A18"
            +  "order": "A17"
             }

            testdata/refund.loopfix: expected a tool call number 2, counted from 0, and there are 2

            testdata/refund.loopfix: expected at most 0 iterations, and there are 1

            testdata/refund.loopfix: nobody said "Sorry"
            Refunded 4200 cents

            testdata/refund.loopfix: the State is not a u32: invalid type: map, expected u32 at line 1 column 0

        "#]]
        .assert_eq(&all);
        if std::env::var_os("UPDATE_EXPECT").is_none() {
            let message = said(|| run.expect_trajectory("testdata/absent.txt").name());
            assert!(message.contains("UPDATE_EXPECT=1 writes it"), "{message}");
            let message = said(|| clerk_file().as_recorded().expect_trajectory("testdata/refund.txt").name().len());
            assert!(message.contains("the trajectory is not testdata/refund.txt"), "{message}");
        }
    }

    /// The first request fails twice and is answered in the third attempt; nothing is asked for twice.
    #[tokio::test(start_paused = true)]
    async fn scripted_models_and_counted_tools_say_what_reached_them() {
        let busy = || ModelError::Unavailable { message: "busy".into(), retry_after: None };
        let model =
            ScriptedModel::new().fails(busy()).fails(busy()).asks("price", r#"{"order":"A17"}"#).says("It costs $42.");
        let fixture = asked(&model).await;
        assert_eq!(model.calls(), 4);
        assert_eq!(model.asked().iter().map(|asked| asked.attempt).collect::<Vec<_>>(), [1, 2, 3, 1]);
        let run = replay_fixture(fixture).strict();
        assert_eq!(run.expect_completed::<String>(), "It costs $42.");
        run.expect_model_calls_at_most(4);

        let (price, refund) = (price(), refund());
        let program = Program::new(erase(Refund::default(), Vec::new()));
        let program = program.tool(Arc::new(price.clone())).tool(Arc::new(refund.clone()));
        assert!(matches!(super::world::run(program, "\"A17\"").await.0, RunEnd::Ended(_)));
        price.expect_calls(1).expect_no_effect_twice();
        refund.expect_calls(1);
        assert_eq!(refund.sent()[0].args, r#"{"order":"A17","cents":4200}"#);
        assert!(said(|| refund.expect_calls(2).calls()).starts_with("expected 2 calls of refund, and there were 1\n"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_script_that_is_too_short_ends_the_run_with_a_reason() {
        let fixture = asked(&ScriptedModel::new().asks("price", "not json")).await;
        let run = replay_fixture(fixture).strict();
        let message = said(|| run.expect_outcome("Completed").name());
        assert!(message.contains("the script has 1 turns; this request needs turn 2"), "{message}");
    }

    #[derive(Serialize, Deserialize, Default)]
    struct Shuffled {
        seen: HashMap<String, u64>,
    }

    struct Careless;

    impl loopd_kernel::Loop for Careless {
        type Input = ();
        type State = Shuffled;
        type Output = ();

        fn name(&self) -> &str {
            "careless"
        }

        fn init(&self, (): ()) -> Result<Shuffled, loopd_kernel::Failure> {
            Ok(Shuffled::default())
        }

        fn transition(
            &self,
            _: &loopd_kernel::Cx,
            state: &mut Shuffled,
            _: loopd_kernel::Event,
        ) -> Result<loopd_kernel::Decision, loopd_kernel::Failure> {
            state.seen.extend([("a".into(), 1), ("b".into(), 2)]);
            Ok(loopd_kernel::Decision::none())
        }
    }

    #[test]
    fn an_unordered_map_in_state_is_found() {
        let events = || [1, 2].map(|iteration| loopd_kernel::Event::IterationStarted { iteration });
        state_is_ordered(Refund::default(), &"A17".into(), events());
        let message = said(|| state_is_ordered(Careless, &(), events()));
        let expected = "the transition of IterationStarted writes its State differently each time; use BTreeMap";
        assert!(message.starts_with(expected), "{message}");
        // Seen has one entry, which is in order in any map.
        refund_file().as_recorded().expect_state_ordered::<Seen>();
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_never_ended_is_no_success() {
        let program = Program::new(erase(Refund::default(), Vec::new())).tool(Arc::new(price()));
        let (_, fixture) = run(program, "\"A17\"").await;
        let run = replay_fixture(fixture).with_loop(Refund::default()).strict();
        assert!(said(|| run.expect_completed::<Receipt>()).contains("it is Failed: there is no tool named `refund`"));
    }
}
