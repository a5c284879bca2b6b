//! Whether a published schema and the reader of the code say the same of a value, and of everything that is wrong with it.
//! Invariant: the schema never refuses what the reader takes; where it takes more, a row of `DIFFERENCES` says why it must.
//! Called by the tests of the published schemas, here for records and in `tests/tests/schemas` for requests.

use std::collections::{BTreeMap, BTreeSet};

use aiws::error::Error;
use aiws::json::Value;
use aiws::published::Published;
use aiws::schema::Schema;

use crate::mutants::{decides, deciding, mutants, places};

/// What a schema of Draft 2020-12 cannot say.
pub struct Difference {
    /// A part of the reader's refusal, by which it is known.
    pub refusal: &'static str,
    /// What it is about; `docs/SCHEMAS.md` has this sentence.
    pub why: &'static str,
    /// Whether it is seen in requests rather than in records.
    pub in_requests: bool,
}

const fn record(refusal: &'static str, why: &'static str) -> Difference {
    Difference {
        refusal,
        why,
        in_requests: false,
    }
}

/// All of them. A refusal of the reader that the schema does not share and that no row names fails the tests, and so
/// does a row that was never needed.
pub const DIFFERENCES: &[Difference] = &[
    record(
        "expected names in ascending order",
        "a set stands in ascending order of its scalar values",
    ),
    record(
        "expected one mapping per input and producer",
        "no two mappings have the same input and producer",
    ),
    record(
        "expected one policy per join",
        "no two policies are of the same join",
    ),
    record(
        "expected one skip rule per node",
        "no two skip rules are of the same node",
    ),
    record(
        "expected the delivery's own id",
        "a delivery and its recipient have the same deliveryId",
    ),
    record(
        "expected the value of the delivery and its claim",
        "a receipt repeats the values of its delivery and claim",
    ),
    record(
        "expected the delivery's",
        "a claim has the generation of its delivery",
    ),
    record(
        "expected each delivery once",
        "no two inputs of a consumption have the same deliveryId",
    ),
    record(
        "expected exactly the deliveries of the inputs",
        "the selected deliveries are those of the inputs",
    ),
    record(
        "expected a delivery that plays no other part here",
        "a delivery is selected, excluded or left over, and one of these only",
    ),
    record(
        "expected each of them once",
        "in a manifest no operation, criterion, attempt, input, delivery or place is listed twice",
    ),
    record(
        "expected each run once",
        "no two members of a hold are of the same run",
    ),
    record(
        "expected one disposition per attempt",
        "no two dispositions of a hold are of the same attempt",
    ),
    Difference {
        refusal: "expected the value of the outer layer",
        why: "what stands in an envelope or a command and in the outer layer too is one value",
        in_requests: true,
    },
];

/// Something that a schema and a reader both judge.
pub struct Subject<'a> {
    pub name: &'a str,
    pub schema: &'a Published,
    /// The definition that it is an instance of.
    pub definition: &'a str,
    pub value: Value,
    pub read: &'a dyn Fn(&Value) -> Result<(), Error>,
    /// Places whose content belongs to somebody else.
    pub open: &'a [&'a str],
}

/// What was seen over several subjects.
#[derive(Default)]
pub struct Seen {
    differences: BTreeSet<&'static str>,
    /// Per closed object: the members that the reader knows, and those that an example has.
    members: BTreeMap<Vec<String>, BTreeSet<String>>,
    /// How many values were judged by both.
    pub judged: usize,
}

impl Seen {
    /// Judges a subject and all its mutants.
    #[track_caller]
    pub fn judge(&mut self, subject: &Subject<'_>, names: &[&str]) {
        let Subject {
            name,
            schema,
            value,
            read,
            open,
            ..
        } = subject;
        let compiled = schema
            .definition(subject.definition)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read(value), Ok(()), "{name}");
        assert_eq!(compiled.validate(value), Ok(()), "{name}");
        let document = schema.document().expect(schema.name);
        let mut next = Vec::new();
        for place in places(value, open) {
            for mutant in mutants(value, &place, names) {
                if self.compare(subject, &compiled, &place, &mutant)
                    && decides(value, &mutant, &place, names)
                {
                    next.push(mutant);
                }
            }
            if matches!(value.pointer(&place), Some(Value::Object(_)))
                && !open.contains(&place.as_str())
            {
                self.members(subject, &document, &place);
            }
        }
        for value in next {
            for place in places(&value, open) {
                for mutant in deciding(&value, &place, names) {
                    self.compare(subject, &compiled, &place, &mutant);
                }
            }
        }
    }

    /// Whether both take it.
    #[track_caller]
    fn compare(
        &mut self,
        subject: &Subject<'_>,
        compiled: &Schema,
        place: &str,
        mutant: &Value,
    ) -> bool {
        let name = subject.name;
        self.judged += 1;
        match (compiled.validate(mutant), (subject.read)(mutant)) {
            (Ok(()), Ok(())) => return true,
            (Err(_), Err(_)) => {}
            (Err(error), Ok(())) => {
                panic!("{name}{place}: only the schema refuses: {error}\n{mutant}")
            }
            (Ok(()), Err(error)) => self.differs(name, place, &error),
        }
        false
    }

    #[track_caller]
    fn differs(&mut self, name: &str, place: &str, error: &Error) {
        let row = DIFFERENCES
            .iter()
            .find(|row| error.message.contains(row.refusal));
        let Some(row) = row else {
            panic!("{name}{place}: only the reader refuses: {error}");
        };
        self.differences.insert(row.refusal);
    }

    /// The members that the reader knows at a place are those of the schema there.
    #[track_caller]
    fn members(&mut self, subject: &Subject<'_>, document: &Value, place: &str) {
        let name = subject.name;
        let stranger =
            crate::mutants::changed(&subject.value, &format!("{place}/x"), Some(Value::Int(1)));
        let error = (subject.read)(&stranger).expect_err(name);
        let mut known: Vec<String> = backquoted(&error.message)
            .into_iter()
            .filter(|name| name != "x")
            .collect();
        known.sort();
        let shapes: Vec<BTreeSet<String>> = shapes(document, subject.definition, place);
        let set: BTreeSet<String> = known.iter().cloned().collect();
        let mut fits = shapes.iter().map(|shape| {
            let mut shape = shape.clone();
            // The type of a command is read before its members are.
            if !set.contains("type") && error.message.contains("unknown field") {
                shape.remove("type");
            }
            shape
        });
        assert!(
            fits.any(|shape| shape == set),
            "{name}{place}: the reader knows {known:?}, the schema {shapes:?}"
        );
        let seen = self.members.entry(known).or_default();
        let found = subject.value.pointer(place).and_then(Value::as_object);
        seen.extend(found.into_iter().flatten().map(|(name, _)| name.clone()));
    }

    /// Every row was needed, and every member of every object was in an example.
    #[track_caller]
    pub fn finish(&self, in_requests: bool) {
        for row in DIFFERENCES
            .iter()
            .filter(|row| row.in_requests == in_requests)
        {
            assert!(
                self.differences.contains(row.refusal),
                "never seen: {} ({})",
                row.refusal,
                row.why
            );
        }
        for (known, seen) in &self.members {
            for member in known {
                assert!(
                    seen.contains(member),
                    "no example has {member} of {known:?}"
                );
            }
        }
    }
}

/// The names between backquotes.
fn backquoted(message: &str) -> Vec<String> {
    message
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The members of each closed object that a definition allows at a place.
fn shapes(document: &Value, definition: &str, place: &str) -> Vec<BTreeSet<String>> {
    let root = document
        .pointer(&format!("/$defs/{definition}"))
        .expect(definition);
    let mut here = whole(document, root);
    for step in place.split('/').skip(1) {
        let mut next = Vec::new();
        for schema in here {
            let inner = match schema
                .get("properties")
                .and_then(|members| members.get(step))
            {
                Some(member) => Some(member),
                None => schema
                    .get("items")
                    .filter(|_| step.parse::<usize>().is_ok()),
            };
            next.extend(inner.into_iter().flat_map(|inner| whole(document, inner)));
        }
        here = next;
    }
    let closed = here.into_iter().filter(|schema| {
        schema.get("additionalProperties").and_then(Value::as_bool) == Some(false)
    });
    closed
        .map(|schema| {
            let members = schema.get("properties").and_then(Value::as_object);
            members
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect()
        })
        .collect()
}

/// A schema with everything that it refers to or puts beside.
fn whole<'a>(document: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut all = vec![schema];
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = document
            .pointer(target.trim_start_matches('#'))
            .expect(target);
        all.extend(whole(document, target));
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let parts = schema
            .get(keyword)
            .and_then(Value::as_array)
            .unwrap_or_default();
        all.extend(parts.iter().flat_map(|part| whole(document, part)));
    }
    for keyword in ["then", "else"] {
        all.extend(
            schema
                .get(keyword)
                .into_iter()
                .flat_map(|part| whole(document, part)),
        );
    }
    all
}
