//! Tests without any connection.

mod answers;
mod requests;
mod schemas;
