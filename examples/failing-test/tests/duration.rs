use duration_text::duration_text;

#[test]
fn seconds_alone() {
    assert_eq!(duration_text(5), "5s");
}

#[test]
fn minutes_and_seconds() {
    assert_eq!(duration_text(125), "2m 05s");
}

#[test]
fn hours_minutes_and_seconds() {
    assert_eq!(duration_text(3600 + 2 * 60 + 5), "1h 02m 05s");
}
