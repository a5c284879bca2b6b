//! What runs inside the shim of an agent or a check: the command, and the capture of what it left.
//! Invariant: nothing is captured before everything below the shim has ended, and nothing that holds a secret is kept.
//! Called by `main` for the hidden verb, in a process of its own; `adapter` reads what it leaves.

use std::path::{Path, PathBuf};

use aiws::canonical;
use aiws::decimal::Dec;
use aiws::error::{Code, Error};
use aiws::id::NodeId;
use praxis_engine::process::{EXIT_NOT_APPLIED, Exit};
use praxis_engine::shim::{self, Ending, Finish};
use serde::{Deserialize, Serialize};

use super::attempt::{AttemptFiles, plan, usage};
use super::graph::Stage;
use super::outcome::{PATCH_FILE, PLAN_FILE};
use super::workspace::{Workspace, private_dir, remove};
use crate::files::read_left;
use crate::limits::PATCH_BYTES;
use crate::store::write_private;

/// What the work began from, as a patch: its result where what it left cannot be captured.
pub(super) const BEFORE_FILE: &str = "before.patch";
/// The output that says what the work cost.
pub(super) const COST: &str = "cost";

/// What the shim of an agent or a check has to know beside its command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Part {
    /// The node that it works for.
    pub(super) node: NodeId,
    /// The store directory.
    pub(super) store: String,
    /// The run.
    pub(super) run: String,
    /// The commit that work starts from.
    pub(super) base: String,
    /// The user's repository.
    pub(super) repository: String,
    /// Why what a check looks at does not count whatever the check says.
    pub(super) failure: Option<String>,
}

/// What the work cost, as the agent says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Cost {
    /// In units.
    pub(super) actual: Dec,
    /// What is to be said of it.
    pub(super) note: Option<String>,
}

/// The body of the hidden verb; returns the exit of the process.
#[must_use]
pub fn body(folder: &Path) -> i32 {
    // Read before there is an agent that could write there.
    let before = read_left(
        folder,
        &folder.join(BEFORE_FILE),
        PATCH_BYTES,
        Code::StoreIo,
    );
    let before = before.unwrap_or_default();
    shim::main(folder, |ending| {
        let mut kept = Finish::default();
        // What fails here keeps the rest of the work from counting; it is no reason to know nothing.
        if let Err(error) = finish(folder, &before, ending, &mut kept) {
            kept.failure.get_or_insert(error.message);
        }
        kept
    })
}

fn finish(folder: &Path, before: &[u8], ending: &Ending, kept: &mut Finish) -> Result<(), Error> {
    let part: Part = canonical::from_value(&ending.spec.host)?;
    kept.failure.clone_from(&part.failure);
    let stage = Stage::of(&part.node);
    let refused = ending.finished.exit == Exit::Code(EXIT_NOT_APPLIED);
    if stage.and_then(Stage::agent).is_none() || refused && !ending.finished.was_cut() {
        return Ok(());
    }
    let workspace = Workspace::at(Path::new(&part.store), &part.run, &part.base);
    let files = AttemptFiles::at(&workspace, folder);
    let results = folder.join("result");
    remove(&results)?;
    private_dir(&results)?;
    let mut keep = |name: &str, bytes: &[u8]| -> Result<PathBuf, Error> {
        let path = results.join(name);
        write_private(&path, bytes, false)?;
        kept.outputs.push((name.to_owned(), path.clone()));
        Ok(path)
    };
    let (actual, note) = usage(&files);
    keep(COST, &canonical::bytes_of(&Cost { actual, note })?)?;
    match stage {
        Some(Stage::Plan) => {
            let plan = plan(&files).and_then(|plan| without_secrets(ending, plan))?;
            keep(PLAN_FILE, &plan)?;
        }
        _ => {
            // An agent may have removed the engine's repository, too.
            let captured = workspace
                .prepare(Path::new(&part.repository))
                .and_then(|()| workspace.capture())
                .and_then(|captured| without_secrets(ending, captured.patch));
            match captured {
                Ok(patch) => drop(keep(PATCH_FILE, &patch)?),
                Err(error) => {
                    keep(PATCH_FILE, before)?;
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// The bytes of a result, unless the value of a secret variable stands in them: results are kept for years.
fn without_secrets(ending: &Ending, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    match ending.mask.found_in(&bytes) {
        None => Ok(bytes),
        Some(name) => Err(Error::new(
            Code::EvidenceUnreadable,
            format!("the result contains the value of {name} and was not kept"),
        )),
    }
}
