//! Digests against those of real servers: statements of every verb, every form of a value, every
//! mode and character set that changes what a statement is.
#![cfg(test)]

mod characters;
mod classes;
mod compare;
mod expand;
mod history;
mod literal;
mod server;
mod servers;
mod template;
