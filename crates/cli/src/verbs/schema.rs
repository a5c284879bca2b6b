//! `praxis schema`: the published schemas, exactly as they are pinned.
//! Invariant: what is printed has the digest that the list says; nothing is read but the program itself.
//! Called by `verbs::run`.

use aiws::error::{Code, Error};
use aiws::json::Value;
use aiws::object;
use aiws::published::{PUBLISHED, Published, schema_of};

use super::print;
use crate::args::Schema as Args;
use crate::exit::Exit;
use crate::render::json;

/// Runs it.
///
/// # Errors
///
/// `USAGE` with the names that there are.
pub fn run(args: &Args, as_json: bool) -> Result<Exit, Error> {
    let Some(name) = &args.name else {
        return list(as_json);
    };
    let schema = schema_of(name).ok_or_else(|| unknown(name))?;
    if as_json {
        let mut members = facts(schema);
        if let Value::Object(members) = &mut members {
            members.insert("document".to_owned(), schema.document()?);
        }
        print(&json::object("schema", members).to_string())?;
    } else {
        print(schema.text)?;
    }
    Ok(Exit::Done)
}

fn list(as_json: bool) -> Result<Exit, Error> {
    if as_json {
        let schemas: Vec<Value> = PUBLISHED.iter().map(facts).collect();
        print(&json::object("schemas", object! { "schemas": schemas }).to_string())?;
    } else {
        let lines: Vec<String> = PUBLISHED
            .iter()
            .map(|schema| format!("{:<16}{}", schema.name, schema.digest()))
            .collect();
        print(&lines.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn facts(schema: &Published) -> Value {
    object! { "name": schema.name, "digest": schema.digest().to_string() }
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = PUBLISHED.iter().map(|schema| schema.name).collect();
    let found = aiws::error::beginning(name);
    Error::new(
        Code::Usage,
        format!("expected one of {}, found {found:?}", known.join(", ")),
    )
}
