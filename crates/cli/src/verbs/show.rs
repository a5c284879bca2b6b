//! `praxis show`: the page that people live on.
//! Invariant: reads the store without changing it, whatever state it is in.
//! Called by `office::look`.

use aiws::error::Error;
use praxis_model::run::NodeStatus;
use praxis_model::stream::Subject;

use crate::answer::{Answer, View};
use crate::coding::outcome::{CHECK_FILE, TRANSCRIPT_FILE, named};
use crate::coding::pending::manifest_of;
use crate::limits::TAIL_LINES;
use crate::render::page::{Page, Standing};
use crate::render::text::{self, Style};
use crate::render::{escape, json};
use crate::session::now_ms;
use crate::store::{Reader, Run};

/// The page of a run, and what else the store has to say.
///
/// # Errors
///
/// `RUN_NOT_FOUND`, `RUN_AMBIGUOUS`, or a store code.
pub fn answer(reader: &Reader, named: Option<&str>, view: View) -> Result<Answer, Error> {
    let subject = reader.find(named)?;
    let run = reader.load(&subject)?;
    let page = reader.page(&run, now_ms());
    let failing = failing_step(reader, &run, &page);
    let mut value = json::page(&page);
    if let aiws::json::Value::Object(members) = &mut value {
        if let Some((node, lines)) = &failing {
            let step = aiws::object! { "node": node.as_str(), "lines": lines.clone() };
            members.insert("failingStep".to_owned(), step);
        }
        members.insert("job".to_owned(), aiws::canonical::to_value(&run.job)?);
        members.insert("plan".to_owned(), reader.plan(&run).into());
    }
    let others = reader.runs()?.len() - 1;
    let begun = reader.begun();
    Ok(Answer::done(value, view, |style| {
        shown(
            &page,
            failing,
            others * usize::from(named.is_none()),
            &begun,
            style,
        )
    }))
}

fn shown(
    page: &Page,
    failing: Option<(String, Vec<String>)>,
    others: usize,
    begun: &[Subject],
    style: Style,
) -> String {
    let mut shown = text::page(page, style);
    if let Some((node, lines)) = failing {
        shown.push_str(&format!("\nlast output of {node}\n"));
        for line in lines {
            shown.push_str(&format!(
                "  | {}\n",
                escape::clip(&line, style.width.saturating_sub(4))
            ));
        }
    }
    if others > 0 {
        let noun = if others == 1 { "run" } else { "runs" };
        shown.push_str(&format!(
            "\nThe store has {others} earlier {noun}: {} list shows them.\n",
            crate::render::program()
        ));
    }
    for begun in begun {
        let run = begun
            .run_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        shown.push_str(&format!(
            "\nRun {run} was begun and not admitted: {} resume {run}\n",
            crate::render::program()
        ));
    }
    shown
}

/// The last step that went wrong in a run that is not accepted, with the end of its output.
fn failing_step(reader: &Reader, run: &Run, page: &Page) -> Option<(String, Vec<String>)> {
    if page.standing == Standing::Accepted {
        return None;
    }
    let ended = |row: &&crate::render::rows::Row| {
        (row.bad || row.word == "passed") && row.status != NodeStatus::Active && !row.plumbing
    };
    // Where the last check passed, what went wrong before it is over.
    let row = page.rows.iter().rev().find(ended).filter(|row| row.bad)?;
    let manifest = manifest_of(&run.state, &row.id)?;
    let output = named(&manifest.artifacts, CHECK_FILE)
        .or_else(|| named(&manifest.artifacts, TRANSCRIPT_FILE))?;
    let bytes = reader.artifact(output).ok()?;
    Some((
        row.id.clone(),
        escape::tail(&String::from_utf8_lossy(&bytes), TAIL_LINES),
    ))
}
