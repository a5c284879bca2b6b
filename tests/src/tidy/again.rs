//! The page of deciding again: which facts every command is decided on, and where each is known from.
//! Invariant: the page's table is the model's own, so that a command or a fact that is added changes the page.
//! Its test compares `docs/DEEP.md` with what would be written now.

use std::fmt::Write as _;

use praxis_model::command::CommandType;
use praxis_model::redecide::{Fact, Source, row};

use crate::generated;

const PATH: &str = "docs/DEEP.md";
const COMMAND: &str = "PRAXIS_BLESS=1 cargo test -p praxis-tests --lib";

const HEAD: &str = "# Deciding again

Generated from the table of facts in `crates/model/src/redecide/rows.rs`; do not edit the table. Written by
`PRAXIS_BLESS=1 cargo test -p praxis-tests --lib`.

`praxis verify --deep` does all that `praxis verify` does, and decides every event once more (T-11): from the state that
its stream had before it, the command that it records and the facts that it records. What follows must be the recorded
command, outcome and result.

## What is a finding

Each has the code STORE_CORRUPT and names sequence, stream, revision, command and, as a JSON pointer, the first member
of the event that differs. The exit is 6, as for every finding of `verify`.

| member | what is wrong |
|---|---|
| `/command/..`, `/outcome/..`, `/result/..` | something else follows from command and facts |
| `/outcome` | the command is refused: this event should not exist |
| `/facts/registers/N` | the event was decided on a register that the log does not have at its place |
| `/facts/account` | the event was decided on an account that the log never had |
| `/outcome/accounts/N` | also: the reservation is past the bound at its place in the log |
| none | the decision is right, and the event does not follow the state of its stream |

An event that differs is folded as it is recorded, so that one forgery is one finding and not many.

## What is not decided

These are counted apart, and never as decided:

- **Not decidable again**, by command: what was before the event is not known, because an event of its stream is missing,
  cannot be read, is of another version, or could not be folded; or because the projections are lost and the command asks
  for something that the log tells (third column below).
- **Of other codec versions**: their rules are not this build's.
- **Not readable**: each has a finding of `verify` itself.

## What it does not show

That the recorded facts were true: who acted, what a host read back, what evidence shows, what the clock said. Whoever
can write the store and forges facts and outcome alike, from the first event on, is found by neither verification. Keep a
head elsewhere ([SECURITY.md](SECURITY.md)).

## What a decision looks at, and whether the event says it

Every command looks at the actor, its kind, and the times of authorization and decision; the event has them. It looks at
policy's answer, which no event has: a command that policy does not allow leaves no event, so the answer was yes. It looks
at what its sender expected of revision and epoch, and what was accepted was what the stream had. Beside that:

| command | looks at, and the event says | looks at, and the log says |
|---|---|---|
";

const TAIL: &str = "
No fact that a command looks at is lost, so no command is undecidable by itself. The mission's gates are not in the event:
the log says at its place which were closed. For a command that launches work the writer's condition held them open, and no
command of this build closes a gate of a mission, so that a boundary read none either. A test erases every fact that a row
does not name, and decides once more to the same end.
";

fn document() -> String {
    let mut out = HEAD.to_owned();
    for kind in CommandType::ALL {
        let of = |source: Source| {
            let own = row(*kind).own.iter().copied();
            let names: Vec<&str> = own
                .filter(|fact| fact.source() == source)
                .map(Fact::name)
                .collect();
            if names.is_empty() {
                "-".to_owned()
            } else {
                names.join(", ")
            }
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            kind.name(),
            of(Source::Event),
            of(Source::Log)
        );
    }
    out + TAIL
}

/// Proves T-11: the page says for every command which facts it is decided on again and where they are known from.
#[test]
fn the_page_of_deciding_again_is_the_models_table() {
    assert_eq!(generated::check(PATH, &document(), COMMAND), Ok(()));
}
