//! What the research agent's user checks by code, because neither a model's word nor ours is enough:
//!
//! * [`citations`]: every citation of an answer is an exact span of a document inside one folder.
//! * [`again`]: what a recorded Run performed more than once, and that it was allowed to.
//!
//! The agent itself is data: `agent.yaml`, its script `demo.json` and the documents in `library`.
#![forbid(unsafe_code)]

pub mod again;
pub mod citations;
