//! `docs/TABLES.md`: the tables as decide was found to hold them, for people.
//!
//! Invariant: made from the same data that the tests hold decide against; without `PRAXIS_BLESS=1` nothing is written, and
//! a page that differs is a failure.

use crate::{delivery, gates, hold, precedence, raises};

const COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-model --test tables";

fn page() -> Result<String, Vec<String>> {
    let mut out = format!(
        "# Tables\n
Generated; do not edit. Written by `{COMMAND}`. A test fails when this page is out of date.\n
Every cell was held against `decide`. What is expected is written by hand from the wire form, in
`crates/model/tests/tables`; nothing of it is asked of the code under test. A row breaks one rule, by the name of its
guard in `crates/model/src/guard.rs`; the first row breaks none. `-> STATE` is what an accepted command makes of the
object, and the object's own state says that the command leaves it. A code is the refusal.\n
## Deliveries\n
A delivery is put into each state by hand, also into those that the command's setting does not reach. There is no claim
of an earlier epoch: recovery ends every claim in its own event, and what it leaves is `PENDING, claimed before`. Rules about the
delivery's state and lease are the columns themselves.\n"
    );
    out.push_str(&delivery::section()?);
    out.push_str("\n## Holds\n\nRules about the state of the hold and its allowed decisions are the columns themselves. No configuration of this build
lets a rule decide; a rule is told HUMAN_REQUIRED where a human would be needed in any case (P-06).\n");
    out.push_str(&hold::section()?);
    out.push_str("\n## Gates\n\n`passes` says that the stage of gates lets the command through; what it is about may still refuse it.\n\n");
    out.push_str(&gates::section()?);
    out.push_str(&precedence::section());
    out.push_str(&raises::section());
    Ok(out)
}

#[test]
fn the_page_is_current() {
    let _on = crate::scene::guarded();
    let wanted = page().expect("every cell holds");
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/TABLES.md");
    if std::env::var_os("PRAXIS_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&file, &wanted).expect("docs/TABLES.md is written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = found
        .lines()
        .zip(wanted.lines())
        .find(|(one, two)| one != two);
    assert!(
        found == wanted,
        "docs/TABLES.md is out of date ({differs:?}); write it anew with: {COMMAND}"
    );
}

/// The request of the wire that asks for a command.
pub fn request(t: &crate::scene::Try) -> Result<Vec<u8>, aiws::error::Error> {
    use aiws::object;
    let command = &t.command;
    let mut body = aiws::canonical::to_value(&command.body)?;
    // What is recorded is the token's fingerprint; on the wire stands a token.
    if let aiws::json::Value::Object(members) = &mut body
        && let Some(token) = members.get_mut("claimToken")
    {
        *token = "A".repeat(43).into();
    }
    let handoff = praxis_model::table::row(command.body.kind()).family
        == praxis_model::table::Family::Handoff;
    let revision = command
        .expected_revision
        .map(|revision| revision.to_string());
    let epoch = command.owner_epoch.map(|epoch| epoch.to_string());
    let sent = match handoff {
        true => object! {
            "protocol": "aiws-handoff/1",
            "requestId": "r1",
            "expectedRevision": revision.clone(),
            "missionId": &command.mission_id,
            "runId": command.run_id.as_ref().map(|run| run.as_str().to_owned()),
            "ownerEpoch": epoch.clone(),
            "body": body,
        },
        false => body,
    };
    let outer = object! {
        "requestId": "r1",
        "expectedRevision": revision,
        "ownerEpoch": epoch,
        "missionId": &command.mission_id,
        "command": sent,
    };
    Ok(aiws::canonical::to_bytes(&outer))
}
