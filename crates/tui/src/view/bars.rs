//! Bars and sparklines. A column has eight steps.

/// A bar of the share `share` of `width` columns, filled with blanks.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if eighths / 8 < width {
        bar.push(PARTS[eighths % 8]);
    }
    let used = bar.chars().count();
    bar + &" ".repeat(width.saturating_sub(used))
}

/// A bar with a mark at the share `mark`.
pub(crate) fn bar_with_mark(share: f64, mark: f64, width: usize) -> String {
    let at = (mark.clamp(0.0, 1.0) * width as f64) as usize;
    let mut cells: Vec<char> = bar(share, width).chars().collect();
    if let Some(cell) = cells.get_mut(at.min(width.saturating_sub(1))) {
        *cell = '┃';
    }
    cells.into_iter().collect()
}

/// One column per value, as high as its share of the largest. What is not known is blank, 0 is the
/// lowest line, and what is more than 0 is higher than that.
pub(crate) fn sparkline(values: &[Option<f64>]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = values.iter().flatten().fold(0.0, |largest: f64, value| largest.max(*value));
    let level = |value: f64| match (value > 0.0, largest > 0.0) {
        (true, true) => ((value / largest * 7.0).ceil() as usize).clamp(1, 7),
        _ => 0,
    };
    values.iter().map(|value| value.map_or(' ', |value| LEVELS[level(value)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_width_and_their_share() {
        for share in [-1.0, 0.0, 0.33, 0.999, 1.0, 7.0] {
            assert_eq!(bar(share, 10).chars().count(), 10, "{share}");
            assert_eq!(bar_with_mark(share, 0.5, 10).chars().count(), 10, "{share}");
        }
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.0, 0), "");
        assert_eq!(bar_with_mark(1.0, 0.5, 4), "██┃█");
    }

    #[test]
    fn unknown_is_blank_and_zero_is_not() {
        let values = [None, Some(0.0), Some(0.001), Some(5.0), Some(10.0)];
        assert_eq!(sparkline(&values), " ▁▂▅█");
        assert_eq!(sparkline(&[Some(0.0), Some(0.0)]), "▁▁");
    }
}
