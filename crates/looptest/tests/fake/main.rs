//! The fake model server: our own adapters talk to it, and requests that a provider would refuse are refused.

#[cfg(test)]
mod faults;
#[cfg(test)]
mod files;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod server;
#[cfg(test)]
mod strict;
#[cfg(test)]
mod support;
#[cfg(test)]
mod talks;
#[cfg(test)]
#[path = "../world/mod.rs"]
mod world;
