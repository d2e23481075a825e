//! Bytes that arrive in every way that server-sent events allow.

use super::dialect::{Frame, Reply};
use super::server::{Server, Step, json, stream};
use super::stage::{Stage, rich, wire, words};
use super::{Outcome, Verdict, request, same};

/// The bytes of [`rich`] in every way that `frame` makes of its events are the same answer.
async fn every(stage: &Stage, ways: &[(&str, String)]) -> Outcome {
    let reply = rich(stage.features);
    for (what, bytes) in ways {
        stage.expect(what, stream([bytes.as_bytes()]), &reply).await?;
        let single = bytes.as_bytes().chunks(1);
        stage.expect(&format!("{what}, byte by byte"), stream(single), &reply).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn a_stream_may_be_cut_anywhere(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let reply = rich(stage.features);
    let bytes = stage.bytes(&reply).into_bytes();
    for size in [1, 2, 3, 7, 64] {
        let asked = stage.expect(&format!("pieces of {size}"), stream(bytes.chunks(size)), &reply).await?;
        same("shown text", asked.text().as_str(), "那 里 🎉 é")?;
    }
    let (length, whole) = (bytes.len(), bytes);
    let server = Server::start(move |number, _| {
        let (left, right) = whole.split_at(number.min(whole.len()));
        stream([left, right])
    })
    .await?;
    let model = stage.model(&server)?;
    for at in 1..length {
        let what = format!("a stream cut in two at {at}");
        stage.is(&what, &stage.call(&model, request()).await?.answer(&what)?, &reply)?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn lines_may_end_in_every_way(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let frames = stage.dialect().streamed(&rich(stage.features)).frames;
    let all = |end: &str| frames.iter().map(|frame| frame.wire(end)).collect::<String>();
    let mixed = frames.iter().zip(["\r\n", "\n", "\r"].iter().cycle()).map(|(frame, end)| frame.wire(end)).collect();
    every(&stage, &[("CRLF", all("\r\n")), ("CR", all("\r")), ("LF", all("\n")), ("mixed line ends", mixed)]).await
}

pub(super) async fn a_byte_order_mark_is_no_data(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let bytes = stage.bytes(&rich(stage.features));
    every(&stage, &[("a byte order mark", format!("\u{feff}{bytes}"))]).await
}

pub(super) async fn comments_and_pings_are_no_data(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let frames = stage.dialect().streamed(&rich(stage.features)).frames;
    let between = |text: &str| frames.iter().map(|frame| format!("{text}{}", frame.wire("\n"))).collect::<String>();
    let pings = wire(&stage.dialect().pings());
    let inside = frames.iter().map(|frame| frame.wire("\n").replacen("data: ", ": still here\ndata: ", 1)).collect();
    every(
        &stage,
        &[
            ("comments", between(": PROCESSING data: {}\n\n:\n\n")),
            ("comments directly before events", between(": alive\n")),
            ("comments inside of events", inside),
            ("blank lines", between("\n\n\n")),
            ("fields of no use", between("id: 7\nretry: 10\nretry: soon\nwhatever\n")),
            ("keep-alives", between(&pings)),
        ],
    )
    .await
}

pub(super) async fn data_may_span_several_lines(stage: Stage) -> Outcome {
    if !stage.features.streams {
        return Ok(Verdict::NotApplicable);
    }
    let split = |frame: &Frame| Frame { data: frame.data.replacen('{', "{\n", 1), ..frame.clone() };
    let frames: Vec<Frame> = stage.dialect().streamed(&rich(stage.features)).frames.iter().map(split).collect();
    every(&stage, &[("data on two lines", wire(&frames))]).await
}

pub(super) async fn an_event_may_be_huge(stage: Stage) -> Outcome {
    let text = "0123456789abcdé\n".repeat(128 * 1024);
    let reply = words(&[&text]);
    let steps = if stage.features.streams {
        stream(stage.bytes(&reply).as_bytes().chunks(16 * 1024))
    } else {
        stage.send(&reply)
    };
    stage.expect("two mebibytes in one piece", steps, &reply).await?;
    Ok(Verdict::Passed)
}

pub(super) async fn what_is_unknown_is_passed_over(stage: Stage) -> Outcome {
    const FIELDS: &str = r#"{"kit_unknown":{"a":[1,"}",null]},"kit_null":null,"#;
    let reply = rich(stage.features);
    let more = |data: &str| {
        let object = data.starts_with('{') && data != "{}";
        if object { data.replacen('{', FIELDS, 1) } else { data.to_owned() }
    };
    if stage.features.whole {
        stage.expect("unknown fields", json(&more(&stage.dialect().whole(&reply))), &reply).await?;
    }
    if !stage.features.streams {
        return Ok(Verdict::Passed);
    }
    let frames = stage.dialect().streamed(&reply).frames;
    let fields: Vec<Frame> = frames.iter().map(|one| Frame { data: more(&one.data), ..one.clone() }).collect();
    let unknown = stage.dialect().unknown();
    let events: Vec<Frame> = frames.iter().flat_map(|one| unknown.iter().chain([one])).cloned().collect();
    every(&stage, &[("unknown fields", wire(&fields)), ("unknown events", wire(&events))]).await
}

/// Gateways answer in one piece where a stream was asked for, and call the one by the other's name.
pub(super) async fn an_answer_is_read_in_either_form(stage: Stage) -> Outcome {
    if !(stage.features.streams && stage.features.whole) {
        return Ok(Verdict::NotApplicable);
    }
    let reply: Reply = rich(stage.features);
    let whole = stage.dialect().whole(&reply);
    let bytes = stage.bytes(&reply);
    let ways: [(&str, Vec<Step>); 5] = [
        ("one piece", json(&whole)),
        ("one piece with a charset", response(&[("content-type", "application/json; charset=utf-8")], &whole)),
        ("one piece without a name", response(&[], &whole)),
        ("one piece as a stream", response(&[("content-type", "text/event-stream")], &whole)),
        ("a stream as one piece", json(&bytes)),
    ];
    for (what, steps) in ways {
        stage.expect(what, steps, &reply).await?;
    }
    Ok(Verdict::Passed)
}

fn response(headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    super::server::response("200 OK", headers, body)
}
