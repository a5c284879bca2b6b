//! The page of the hand-off protocol: its commands, state machines and codes are the tables of the code.
//! Invariant: what stands between its marks is made from the tables alone; the words around them are written by hand.
//! Its tests compare `docs/HANDOFF.md` and the pictures with what would be written now.

use std::fmt::Write as _;

use aiws::error::{Code, Stage};
use praxis_model::command::CommandType;
use praxis_model::guard::Guard;
use praxis_model::table::{Family, Launch, TABLE, Who, row};

use crate::generated;
use crate::machines::{self, draw};

const PATH: &str = "docs/HANDOFF.md";
const COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-tests --lib";

/// Whether a code is one of the protocol's own twenty.
fn is_own(code: Code) -> bool {
    code.namespace().name() == "handoff"
}

fn commands(own: bool) -> String {
    let mut out = "| command | who decides | launches work | stopped by gates | refused after the end | carries the epoch | moves |\n|---|---|---|---|---|---|---|\n".to_owned();
    let yes = |yes: bool| if yes { "yes" } else { "-" };
    for row in TABLE
        .iter()
        .filter(|row| (row.family == Family::Handoff) == own)
    {
        let who = match row.who {
            Who::Any => "policy",
            Who::Human => "a person",
            Who::Recovery => "recovery authority",
        };
        let moves = machines::moved_by(row.kind);
        let moves = match moves.is_empty() {
            true => "-".to_owned(),
            false => moves.join("; "),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {who} | {} | {} | {} | {} | {moves} |",
            row.kind.name(),
            yes(row.launch != Launch::Nothing),
            yes(row.gated),
            yes(row.ends_with_run),
            yes(row.owned),
        );
    }
    out
}

fn codes() -> String {
    let mut out = "| stage | code | it means | checks |\n|---|---|---|---|\n".to_owned();
    let mut own: Vec<Code> = Code::all()
        .iter()
        .copied()
        .filter(|code| is_own(*code))
        .collect();
    own.sort_by_key(|code| code.stage());
    for code in own {
        let stage = code.stage();
        let number = stage.number().unwrap_or_default();
        let checks = Guard::ALL
            .iter()
            .filter(|guard| guard.code() == code)
            .count();
        let name = code.name();
        let _ = writeln!(
            out,
            "| {number} {} | [`{name}`](errors/{name}.md) | {} | {checks} |",
            stage.name(),
            code.sentence(),
        );
    }
    out
}

const STAGES: [Stage; 9] = [
    Stage::Shape,
    Stage::Authentication,
    Stage::Replay,
    Stage::Revision,
    Stage::Ownership,
    Stage::Authority,
    Stage::Gates,
    Stage::Object,
    Stage::Admission,
];

fn stages() -> String {
    let mut out = "| stage | refuses with |\n|---|---|\n".to_owned();
    for stage in STAGES {
        let mut names: Vec<&str> = Guard::ALL
            .iter()
            .filter(|guard| guard.stage() == stage)
            .map(|guard| guard.code())
            .chain(
                Code::all()
                    .iter()
                    .copied()
                    .filter(|code| is_own(*code) && code.stage() == stage),
            )
            .map(Code::name)
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            names.push("-".to_owned());
        }
        let number = stage.number().unwrap_or_default();
        let _ = writeln!(out, "| {number} {} | {} |", stage.name(), names.join(", "));
    }
    out
}

fn parts() -> Vec<(String, String)> {
    let mut parts = vec![
        ("commands".to_owned(), commands(true)),
        ("other commands".to_owned(), commands(false)),
        ("codes".to_owned(), codes()),
        ("stages".to_owned(), stages()),
    ];
    let drawn = machines::all().into_iter();
    parts.extend(drawn.map(|machine| (machine.name.to_owned(), machine.block())));
    parts
}

/// Proves HD-01.T11, HS-01.1, FV-RUN.4: the page and its pictures say exactly the moves that a replay lets pass.
#[test]
fn the_page_of_the_protocol_is_the_tables() {
    assert_eq!(generated::check_parts(PATH, &parts(), COMMAND), Ok(()));
    for machine in machines::all() {
        let path = format!("docs/handoff/{}.svg", machine.name);
        let picture = draw::svg(&machine).unwrap_or_default();
        assert_eq!(generated::check(&path, &picture, COMMAND), Ok(()));
    }
}

/// The protocol has ten commands and twenty codes, and the page says so.
#[test]
fn the_page_counts_what_the_tables_have() {
    let own = CommandType::ALL
        .iter()
        .filter(|kind| row(**kind).family == Family::Handoff);
    assert_eq!(own.count(), 10);
    assert_eq!(Code::all().iter().filter(|code| is_own(**code)).count(), 20);
}
