//! The lab on real servers.

#[cfg(test)]
mod load;
#[cfg(test)]
mod redo;
