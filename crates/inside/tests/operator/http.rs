//! The same Operator as a process of its own, against a server that listens.
