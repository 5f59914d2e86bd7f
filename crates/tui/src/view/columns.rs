//! Which columns fit the width.

/// A column of a table before its last one, which takes the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<T> {
    /// Its head.
    pub(crate) title: &'static str,
    /// Columns of the screen that it takes.
    pub(crate) width: usize,
    /// The column with the largest number goes first where there is no room; 0 never goes.
    pub(crate) goes: u8,
    /// What it holds.
    pub(crate) what: T,
}

impl<T> Column<T> {
    pub(crate) const fn new(title: &'static str, width: usize, goes: u8, what: T) -> Self {
        Self { title, width, goes, what }
    }
}

/// The columns that fit into `width` with `rest` left for the last one, in their order. `stays` says
/// which must not go.
pub(crate) fn fitting<T: Copy>(
    all: &[Column<T>],
    width: usize,
    rest: usize,
    stays: impl Fn(&Column<T>) -> bool,
) -> Vec<Column<T>> {
    let mut shown = all.to_vec();
    let needed = |shown: &[Column<T>]| shown.iter().map(|it| it.width + 1).sum::<usize>() + rest;
    while needed(&shown) > width {
        let may_go = |it: &&Column<T>| it.goes > 0 && !stays(it);
        let Some(goes) = shown.iter().filter(may_go).map(|it| it.goes).max() else { break };
        shown.retain(|it| it.goes != goes || stays(it));
    }
    shown
}
