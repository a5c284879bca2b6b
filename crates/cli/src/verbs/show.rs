//! `praxis show`: the page that people live on.
//! Invariant: reads the store without changing it, whatever state it is in.
//! Called by `verbs::run`.

use aiws::error::Error;
use praxis_model::run::NodeStatus;

use super::{Call, print};
use crate::args::Show as Args;
use crate::coding::outcome::{CHECK_FILE, TRANSCRIPT_FILE, named};
use crate::coding::pending::manifest_of;
use crate::exit::Exit;
use crate::limits::TAIL_LINES;
use crate::render::page::{Page, Standing};
use crate::render::text::{self, Style};
use crate::render::{escape, json};
use crate::session::now_ms;
use crate::store::{Reader, Run};

/// Runs it.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn run(call: &Call, args: &Args) -> Result<Exit, Error> {
    let reader = Reader::open(&call.store)?;
    let subject = reader.find(args.run.as_deref())?;
    let run = reader.load(&subject)?;
    let page = reader.page(&run, now_ms());
    let failing = failing_step(&reader, &run, &page);
    if call.json {
        let mut value = json::page(&page);
        if let (aiws::json::Value::Object(members), Some((node, lines))) = (&mut value, &failing) {
            let step = aiws::object! { "node": node.as_str(), "lines": lines.clone() };
            members.insert("failingStep".to_owned(), step);
        }
        print(&value.to_string())?;
        return Ok(Exit::Done);
    }
    let style = Style::of(&std::io::stdout());
    let mut shown = text::page(&page, style);
    if let Some((node, lines)) = failing {
        shown.push_str(&format!("\nlast output of {node}\n"));
        for line in lines {
            shown.push_str(&format!(
                "  | {}\n",
                escape::clip(&line, style.width.saturating_sub(4))
            ));
        }
    }
    let others = reader.runs()?.len() - 1;
    if others > 0 && args.run.is_none() {
        let noun = if others == 1 { "run" } else { "runs" };
        shown.push_str(&format!(
            "\nThe store has {others} earlier {noun}: praxis log shows them.\n"
        ));
    }
    for begun in reader.begun() {
        let run = begun.run_id.map(|run| run.to_string()).unwrap_or_default();
        shown.push_str(&format!(
            "\nRun {run} was begun and not admitted: {} resume {run}\n",
            crate::render::program()
        ));
    }
    print(&shown)?;
    Ok(Exit::Done)
}

/// The last step that went wrong in a run that is not accepted, with the end of its output.
fn failing_step(reader: &Reader, run: &Run, page: &Page) -> Option<(String, Vec<String>)> {
    if page.standing == Standing::Accepted {
        return None;
    }
    let bad = |row: &&crate::render::rows::Row| row.bad && row.status != NodeStatus::Active;
    let row = page.rows.iter().rev().find(bad)?;
    let manifest = manifest_of(&run.state, &row.id)?;
    let output = named(&manifest.artifacts, CHECK_FILE)
        .or_else(|| named(&manifest.artifacts, TRANSCRIPT_FILE))?;
    let bytes = reader.artifact(output).ok()?;
    Some((
        row.id.clone(),
        escape::tail(&String::from_utf8_lossy(&bytes), TAIL_LINES),
    ))
}
