//! Amounts, times and names as people read them.
//! Invariant: the same value has the same words everywhere; times are UTC and say so.
//! Called by everything that makes text for people.

use aiws::decimal::Dec;

/// An amount with its unit.
#[must_use]
pub fn units(amount: Dec) -> String {
    if amount == Dec::from_u64(1) {
        "1 unit".to_owned()
    } else {
        format!("{amount} units")
    }
}

/// A count with its noun, such as `1 file`, `2 files`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// How often.
#[must_use]
pub fn times(count: u64) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    }
}

/// The beginning of a commit's name.
#[must_use]
pub fn short_commit(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// A duration in the largest two units that say something.
#[must_use]
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=9 => format!("{seconds}.{} s", ms % 1_000 / 100),
        10..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..=86_399 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A duration in one unit, for columns.
#[must_use]
pub fn age(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3_599 => format!("{} min", seconds / 60),
        3_600..=86_399 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A time in UTC, to the second, such as `2026-11-30 18:00:00Z`.
#[must_use]
pub fn utc(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z",
        rest / 3_600,
        rest % 3_600 / 60,
        rest % 60
    )
}

/// The date of a day that is counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(utc(1_796_061_599_999), "2026-11-30 17:59:59Z");
        let durations: Vec<String> = [0, 1_250, 59_999, 61_000, 3_700_000, 90_000_000]
            .map(duration)
            .to_vec();
        assert_eq!(
            durations,
            [
                "0.0 s",
                "1.2 s",
                "59 s",
                "1 min 1 s",
                "1 h 1 min",
                "1 d 1 h"
            ]
        );
        let ages: Vec<String> = [0, 59_999, 61_000, 3_700_000, 90_000_000].map(age).to_vec();
        assert_eq!(ages, ["0 s", "59 s", "1 min", "1 h", "1 d"]);
    }
}
