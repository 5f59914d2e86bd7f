//! How numbers are displayed. A value that was not measured is `-`.

use waggle_model::Age;

/// What stands for a number that was not measured.
pub(crate) const ABSENT: &str = "-";

fn or_absent(value: Option<f64>, shown: impl FnOnce(f64) -> String) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| ABSENT.to_owned(), shown)
}

/// A number with as many places as say something: `0`, `0.03`, `12.3`, `1234`, `123k`, `4.6M`.
pub(crate) fn plain(value: Option<f64>) -> String {
    or_absent(value, |value| match value {
        0.0 => "0".to_owned(),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 999.95 => format!("{v:.1}"),
        v if v < 99_999.5 => format!("{v:.0}"),
        v if v < 999_950.0 => format!("{:.0}k", v / 1e3),
        v if v < 999.95e6 => format!("{:.1}M", v / 1e6),
        v if v < 999.95e9 => format!("{:.1}G", v / 1e9),
        v => format!("{v:.1e}"),
    })
}

/// A count: no places where it is small.
pub(crate) fn count(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 99_999.5 => format!("{value:.0}"),
        value => plain(value),
    }
}

/// Nanoseconds in milliseconds.
pub(crate) fn ms(ns: Option<f64>) -> String {
    plain(ns.map(|ns| ns / 1e6))
}

/// A share in percent.
pub(crate) fn percent(share: Option<f64>) -> String {
    or_absent(share, |share| format!("{:.0}%", share * 100.0))
}

/// A time that passes.
pub(crate) fn age(ns: u64) -> String {
    Age::exact(ns).to_string()
}

/// A time of nanoseconds in its own unit, exact: for the steps of a scale.
pub(crate) fn step(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_eight_columns() {
        let mut value = 0.001;
        while value < 1e15 {
            assert!(plain(Some(value)).len() <= 8, "{}", plain(Some(value)));
            assert!(count(Some(value)).len() <= 8, "{}", count(Some(value)));
            value *= 1.37;
        }
        assert_eq!(
            (plain(None), plain(Some(0.0)), plain(Some(0.001))),
            ("-".into(), "0".into(), "0.00".into())
        );
        assert_eq!(ms(Some(1_234_000.0)), "1.23");
    }
}
