//! From agent manifests and stored definitions to Programs: where agents, providers and tools are named together, for
//! every program of loopd that drives Runs.
//!
//! Reading order: [`agents`] (one agent), [`folder`] (all of a folder), [`programs`] (the agents of a worker),
//! [`found`] (what a manifest names on this machine), [`tools`], [`model`] and [`models`], [`machine`] (what models this machine offers), [`obstacle`] (what stands in
//! the way).
#![forbid(unsafe_code)]

pub mod agents;
pub mod folder;
mod found;
pub mod machine;
pub mod model;
pub mod models;
pub mod obstacle;
pub mod programs;
pub mod tools;
pub mod words;

pub use agents::{Manner, Ready, load, load_manifest, manifest, obstacles, obstacles_of, parse};
pub use folder::{Listed, load_folder};
pub use obstacle::{Kind, Obstacle};
pub use programs::{Agents, ResolveError};
