//! The adapters over real connections: the conformance kit of the Model port on each of them and on adapters that are
//! broken on purpose, and what is special to each.

#[cfg(test)]
mod broken;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod own;
#[cfg(test)]
mod reuse;
#[cfg(test)]
mod toy;
