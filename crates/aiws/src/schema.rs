//! JSON Schemas over our values: a bounded subset of Draft 2020-12 with local references only (FV-GRAPH.9).
//! Invariant: a compiled schema never fetches, never loops, and costs at most what `limits` says; an unknown keyword is refused, never ignored.
//! Called by the model for node inputs, results and mappings; the only place that names `jsonschema`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::canonical;
use crate::error::Error;
use crate::json::{Object, Value};
use crate::limits::{MAX_EXPANDED_SUBSCHEMAS, MAX_SCHEMA_BYTES, MAX_SUBSCHEMAS};
use crate::pointer::Pointer;

/// What stands under a keyword.
#[derive(Clone, Copy)]
enum Holds {
    /// A value that the metaschema checks.
    Plain,
    /// A subschema.
    One,
    /// A list of subschemas.
    List,
    /// Subschemas by name.
    Named,
    /// A local reference.
    Reference,
    /// The dialect's name.
    Dialect,
}

/// Every keyword that is understood; all others are refused, `format`, `pattern`, `$id` and `$dynamicRef` among them.
const KEYWORDS: &[(&str, Holds)] = &[
    ("$schema", Holds::Dialect),
    ("$ref", Holds::Reference),
    ("$defs", Holds::Named),
    ("$comment", Holds::Plain),
    ("title", Holds::Plain),
    ("description", Holds::Plain),
    ("type", Holds::Plain),
    ("enum", Holds::Plain),
    ("const", Holds::Plain),
    ("minLength", Holds::Plain),
    ("maxLength", Holds::Plain),
    ("minItems", Holds::Plain),
    ("maxItems", Holds::Plain),
    ("minimum", Holds::Plain),
    ("maximum", Holds::Plain),
    ("required", Holds::Plain),
    ("properties", Holds::Named),
    ("additionalProperties", Holds::One),
    ("items", Holds::One),
    ("prefixItems", Holds::List),
    ("allOf", Holds::List),
    ("anyOf", Holds::List),
    ("oneOf", Holds::List),
    ("not", Holds::One),
];

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A compiled schema. Cloning is cheap.
///
/// ```
/// use aiws::schema::Schema;
/// let schema = Schema::compile(&aiws::object! { "type": "object", "required": vec!["ok"] })?;
/// assert!(schema.validate(&aiws::object! { "ok": true }).is_ok());
/// assert!(schema.validate(&aiws::object! {}).is_err());
/// # Ok::<(), aiws::error::Error>(())
/// ```
#[derive(Clone)]
pub struct Schema(Arc<jsonschema::Validator>);

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// `SCHEMA_INVALID` with a pointer into the schema: an unknown keyword, a reference that is not local or leads
    /// nowhere or in a circle, a malformed keyword, or more than the bounds allow.
    pub fn compile(schema: &Value) -> Result<Schema, Error> {
        let size = canonical::to_bytes(schema).len();
        if size > MAX_SCHEMA_BYTES {
            let message = format!(
                "expected a schema of at most {MAX_SCHEMA_BYTES} canonical bytes, found {size}"
            );
            return Err(Error::schema("", message));
        }
        let mut survey = Survey::default();
        survey.walk(schema, &mut Pointer::default())?;
        survey.cost()?;
        Schema::trusted(&canonical::to_serde(schema))
    }

    /// Compiles a schema of this crate, or one whose keywords and cost were looked at.
    pub(crate) fn trusted(schema: &serde_json::Value) -> Result<Schema, Error> {
        let options = jsonschema::draft202012::options().offline();
        let validator = options.build(schema).map_err(|cause| {
            let pointer = cause.instance_path().to_string();
            Error::schema(
                pointer,
                format!("not a schema of Draft 2020-12: {}", cause.masked()),
            )
        })?;
        Ok(Schema(Arc::new(validator)))
    }

    /// Checks a value. The message never repeats the value itself.
    ///
    /// # Errors
    /// `SCHEMA_INVALID` with a pointer into the value, at its first place that does not fit.
    pub fn validate(&self, value: &Value) -> Result<(), Error> {
        let value = canonical::to_serde(value);
        self.0.validate(&value).map_err(|cause| {
            let pointer = cause.instance_path().to_string();
            Error::schema(pointer, cause.masked().to_string())
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Schema")
    }
}

/// The subschemas of a schema by pointer, each with the places that it leads to.
#[derive(Default)]
struct Survey {
    leads_to: BTreeMap<String, Vec<Lead>>,
}

/// A step from one subschema to another.
struct Lead {
    target: String,
    /// Where the reference stands; empty for a subschema that is simply inside.
    reference: Option<String>,
}

/// The state of a subschema while costs are added up.
#[derive(Clone, Copy)]
enum Cost {
    Adding,
    Known(usize),
}

impl Survey {
    fn walk(&mut self, schema: &Value, place: &mut Pointer) -> Result<(), Error> {
        if self.leads_to.len() == MAX_SUBSCHEMAS {
            return Err(Error::schema(
                place.as_str(),
                format!("expected at most {MAX_SUBSCHEMAS} subschemas"),
            ));
        }
        let here = place.as_str().to_owned();
        self.leads_to.insert(here.clone(), Vec::new());
        match schema {
            Value::Bool(_) => Ok(()),
            Value::Object(members) => self.walk_members(members, &here, place),
            other => Err(Error::schema(
                here,
                format!("expected a schema, found {}", other.kind()),
            )),
        }
    }

    fn walk_members(
        &mut self,
        members: &Object,
        here: &str,
        place: &mut Pointer,
    ) -> Result<(), Error> {
        for (keyword, value) in members {
            place.push_key(keyword);
            let known = KEYWORDS.iter().find(|(name, _)| name == keyword);
            let Some((_, holds)) = known else {
                return Err(Error::schema(
                    place.as_str(),
                    "expected a keyword of the supported subset",
                ));
            };
            match holds {
                Holds::Plain => {}
                Holds::One => self.inner(value, here, place)?,
                Holds::List => {
                    for (index, item) in list(value, place)?.iter().enumerate() {
                        place.push_index(index);
                        self.inner(item, here, place)?;
                        place.pop();
                    }
                }
                Holds::Named => {
                    for (name, item) in named(value, place)? {
                        place.push_key(name);
                        self.inner(item, here, place)?;
                        place.pop();
                    }
                }
                Holds::Reference => {
                    self.lead(here, local(value, place)?, Some(place.as_str().to_owned()))
                }
                Holds::Dialect if value.as_str() == Some(DIALECT) => {}
                Holds::Dialect => {
                    return Err(Error::schema(
                        place.as_str(),
                        format!("expected {DIALECT:?}"),
                    ));
                }
            }
            place.pop();
        }
        Ok(())
    }

    fn inner(&mut self, schema: &Value, parent: &str, place: &mut Pointer) -> Result<(), Error> {
        // What stands in $defs costs nothing by itself, but counting it keeps the sum an upper bound.
        self.lead(parent, place.as_str().to_owned(), None);
        self.walk(schema, place)
    }

    fn lead(&mut self, from: &str, target: String, reference: Option<String>) {
        self.leads_to
            .entry(from.to_owned())
            .or_default()
            .push(Lead { target, reference });
    }

    /// Adds up what the schema costs with every reference followed. A reference in a circle would never end, and
    /// references that branch again and again would grow without bound.
    fn cost(&self) -> Result<(), Error> {
        let mut known = BTreeMap::new();
        let total = self.cost_of("", None, &mut known)?;
        if total > MAX_EXPANDED_SUBSCHEMAS {
            let message = format!(
                "expected at most {MAX_EXPANDED_SUBSCHEMAS} subschemas with references followed"
            );
            return Err(Error::schema("", message));
        }
        Ok(())
    }

    /// Recursion is bounded by the number of subschemas, because a circle ends it.
    fn cost_of<'a>(
        &'a self,
        place: &'a str,
        reference: Option<&str>,
        known: &mut BTreeMap<&'a str, Cost>,
    ) -> Result<usize, Error> {
        match known.get(place) {
            Some(Cost::Known(cost)) => return Ok(*cost),
            Some(Cost::Adding) => {
                return Err(Error::schema(
                    reference.unwrap_or(place),
                    "expected no reference that leads in a circle",
                ));
            }
            None => {}
        }
        let Some(leads) = self.leads_to.get(place) else {
            let message = "expected a reference to a subschema of this schema, found none there";
            return Err(Error::schema(reference.unwrap_or(place), message));
        };
        known.insert(place, Cost::Adding);
        let mut total = 1usize;
        for lead in leads {
            let cost =
                self.cost_of(&lead.target, lead.reference.as_deref().or(reference), known)?;
            total = total.saturating_add(cost);
        }
        known.insert(place, Cost::Known(total));
        Ok(total)
    }
}

fn list<'a>(value: &'a Value, place: &Pointer) -> Result<&'a [Value], Error> {
    let found = || {
        Error::schema(
            place.as_str(),
            format!("expected a list of schemas, found {}", value.kind()),
        )
    };
    value.as_array().ok_or_else(found)
}

fn named<'a>(value: &'a Value, place: &Pointer) -> Result<&'a Object, Error> {
    let found = || {
        Error::schema(
            place.as_str(),
            format!("expected schemas by name, found {}", value.kind()),
        )
    };
    value.as_object().ok_or_else(found)
}

/// The pointer of a local reference. Percent-encoding would give one place several names, so it is left out.
fn local(value: &Value, place: &Pointer) -> Result<String, Error> {
    let target = value.as_str().and_then(|text| text.strip_prefix('#'));
    match target {
        Some(target) if (target.is_empty() || target.starts_with('/')) && !target.contains('%') => {
            Ok(target.to_owned())
        }
        _ => Err(Error::schema(
            place.as_str(),
            "expected a local reference like \"#/$defs/name\"",
        )),
    }
}
