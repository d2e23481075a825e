//! Tests without any connection.

mod answers;
mod endings;
mod requests;
mod settings;
mod streams;

use super::assemble::{Assembler, Belongs};
use crate::heard;
use expect_test::Expect;
use loopd_kernel::CallId;

fn assembler() -> Assembler<'static> {
    let names = [("files_read_1".to_owned(), "files.read".to_owned())].into();
    Assembler::new(Belongs { call: CallId(7), origin: "openai+responses/m", secrets: &["sk-1"], names, limit: None })
}

/// Bytes as the body of a stream.
#[track_caller]
fn check_bytes(bytes: &[u8], expect: Expect) {
    expect.assert_eq(&heard::streamed(assembler, bytes));
}

/// Each line is the data of an event, whose name is its type; a line that begins with `:` is a comment.
#[track_caller]
fn check(events: &str, expect: Expect) {
    check_bytes(heard::stream(events).as_bytes(), expect);
}

/// A response that is not streamed.
#[track_caller]
fn check_whole(body: &str, expect: Expect) {
    expect.assert_eq(&heard::in_one_piece(assembler, body));
}
