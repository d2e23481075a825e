//! The Blocks of a call's output: what the model says on the way, and the tools that it uses.

use super::{Telling, short};
use crate::Platform;
use crate::error::Error;
use crate::messages::{Draft, message_of};
use crate::pieces;
use loopd_kernel::model::{ModelReply, Part};
use loopd_kernel::projection::Target;
use loopd_kernel::question::Resolution;
use loopd_kernel::record::{ActionRecord, Joins, Record as Said, Settlement};
use loopd_kernel::{CallId, Entry};
use loopd_protocol::{Block, BlockOp, KnownBlock, MessageStatus, Origin, ToolStatus};
use loopd_store::Table;

/// Bytes of a tool's arguments or output that a Block shows.
const SHOWN: usize = 4 << 10;

/// Bytes of what a model says between its tools.
const TEXT: usize = 64 << 10;

impl Telling<'_> {
    /// What the Entries of this step show.
    pub(super) async fn parts(&mut self, platform: &Platform) -> Result<(), Error> {
        let entries = self.step.entries;
        for entry in entries {
            // A kind of a later build says nothing here.
            let Ok(said) = Said::decode(entry.kind, &entry.record) else { continue };
            match said {
                Said::Decided(decided) => self.speak(entry, &decided.actions),
                Said::Intended(intended) => self.begins(platform, intended.call).await?,
                Said::Settled(settled) if settled.joins == Some(Joins::Assistant) => {
                    self.reply(platform, entry, settled.how);
                }
                Said::Settled(settled) => {
                    let status = match settled.how {
                        Settlement::Landed => ToolStatus::Done,
                        Settlement::Failed | Settlement::Denied => ToolStatus::Failed,
                        Settlement::Cancelled => ToolStatus::Cancelled,
                        Settlement::Unknown => ToolStatus::Unknown,
                    };
                    self.ends(platform, settled.call, (status, text(entry))).await?;
                }
                Said::Resolved(resolved) => {
                    let end = match &resolved.resolution {
                        Resolution::Landed { output } => (ToolStatus::Done, output.clone()),
                        Resolution::Failed { evidence } => (ToolStatus::Failed, evidence.clone()),
                        Resolution::Retry => (ToolStatus::Failed, "it is done anew".to_owned()),
                        Resolution::Unknown { evidence } => (ToolStatus::Unknown, evidence.clone()),
                    };
                    self.ends(platform, resolved.call, end).await?;
                }
                Said::ChildEnded(ended) => self.ends(platform, ended.call, (ToolStatus::Done, text(entry))).await?,
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, platform: &Platform, key: Option<&str>, block: KnownBlock) {
        let (row, said) = &mut self.output;
        if said.count >= platform.config.message_blocks {
            return;
        }
        let block = Block::Known(block);
        self.writes.push(match key {
            Some(key) => pieces::keyed(row.id, said.count, key, &block),
            None => pieces::whole(row.id, said.count, &block),
        });
        said.count += 1;
        self.ops.push(BlockOp::Push { block });
    }

    /// What a model says beside its tool uses. What it says at the end is the result.
    fn reply(&mut self, platform: &Platform, entry: &Entry, how: Settlement) {
        if how != Settlement::Landed {
            return;
        }
        let Ok(reply) = serde_json::from_slice::<ModelReply>(&entry.payload) else { return };
        if reply.tool_uses().next().is_none() {
            return;
        }
        for part in &reply.parts {
            if let Part::Text { text } = part
                && !text.trim().is_empty()
            {
                self.push(platform, None, KnownBlock::Markdown { text: short(text, TEXT) });
            }
        }
    }

    /// A Message of its own for each text that the Run publishes.
    fn speak(&mut self, entry: &Entry, actions: &[ActionRecord]) {
        let call = &self.call.1.call;
        for (action, number) in actions.iter().zip(0..) {
            let ActionRecord::Speak(span) = action else { continue };
            let text = span.text(&entry.payload).unwrap_or_default().to_owned();
            let run = self.step.after.run;
            let draft = Draft {
                id: message_of(&format!("{run} {} {number}", entry.seq)),
                from: call.actor.clone(),
                to: vec![call.recipient.clone().unwrap_or_else(|| call.caller.clone())],
                reply_to: call.reply_to,
                blocks: vec![Block::Known(KnownBlock::Markdown { text })],
                status: MessageStatus::Completed,
                origin: Some(Origin {
                    call: Some(call.id),
                    run: Some(run.to_string()),
                    seq: Some(entry.seq.0),
                    calls: Vec::new(),
                }),
                key: None,
                request: String::new(),
                open_ms: None,
            };
            self.writes.extend(draft.writes(call.conversation, self.at));
        }
    }

    async fn begins(&mut self, platform: &Platform, id: CallId) -> Result<(), Error> {
        let (name, args) = match self.step.after.call(id).map(|call| &call.target) {
            Some(Target::Tool { tool, args, .. }) => (tool.clone(), args.clone()),
            Some(Target::Child(child)) => (child.loop_name.clone(), child.input.clone()),
            Some(Target::Model(_)) | None => return Ok(()),
        };
        let key = id.to_string();
        // An attempt that follows another one is the same Call.
        if platform.by_key(Table::Block, self.output.0.id, &key).await?.is_none() {
            let (status, call, output) = (ToolStatus::Running, key.clone(), String::new());
            let block = KnownBlock::Tool { name, status, args: short(&args, SHOWN), output, call };
            self.push(platform, Some(&key), block);
        }
        Ok(())
    }

    async fn ends(
        &mut self,
        platform: &Platform,
        id: CallId,
        (status, output): (ToolStatus, String),
    ) -> Result<(), Error> {
        let key = id.to_string();
        let Some(row) = platform.by_key(Table::Block, self.output.0.id, &key).await? else { return Ok(()) };
        let Block::Known(KnownBlock::Tool { name, args, call, .. }) = crate::rows::body(&row)? else { return Ok(()) };
        let index = pieces::index(&row);
        let block = Block::Known(KnownBlock::Tool { name, status, args, output: short(&output, SHOWN), call });
        self.writes.push(pieces::keyed(self.output.0.id, index, &key, &block));
        self.ops.push(BlockOp::Set { index, block });
        Ok(())
    }
}

fn text(entry: &Entry) -> String {
    String::from_utf8_lossy(&entry.payload).into_owned()
}
