//! What there is, as text: for assertions, and for whoever reads why one failed.

use loopd_protocol::{Block, KnownBlock, Message};
use std::fmt::Write as _;

/// Messages as text: number, who to whom, status, and a line per block.
pub(super) fn messages(messages: &[Message]) -> String {
    let mut told = String::new();
    for message in messages {
        let to: Vec<_> = message.to.iter().map(ToString::to_string).collect();
        let to = if to.is_empty() { String::new() } else { format!(" > {}", to.join(" ")) };
        let status = format!("{:?}", message.status).to_lowercase();
        // Writing to a String does not fail.
        let _ = writeln!(told, "{} {}{to} [{status}]", message.seq, message.from);
        for block in &message.blocks {
            let _ = writeln!(told, "    {}", shown(block));
        }
        if let Some(error) = &message.error {
            let _ = writeln!(told, "    ! {} {}", error.code, error.message);
        }
    }
    told
}

fn shown(block: &Block) -> String {
    match block {
        Block::Known(KnownBlock::Tool { name, status, args, output, .. }) => {
            format!("tool {name} {args} {status:?} {output}")
        }
        Block::Known(KnownBlock::Result { json: Some(json), .. }) => format!("result {json}"),
        Block::Known(KnownBlock::Reply { snapshot }) => {
            let value = snapshot.value.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("reply {:?} {value}", snapshot.status)
        }
        block => format!("{} {}", block.kind(), block.words()),
    }
}

/// The words of a Message.
pub(super) fn words(message: &Message) -> String {
    message.blocks.iter().map(Block::words).collect::<Vec<_>>().join(" ")
}
