//! The platform's wire types: what the HTTP API carries and what the platform stores as JSON.
//!
//! Pure: serde and the OpenAPI derive only. A field is only ever added; whoever reads ignores what it does not know.
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

mod access;
mod actor;
mod agent;
mod artifact;
mod block;
mod call;
mod conversation;
mod feed;
mod ids;
mod message;
mod page;
mod problem;
mod question;
mod reading;
mod turn;

pub use access::{AuditEntry, NewToken, NotARole, Role, SignIn, Token, TokenMade, WhoAmI};
pub use actor::{Actor, ActorKey, ActorKind, NotAnActor, Registration};
pub use agent::{Agent, AgentApplied, AgentChange, AgentSource};
pub use artifact::Artifact;
pub use block::{Block, BlockOp, KnownBlock, PlanStep, ToolStatus};
pub use call::{Budget, CallPhase, Called, HarnessCall, NewCall, OnPark, Priority, Spent, Steer, Steered, Target};
pub use conversation::{ChangeConversation, Conversation, MemberChange, NewConversation, WorkOf};
pub use feed::{Delta, Event, FeedEvent, Wake};
pub use ids::{ArtifactId, ConversationId, HarnessCallId, MessageId, NotAnId, QuestionId, TokenId};
pub use message::{End, ErrorNote, Message, MessageStatus, Open, Origin, Said, Say, Update};
pub use page::Page;
pub use problem::Problem;
pub use question::{
    Answer, Answered, AskKind, Authorises, Choice, NewQuestion, Question, QuestionStatus, Scope, Snapshot,
};
pub use reading::{Handled, Polled};
pub use turn::{Act, Acted, Keyed, Lease, NewLease, Place, Turn, Turned};
