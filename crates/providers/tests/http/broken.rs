//! The kit on adapters that are broken on purpose: each must fail the cases that are about its flaw, and every case
//! must be failed by some adapter.

use crate::toy::{Flaw, Toy};
use loopd_runtime::kit::{CASES, Finding, Verdict, check};
use std::collections::BTreeSet;

mod sound {
    loopd_runtime::conformance!(super::Toy(super::Flaw::None));
}

fn flaws() -> Vec<(Flaw, &'static [&'static str])> {
    vec![
        (Flaw::TrimsText, &["text_arrives_as_it_was_sent"]),
        (Flaw::SortsUses, &["parallel_tool_uses_keep_their_order"]),
        (Flaw::JoinsNames, &["text_arrives_as_it_was_sent", "parallel_tool_uses_keep_their_order"]),
        (Flaw::ParsesArgs, &["arguments_keep_their_exact_text"]),
        (Flaw::CountsTwice, &["usage_is_counted_once"]),
        (Flaw::LosesUsage, &["usage_is_counted_once"]),
        (Flaw::UnknownIsZero, &["usage_that_was_not_said_is_unknown"]),
        (Flaw::CutIsDone, &["a_cut_answer_says_so"]),
        (Flaw::RefusalIsDone, &["a_refusal_says_so"]),
        (Flaw::ShowsAtTheEnd, &["text_is_shown_in_order_as_it_comes"]),
        (Flaw::ShowsBackwards, &["text_is_shown_in_order_as_it_comes", "a_stream_may_be_cut_anywhere"]),
        (Flaw::ShowsFirstAttempt, &["text_is_shown_in_order_as_it_comes"]),
        (Flaw::NeedsAWatcher, &["text_is_shown_in_order_as_it_comes"]),
        (Flaw::DecodesPerRead, &["a_stream_may_be_cut_anywhere"]),
        (Flaw::LfOnly, &["lines_may_end_in_every_way"]),
        (Flaw::KeepsMark, &["a_byte_order_mark_is_no_data"]),
        (Flaw::CommentsAreData, &["comments_and_pings_are_no_data"]),
        (Flaw::LastDataLine, &["data_may_span_several_lines"]),
        (Flaw::SmallEvents, &["an_event_may_be_huge"]),
        (Flaw::KnownOnly, &["what_is_unknown_is_passed_over"]),
        (Flaw::StreamOnly, &["an_answer_is_read_in_either_form"]),
        (Flaw::CutIsAnswer, &["a_stream_that_breaks_off_is_no_answer"]),
        (Flaw::NeedsNoEnd, &["a_stream_without_its_end_is_no_answer"]),
        (Flaw::HalfIsWhole, &["half_a_body_is_no_answer"]),
        (Flaw::NothingIsAnAnswer, &["an_empty_body_is_no_answer"]),
        (Flaw::AnythingIsText, &["a_body_of_another_kind_is_no_answer"]),
        (Flaw::SkipsBadEvents, &["an_event_that_does_not_parse_is_no_answer"]),
        (Flaw::EarlyIsFree, &["a_connection_that_closes_early_is_no_answer", "half_a_body_is_no_answer"]),
        (Flaw::ReadsOn, &["after_the_end_nothing_is_waited_for"]),
        (Flaw::Patient, &["silence_is_no_answer"]),
        (Flaw::RateIsFinal, &["a_status_has_its_class", "a_status_without_words_has_its_class", "a_wait_is_read"]),
        (Flaw::WantsWords, &["a_status_without_words_has_its_class"]),
        (Flaw::OverflowIsWrong, &["an_overflow_is_too_large"]),
        (Flaw::NoDates, &["a_wait_is_read"]),
        (Flaw::RoundsDown, &["a_wait_is_read"]),
        (Flaw::TrustsTheStatus, &["an_error_inside_of_a_success_is_an_error", "an_error_in_the_middle_is_no_answer"]),
        (Flaw::MiddleIsFree, &["an_error_in_the_middle_is_no_answer"]),
        (Flaw::TellsEverything, &["a_message_is_bounded"]),
        (Flaw::NobodyIsUnsure, &["nobody_there_is_unavailable"]),
        (Flaw::TellsTheKey, &["a_key_shows_in_no_error"]),
        (Flaw::Retries, &["a_call_sends_one_request"]),
        (Flaw::KeyInAddress, &["a_key_goes_into_a_header_alone"]),
        (Flaw::IgnoresCancel, &["an_unwanted_call_stops_at_once"]),
        (Flaw::SendsAnyway, &["an_unwanted_call_is_not_sent"]),
        (Flaw::IgnoresTime, &["an_attempt_ends_in_time"]),
        (Flaw::LosesInstructions, &["what_was_said_arrives_in_order"]),
        (Flaw::ForgetsReasoning, &["reasoning_goes_back_to_its_origin_alone"]),
        (Flaw::TellsEverybody, &["reasoning_goes_back_to_its_origin_alone"]),
        (Flaw::TamesNames, &["names_of_tools_come_back"]),
        (Flaw::ResultsAsTheyCame, &["each_tool_use_has_its_result_behind_it"]),
        (Flaw::ArgsAsTheyAre, &["arguments_go_back_as_objects"]),
        (Flaw::EmptyList, &["no_tools_are_no_list"]),
    ]
}

/// Side by side, because an adapter that hangs is given time.
#[test]
fn each_flaw_fails_its_cases() {
    std::thread::scope(|scope| {
        for (flaw, cases) in flaws() {
            scope.spawn(move || {
                for case in cases {
                    let verdict = check(case, Toy(flaw));
                    assert!(verdict.is_err(), "{flaw:?} passes {case}: {verdict:?}");
                }
            });
        }
    });
}

#[test]
fn every_case_is_failed_by_some_flaw() {
    let failed: BTreeSet<_> = flaws().into_iter().flat_map(|(_, cases)| cases).copied().collect();
    let all: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(failed, all);
}

#[test]
fn an_unknown_case_is_a_finding() {
    let finding: Result<Verdict, Finding> = check("no_such_case", Toy(Flaw::None));
    assert_eq!(finding.unwrap_err().to_string(), "there is no case no_such_case");
}
