//! Wrong values made from right ones: every place of a value, and what may stand there instead.
//! Invariant: a mutant differs from its source at exactly one place.
//! Called by the tests of the records, of the published schemas, and of the requests in `tests/tests/schemas`.

use aiws::json::Value;

/// Every pointer of a value, parents first, not entering `open` places.
pub fn places(value: &Value, open: &[&str]) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut next = 0;
    while next < found.len() {
        let place = found[next].clone();
        next += 1;
        if open.contains(&place.as_str()) {
            continue;
        }
        match value.pointer(&place) {
            Some(Value::Object(members)) => {
                found.extend(members.keys().map(|key| format!("{place}/{key}")))
            }
            Some(Value::Array(items)) => {
                found.extend((0..items.len()).map(|index| format!("{place}/{index}")))
            }
            _ => {}
        }
    }
    found
}

/// The value with a change at one place; `None` removes the member.
pub fn changed(value: &Value, pointer: &str, change: Option<Value>) -> Value {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return change.unwrap_or_default();
    };
    let mut parent_value = value.pointer(parent).expect(pointer).clone();
    match (&mut parent_value, change) {
        (Value::Object(members), Some(new)) => drop(members.insert(last.to_owned(), new)),
        (Value::Object(members), None) => drop(members.remove(last)),
        (Value::Array(items), Some(new)) => items[last.parse::<usize>().expect(pointer)] = new,
        (Value::Array(items), None) => drop(items.remove(last.parse::<usize>().expect(pointer))),
        _ => panic!("{pointer} leads into a scalar"),
    }
    changed(value, parent, Some(parent_value))
}

/// The value with a change at one place, for each change that says something about the member there: left out, of
/// another kind, too long, too large, badly written, one of `names`, or with a member that nobody knows.
pub fn mutants(value: &Value, place: &str, names: &[&str]) -> Vec<Value> {
    let Some(found) = value.pointer(place) else {
        return Vec::new();
    };
    let mut instead = vec![
        Value::Null,
        Value::Int(7),
        Value::Bool(true),
        Value::from(""),
        Value::Array(vec![Value::Int(7)]),
        Value::Array(vec![Value::Null]),
        Value::Object(Default::default()),
    ];
    match found {
        Value::String(text) => {
            instead.extend(texts(text, names).into_iter().map(Value::from));
            instead.extend(spoken(value).into_iter().map(Value::from));
        }
        Value::Array(items) => instead.extend(lists(items, names).into_iter().map(Value::Array)),
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("x".to_owned(), Value::Int(1));
            instead.push(Value::Object(more));
        }
        _ => {}
    }
    let mut all: Vec<Value> = instead
        .into_iter()
        .map(|new| changed(value, place, Some(new)))
        .collect();
    if !place.is_empty() {
        all.push(changed(value, place, None));
    }
    all
}

/// Whether a change is one after which other members may have to be other ones: a name of a closed set, or nothing.
pub fn decides(value: &Value, mutant: &Value, place: &str, names: &[&str]) -> bool {
    let name = |value: &Value| value.as_str().is_some_and(|text| names.contains(&text));
    match (value.pointer(place), mutant.pointer(place)) {
        (_, None | Some(Value::Null)) => true,
        (Some(before), Some(now)) => name(before) && name(now) && before != now,
        (None, _) => false,
    }
}

/// The few mutants that tell whether members fit together: one left out, one that is `null`, one of the other names.
pub fn deciding(value: &Value, place: &str, names: &[&str]) -> Vec<Value> {
    let mut all = vec![changed(value, place, Some(Value::Null))];
    if !place.is_empty() {
        all.push(changed(value, place, None));
    }
    let found = value.pointer(place).and_then(Value::as_str);
    if found.is_some_and(|text| names.contains(&text)) {
        let others = names.iter().map(|name| Value::from(*name));
        all.extend(others.map(|name| changed(value, place, Some(name))));
    }
    all
}

fn texts(found: &str, names: &[&str]) -> Vec<String> {
    let mut texts = vec![
        "x".repeat(256),
        "x".repeat(257),
        "\u{1f980}".repeat(256),
        "x".repeat(16_384),
        "x".repeat(16_385),
        "9".repeat(100),
        "9".repeat(101),
        "a".repeat(63),
        "a".repeat(64),
        "A".repeat(64),
        "a".repeat(65),
        "A".repeat(43),
        format!("{}B", "A".repeat(42)),
        format!("{found}\n"),
        format!(" {found}"),
        found.to_lowercase(),
    ];
    let plain = [
        "x",
        "0",
        "1",
        "01",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "18446744073709551615",
        "18446744073709551616",
        "https://host/key",
        "data:x",
        "1:2",
        "a@b/c",
        "a@b",
        "k?x",
        "k#x",
        "a\\b",
        "%3F",
        "%zz",
        "k ",
        "\u{a0}k",
        "\u{3000}k",
        "k\u{2028}",
        "\u{85}k",
        "\u{feff}k",
        "a\u{7}b",
        "aiws-handoff/2",
        "0.5",
    ];
    texts.extend(plain.iter().chain(names).map(|text| (*text).to_owned()));
    texts
}

fn lists(found: &[Value], names: &[&str]) -> Vec<Vec<Value>> {
    let many = |count: usize| {
        (0..count)
            .map(|item| Value::from(format!("i{item:04}")))
            .collect()
    };
    let mut lists = vec![
        Vec::new(),
        found.iter().rev().cloned().collect(),
        found.iter().chain(found).cloned().collect(),
        many(4_096),
        many(4_097),
    ];
    if let Some(first) = found.first() {
        // A large record so often would say no more, and take long.
        if first.to_string().len() < 200 {
            lists.push(vec![first.clone(); 4_097]);
        }
        // The same thing twice, told differently.
        let others = cousins(first, names).into_iter();
        lists.extend(others.map(|other| vec![first.clone(), other]));
    }
    lists
}

/// The texts of a value: one that is right at one place may be wrong at another.
fn spoken(value: &Value) -> std::collections::BTreeSet<String> {
    let at = |place: &String| value.pointer(place).and_then(Value::as_str);
    let places = places(value, &[]);
    places.iter().filter_map(at).map(str::to_owned).collect()
}

/// An object with one member changed or left out, in it or in an object inside it.
fn cousins(value: &Value, names: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    for (member, found) in value.as_object().into_iter().flatten() {
        let place = format!("/{member}");
        let texts = ["1".to_owned(), "x".to_owned(), "b".repeat(64)].into_iter();
        let texts = texts.chain(names.iter().map(|name| (*name).to_owned()));
        let texts = texts.map(Value::from);
        let others = [
            Value::Bool(false),
            Value::from(vec!["x"]),
            Value::Array(Vec::new()),
        ];
        let instead = texts.chain(others).chain(cousins(found, names));
        all.extend(instead.map(|new| changed(value, &place, Some(new))));
        all.push(changed(value, &place, None));
    }
    all
}
