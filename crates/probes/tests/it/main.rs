//! The probes against real servers and the real kernel. Needs root.

#[cfg(test)]
mod capture;
#[cfg(test)]
mod discover;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod narrow;
#[cfg(test)]
mod nested;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod settings;
