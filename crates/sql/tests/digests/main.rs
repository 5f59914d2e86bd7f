//! Digests against those of real servers: statements of every verb, every form of a value, every
//! mode and character set that changes what a statement is.
#![allow(missing_docs)]

#[cfg(test)]
mod characters;
#[cfg(test)]
mod classes;
#[cfg(test)]
mod compare;
#[cfg(test)]
mod expand;
#[cfg(test)]
mod history;
#[cfg(test)]
mod literal;
#[cfg(test)]
mod random;
#[cfg(test)]
mod server;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod template;
