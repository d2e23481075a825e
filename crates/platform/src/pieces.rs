//! Blocks that stand in Records of their own, so that going on with a long Message costs what is added.
//!
//! A Block is a Record, and so is each text that was appended to it: its place is the Block's index, shifted, plus the
//! number of the piece.

use crate::Platform;
use crate::error::Error;
use crate::messages::not_written;
use crate::rows::{body, hashed, put, record};
use loopd_protocol::{Block, BlockOp, KnownBlock};
use loopd_store::{List, Place, Query, Record, RecordId, Table, Write};
use std::collections::BTreeMap;

/// Bits of a place that count pieces.
const PIECE: u32 = 24;

/// Records that are read at once.
const PAGE: usize = 512;

fn at(index: u64, piece: u64) -> u64 {
    index << PIECE | piece
}

fn identity(message: RecordId, place: u64) -> RecordId {
    hashed(&[&message.0, &place.to_be_bytes()])
}

/// Writes a Block.
pub(crate) fn whole(message: RecordId, index: u64, block: &Block) -> Write {
    let place = at(index, 0);
    put(record(Table::Block, identity(message, place), message, block), Place::At(place))
}

/// Writes a Block that is found again by a key of its Message.
pub(crate) fn keyed(message: RecordId, index: u64, key: &str, block: &Block) -> Write {
    let place = at(index, 0);
    let row = record(Table::Block, identity(message, place), message, block);
    put(Record { key: Some(key.to_owned()), ..row }, Place::At(place))
}

/// The index of a Block that was found.
pub(crate) const fn index(row: &Record) -> u64 {
    row.place >> PIECE
}

const fn takes_text(block: &Block) -> bool {
    matches!(block, Block::Known(KnownBlock::Text { .. } | KnownBlock::Markdown { .. } | KnownBlock::Reasoning { .. }))
}

fn append(block: &mut Block, more: &str) {
    if let Block::Known(KnownBlock::Text { text } | KnownBlock::Markdown { text } | KnownBlock::Reasoning { text }) =
        block
    {
        text.push_str(more);
    }
}

impl Platform {
    /// The first `limit` Blocks of a Message.
    pub(crate) async fn blocks(&self, message: RecordId, limit: u64) -> Result<Vec<Block>, Error> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut beyond = None;
        loop {
            let list = List { table: Table::Block, scope: message, beyond, newest_first: false, limit: PAGE };
            let rows = self.store.records(Query::List(list)).await?;
            for row in &rows {
                if index(row) >= limit {
                    return Ok(blocks);
                }
                if row.place.trailing_zeros() >= PIECE || row.place == 0 {
                    blocks.push(body(row)?);
                } else if let Some(last) = blocks.last_mut() {
                    append(last, &body::<String>(row)?);
                }
            }
            match rows.last() {
                Some(last) if rows.len() == PAGE => beyond = Some((last.place, last.id)),
                _ => return Ok(blocks),
            }
        }
    }

    /// What changing an open Message's Blocks writes, and how many it then has.
    pub(crate) async fn applied(
        &self,
        message: &Record,
        mut count: u64,
        ops: &[BlockOp],
    ) -> Result<(u64, Vec<Write>), Error> {
        let id = message.id;
        let mut writes = Vec::new();
        // Of each Block that these changes touch: its last piece, and whether it takes text.
        let mut pieces: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
        let mut bytes = 0;
        for op in ops {
            match op {
                BlockOp::Push { block } => {
                    self.may_be(block, &mut bytes)?;
                    if count >= self.config.message_blocks {
                        let detail = format!("a message has at most {} blocks", self.config.message_blocks);
                        return Err(Error::invalid("ops", detail));
                    }
                    writes.push(whole(id, count, block));
                    pieces.insert(count, (0, takes_text(block)));
                    count += 1;
                }
                BlockOp::Set { index, block } => {
                    self.may_be(block, &mut bytes)?;
                    let (last, _) = self.last_piece(id, *index, count, &pieces).await?;
                    let gone =
                        (1..=last).map(|piece| Write::DeleteRecord(Table::Block, identity(id, at(*index, piece))));
                    writes.extend(gone);
                    writes.push(whole(id, *index, block));
                    pieces.insert(*index, (0, takes_text(block)));
                }
                BlockOp::Append { index, text } => {
                    bytes += text.len();
                    let (last, takes) = self.last_piece(id, *index, count, &pieces).await?;
                    if !takes {
                        return Err(Error::invalid("ops", format!("block {index} takes no text")));
                    }
                    let place = at(*index, last + 1);
                    writes.push(put(record(Table::Block, identity(id, place), id, text), Place::At(place)));
                    pieces.insert(*index, (last + 1, true));
                }
            }
        }
        let limit = self.config.message_bytes;
        if bytes > limit {
            return Err(Error::TooLarge { what: "the update", bytes, limit });
        }
        Ok((count, writes))
    }

    fn may_be(&self, block: &Block, bytes: &mut usize) -> Result<(), Error> {
        *bytes += serde_json::to_vec(block).unwrap_or_default().len();
        match not_written(block) {
            Some(why) => Err(Error::invalid("ops", why)),
            None => Ok(()),
        }
    }

    async fn last_piece(
        &self,
        message: RecordId,
        index: u64,
        count: u64,
        pieces: &BTreeMap<u64, (u64, bool)>,
    ) -> Result<(u64, bool), Error> {
        if index >= count {
            return Err(Error::invalid("ops", format!("there is no block {index}; there are {count}")));
        }
        if let Some(piece) = pieces.get(&index) {
            return Ok(*piece);
        }
        let beyond = Some((at(index + 1, 0), RecordId([0; 16])));
        let list = List { table: Table::Block, scope: message, beyond, newest_first: true, limit: 1 };
        let last = self.store.records(Query::List(list)).await?.pop();
        let piece = last.map_or(0, |last| last.place & ((1 << PIECE) - 1));
        let first = self.get(Table::Block, identity(message, at(index, 0))).await?;
        let takes = first.map(|row| body(&row).map(|block| takes_text(&block))).transpose()?;
        Ok((piece, takes.unwrap_or(false)))
    }
}
