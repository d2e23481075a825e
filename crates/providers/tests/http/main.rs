//! The adapters against a server on loopback that answers byte for byte what a case wants.

#[cfg(test)]
mod anthropic;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod support;
