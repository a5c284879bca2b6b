//! The first difference of two JSON values, as a pointer with both sides.
//!
//! Invariant: the first in canonical order (sorted members, then items), and never more of a value than a line shows.
//! Called by `redecide`.

use aiws::json::{Object, Value};
use aiws::pointer::Pointer;

use crate::limits::SHOWN_CHARS;

/// A member of an event that is not what its command and facts give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it stands in the event, as a JSON pointer.
    pub member: String,
    /// What was decided, as canonical JSON, cut where it is long; `nothing` where the member is one too many.
    pub decided: String,
    /// What is recorded, likewise; `nothing` where the member is missing.
    pub recorded: String,
}

/// The first difference under a pointer; none where both sides are one value.
pub(super) fn first(member: &str, decided: &Value, recorded: &Value) -> Option<Difference> {
    let mut place = Pointer::default();
    let (decided, recorded) = walk(&mut place, Some(decided), Some(recorded))?;
    Some(Difference {
        member: format!("{member}{}", place.as_str()),
        decided: shown(decided),
        recorded: shown(recorded),
    })
}

/// Both sides as a whole.
pub(super) fn whole(member: &str, decided: &Value, recorded: &Value) -> Difference {
    Difference {
        member: member.to_owned(),
        decided: shown(Some(decided)),
        recorded: shown(Some(recorded)),
    }
}

/// Two sides of one place; none where it has no such member.
type Sides<'a> = (Option<&'a Value>, Option<&'a Value>);

fn walk<'a>(
    place: &mut Pointer,
    decided: Option<&'a Value>,
    recorded: Option<&'a Value>,
) -> Option<Sides<'a>> {
    match (decided, recorded) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => objects(place, left, right),
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                place.push_index(index);
                let found = walk(place, left.get(index), right.get(index));
                if found.is_some() {
                    return found;
                }
                place.pop();
            }
            None
        }
        (decided, recorded) => (decided != recorded).then_some((decided, recorded)),
    }
}

fn objects<'a>(place: &mut Pointer, left: &'a Object, right: &'a Object) -> Option<Sides<'a>> {
    let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        place.push_key(name);
        let found = walk(place, left.get(name), right.get(name));
        if found.is_some() {
            return found;
        }
        place.pop();
    }
    None
}

fn shown(side: Option<&Value>) -> String {
    let Some(value) = side else {
        return "nothing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aiws::object;

    #[test]
    fn the_first_member_that_differs_is_named() {
        let long = "x".repeat(SHOWN_CHARS);
        let one = object! { "a": vec![1, 2], "b": object! { "c/d": "x" }, "z": &*long };
        let cases = [
            (object! { "a": vec![1, 3] }, "/a/1", "2", "3"),
            (object! { "a": vec![1] }, "/a/1", "2", "nothing"),
            (
                object! { "a": vec![1, 2], "b": object! { "c/d": "y" } },
                "/b/c~1d",
                "\"x\"",
                "\"y\"",
            ),
            (
                object! { "a": vec![1, 2], "b": object! { "c/d": "x" }, "y": 1 },
                "/y",
                "nothing",
                "1",
            ),
        ];
        for (other, place, decided, recorded) in cases {
            let found = first("/m", &one, &other)
                .map(|found| (found.member, found.decided, found.recorded));
            let wanted = (
                format!("/m{place}"),
                decided.to_owned(),
                recorded.to_owned(),
            );
            assert_eq!(found, Some(wanted));
        }
        assert_eq!(first("/m", &one, &one), None);
        let cut = whole("/m", &one, &Value::Null);
        assert!(cut.decided.ends_with("...") && cut.recorded == "null");
    }
}
