//! The lab on real servers.

#[cfg(test)]
mod counters;
#[cfg(test)]
mod load;
#[cfg(test)]
mod pool;
#[cfg(test)]
mod redo;
