//! An answer out of what arrives: a pure machine from the data of events to a reply.
//!
//! It is complete only when an event of the end came (`response.completed`, `response.incomplete`). Everything that
//! cannot be used is an error, nothing is dropped in silence; only kinds of events that are not known are passed over,
//! because what they announce comes again in the item that they belong to.

use super::event::{Event, Said, text, usage};
use super::items::{self, Item, Place};
use crate::complaint::{Complaint, Known};
use crate::intake::{Assemble, End, is_cut};
use crate::wire::{JsonText, SseEvent, excerpt};
use loopd_kernel::model::{ModelReply, StopReason};
use loopd_kernel::{CallId, Usage};
use loopd_runtime::{ModelAnswer, ModelError};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What the answer belongs to.
#[derive(Debug, Clone)]
pub(super) struct Belongs<'a> {
    /// The Call: ids that the server left out are derived from it.
    pub(super) call: CallId,
    /// Provider, protocol and model, for reasoning.
    pub(super) origin: &'a str,
    /// What must not show in error messages.
    pub(super) secrets: &'a [&'a str],
    /// Real names of tools that were offered under others.
    pub(super) names: BTreeMap<String, String>,
    /// The output limit, where the server does not say by itself that it cut the answer.
    pub(super) limit: Option<u64>,
}

/// One answer in the making.
#[derive(Debug)]
pub(super) struct Assembler<'a> {
    belongs: Belongs<'a>,
    /// The items in the order in which they began.
    slots: Vec<Slot>,
    /// Some text was shown.
    shown: bool,
    /// Something was generated.
    begun: bool,
    end: Option<Ended>,
    usage: Option<Usage>,
    model: String,
}

#[derive(Debug)]
struct Slot {
    index: Option<u64>,
    id: String,
    item: Item,
    /// Its last word was said.
    settled: bool,
}

/// How the server says that it ended.
#[derive(Debug)]
enum Ended {
    Complete,
    /// Not complete, for this reason.
    Incomplete(String),
}

impl<'a> Assembler<'a> {
    pub(super) fn new(belongs: Belongs<'a>) -> Self {
        Self { belongs, slots: Vec::new(), shown: false, begun: false, end: None, usage: None, model: String::new() }
    }

    fn take(&mut self, name: &str, data: &str) -> Result<String, ModelError> {
        let event: Event<'_> =
            serde_json::from_str(data).map_err(|error| self.malformed(&format!("{error}: {data}")))?;
        let kind = event.kind.clone().map_or_else(|| name.to_owned(), JsonText::into_string);
        if kind == "error" || event.error.is_some() {
            return Err(self.complaint(data));
        }
        let Some(word) = kind.strip_prefix("response.") else {
            return Ok(String::new());
        };
        let shown = match word {
            // They come also where no model ever begins, so they do not say that something was generated.
            "created" | "in_progress" | "queued" => {
                let said = self.said(event.response)?;
                self.note(&said);
                Ok(String::new())
            }
            "completed" | "incomplete" | "failed" | "cancelled" | "canceled" => {
                if event.response.is_none() && self.slots.is_empty() {
                    return Err(self.malformed("an end without a response"));
                }
                let said = self.said(event.response)?;
                return self.ends(word, said);
            }
            "output_item.added" | "output_item.done" => self.item(&event, word == "output_item.done"),
            "output_text.delta" | "refusal.delta" | "output_text.done" | "refusal.done" => self.says(&event, word),
            "function_call_arguments.delta" => text(event.delta).and_then(|piece| self.argues(&event, &piece, false)),
            "function_call_arguments.done" => text(event.arguments).and_then(|all| self.argues(&event, &all, true)),
            _ if word.starts_with("reasoning") && word.ends_with(".delta") => {
                if let Some(at) = self.find(&event) {
                    self.slots[at].item.grow();
                }
                Ok(String::new())
            }
            _ => Ok(String::new()),
        };
        shown.map_err(|wrong| self.malformed(&wrong))
    }

    fn said<'b>(&self, raw: Option<&'b RawValue>) -> Result<Said<'b>, ModelError> {
        let read = |raw: &'b RawValue| serde_json::from_str(raw.get());
        raw.map(read).transpose().map(Option::unwrap_or_default).map_err(|error| self.malformed(&error.to_string()))
    }

    fn note(&mut self, said: &Said<'_>) {
        if let Some(model) = said.model.clone().filter(|model| !model.is_empty()) {
            self.model = model.into_string();
        }
    }

    /// An item begins, or its last word is said.
    fn item(&mut self, event: &Event<'_>, last: bool) -> Result<String, String> {
        let raw = event.item.ok_or("an item without content")?;
        let (item, text) = Item::read(raw)?;
        let (index, id) = (number(event.output_index), items::id(raw)?);
        let open = self.find_by(index, &id).filter(|at| !self.slots[*at].settled);
        if last && let Some(at) = open {
            let slot = &mut self.slots[at];
            slot.settled = true;
            return slot.item.settle(item, text);
        }
        // Two items may share a place, where a server does not count; an item is not there twice.
        if self.slots.iter().any(|slot| !id.is_empty() && slot.id == id) {
            return Err(format!("item {id:?} begins twice"));
        }
        self.begun = true;
        self.slots.push(Slot { index, id, item, settled: last });
        Ok(text)
    }

    fn says(&mut self, event: &Event<'_>, word: &str) -> Result<String, String> {
        let place = Place { index: number(event.content_index), refusal: word.starts_with("refusal") };
        let at = self.find(event).ok_or("a piece of an item that has not begun")?;
        let item = &mut self.slots[at].item;
        match word {
            "output_text.done" => item.say_all(place, &text(event.text)?),
            "refusal.done" => item.say_all(place, &text(event.refusal)?),
            _ => item.say(place, &text(event.delta)?),
        }
    }

    fn argues(&mut self, event: &Event<'_>, piece: &JsonText, whole: bool) -> Result<String, String> {
        let at = self.find(event).ok_or("a piece of an item that has not begun")?;
        self.slots[at].item.argue(piece, whole)?;
        Ok(String::new())
    }

    fn find(&self, event: &Event<'_>) -> Option<usize> {
        let id: String = event.item_id.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        self.find_by(number(event.output_index), &id)
    }

    /// The item in a place and with an id: some servers leave the place out, some change the id all the time.
    fn find_by(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let by = |is_it: &dyn Fn(&Slot) -> bool| self.slots.iter().rposition(is_it);
        let exact = by(&|slot| slot.index == index && slot.id == id);
        let by_index = || index.and_then(|_| by(&|slot| slot.index == index));
        let by_id = || (!id.is_empty()).then(|| by(&|slot| slot.id == id)).flatten();
        let last = || index.is_none().then(|| by(&|slot| !slot.settled)).flatten();
        exact.or_else(by_index).or_else(by_id).or_else(last)
    }

    /// The response ended: `word` is what its last event, or itself, says about how.
    fn ends(&mut self, word: &str, said: Said<'_>) -> Result<String, ModelError> {
        self.note(&said);
        self.usage = said.usage.and_then(usage);
        let output = said.output.unwrap_or_default();
        self.begun |= !output.is_empty() || self.usage.is_some();
        let status = said.status.map(JsonText::into_string).unwrap_or_default();
        // A status from the way there is a slip; one that says how it ended is not.
        let word = if matches!(status.as_str(), "" | "in_progress" | "queued") { word } else { &status };
        match word {
            "completed" => self.end = Some(Ended::Complete),
            "incomplete" => {
                let reason = said.incomplete_details.unwrap_or_default().reason.map(JsonText::into_string);
                self.end = Some(Ended::Incomplete(reason.unwrap_or_default()));
            }
            "failed" => {
                let unsaid = r#"{"message":"the server says that the response failed"}"#;
                let error = said.error.map_or_else(|| unsaid.to_owned(), |raw| format!("{{\"error\":{}}}", raw.get()));
                return Err(self.complaint(&error));
            }
            "cancelled" | "canceled" => return Err(self.interrupted("the response was cancelled at the server")),
            other => return Err(self.malformed(&format!("the response ended with the unknown status {other:?}"))),
        }
        self.settle(&output).map_err(|wrong| self.malformed(&wrong))
    }

    /// Takes the list of all items, where it says more than what came on the way; some servers leave it empty.
    fn settle(&mut self, output: &[&RawValue]) -> Result<String, String> {
        let settled = self.slots.iter().all(|slot| slot.settled);
        let says_more = output.len() > self.slots.len() || (output.len() == self.slots.len() && !settled);
        if !says_more {
            return Ok(String::new());
        }
        let mut shown = String::new();
        let mut slots = Vec::with_capacity(output.len());
        for raw in output {
            let (item, text) = Item::read(raw)?;
            shown.push_str(&text);
            slots.push(Slot { index: None, id: String::new(), item, settled: true });
        }
        let calls = |slots: &[Slot]| slots.iter().filter(|slot| slot.item.is_call()).count();
        if calls(&slots) < calls(&self.slots) {
            return Err("the list of all items lacks a call that came before".into());
        }
        self.slots = slots;
        Ok(if self.shown { String::new() } else { shown })
    }

    fn answer(&self, ended: &Ended) -> Result<ModelAnswer, ModelError> {
        let stop = self.stop_reason(ended);
        let cut = stop == StopReason::Length || matches!(ended, Ended::Incomplete(_));
        let mut parts = Vec::with_capacity(self.slots.len());
        for (at, slot) in self.slots.iter().enumerate() {
            slot.item.add_to(&mut parts, at, &self.belongs, cut).map_err(|wrong| self.malformed(&wrong))?;
        }
        Ok(ModelAnswer { reply: ModelReply { parts, stop, model: self.model.clone() }, usage: self.usage })
    }

    fn stop_reason(&self, ended: &Ended) -> StopReason {
        let any = |is_it: fn(&Item) -> bool| self.slots.iter().any(|slot| is_it(&slot.item));
        match ended {
            Ended::Incomplete(reason) => match reason.as_str() {
                "max_output_tokens" | "max_tokens" | "length" => StopReason::Length,
                "content_filter" => StopReason::Refusal,
                "" => StopReason::Other("incomplete".into()),
                other => StopReason::Other(other.to_owned()),
            },
            Ended::Complete if any(Item::refuses) => StopReason::Refusal,
            Ended::Complete if any(Item::is_cut) || self.reached_limit() => StopReason::Length,
            Ended::Complete if any(Item::is_call) => StopReason::ToolUse,
            Ended::Complete => match self.slots.iter().find_map(|slot| slot.item.waits()) {
                Some(kind) => StopReason::Other(kind.to_owned()),
                None => StopReason::EndTurn,
            },
        }
    }

    /// Whether all of the output that was allowed was used, at a server that calls this complete.
    fn reached_limit(&self) -> bool {
        let used = self.usage.map_or(0, |usage| usage.output.saturating_add(usage.reasoning));
        self.belongs.limit.is_some_and(|limit| used >= limit)
    }

    fn complaint(&self, body: &str) -> ModelError {
        let known = Known { retry_after: None, begun: self.begun, usage: self.usage };
        Complaint::read(None, body, self.belongs.secrets).into_error(known)
    }
}

fn number(raw: Option<&RawValue>) -> Option<u64> {
    raw.and_then(|raw| raw.get().parse().ok())
}

impl Assemble for Assembler<'_> {
    fn event(&mut self, event: &SseEvent) -> Result<String, ModelError> {
        let data = event.data.trim();
        // Some gateways close with the word of another protocol, which proves nothing here.
        if data.is_empty() || data == "[DONE]" || self.end.is_some() {
            return Ok(String::new());
        }
        match event.name.as_str() {
            "error" => Err(self.complaint(data)),
            "ping" | "keepalive" | "keep-alive" | "heartbeat" => Ok(String::new()),
            name => {
                let shown = self.take(name, data)?;
                self.shown |= !shown.is_empty();
                Ok(shown)
            }
        }
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn whole(mut self, body: &str) -> Result<ModelAnswer, ModelError> {
        let said: Said<'_> = match serde_json::from_str(body) {
            Ok(said) => said,
            Err(error) if is_cut(body, &error) => return Err(self.interrupted("the answer ends in the middle")),
            Err(error) => return Err(self.malformed(&format!("{error}: {body}"))),
        };
        let status = said.status.clone().map(JsonText::into_string).unwrap_or_default();
        if said.object == Some("error".into()) || (said.error.is_some() && status != "failed") {
            return Err(self.complaint(body));
        }
        if matches!(status.as_str(), "in_progress" | "queued") {
            return Err(self.interrupted("the server answered before it was done"));
        }
        if said.output.is_none() && matches!(status.as_str(), "" | "completed" | "incomplete") {
            return Err(self.malformed(&format!("no response: {body}")));
        }
        // All of it is there, so it has ended, also for servers that give no status here.
        self.ends("completed", said)?;
        self.end(End::Proper)
    }

    fn end(self, end: End) -> Result<ModelAnswer, ModelError> {
        match (&self.end, end) {
            (Some(ended), _) => self.answer(ended),
            (None, End::Broken(why)) => Err(self.interrupted(&why)),
            (None, End::Proper) => Err(self.interrupted("the stream ended without saying that the answer is complete")),
        }
    }

    fn malformed(&self, what: &str) -> ModelError {
        ModelError::Malformed { message: excerpt(what, self.belongs.secrets), usage: self.usage }
    }

    fn interrupted(&self, what: &str) -> ModelError {
        ModelError::Interrupted { message: excerpt(what, self.belongs.secrets), usage: self.usage }
    }
}
