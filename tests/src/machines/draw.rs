//! Pictures of state machines: boxes at places of our choice, arrows and labels from the tables.
//! Invariant: the same machine gives the same bytes; a state without a place is an error, never left out.
//! Called by `tidy::handoff`.

use std::fmt::Write as _;

use super::{Machine, made};

/// Where a state stands: in columns and rows, which may be broken.
type Place = (&'static str, f64, f64);

/// How an arrow is bent, and where on it the label stands, where the usual way would collide.
type Bend = (&'static str, &'static str, f64, f64);

/// A layout: columns and rows in pixels, places, bends.
struct Layout {
    name: &'static str,
    column: f64,
    row: f64,
    places: &'static [Place],
    bends: &'static [Bend],
}

const WIDTH: f64 = 150.0;
const HEIGHT: f64 = 40.0;
const MARGIN: f64 = 46.0;
const LINE: f64 = 14.0;
/// From the dot that everything begins at to the first box.
const LEAD: f64 = 170.0;

const LAYOUTS: &[Layout] = &[
    Layout {
        name: "delivery",
        column: 330.0,
        row: 150.0,
        places: &[
            ("PENDING", 0.0, 1.0),
            ("CLAIMED", 1.0, 1.0),
            ("ACKNOWLEDGED", 2.0, 1.0),
            ("EXCLUDED", 0.5, 0.0),
            ("INVALIDATED", 1.0, 2.0),
        ],
        bends: &[
            ("PENDING", "CLAIMED", 26.0, 0.5),
            ("CLAIMED", "PENDING", 26.0, 0.5),
            ("CLAIMED", "CLAIMED", 0.0, 0.5),
        ],
    },
    Layout {
        name: "hold",
        column: 330.0,
        row: 90.0,
        places: &[
            ("OPEN", 0.0, 0.5),
            ("RELEASED", 1.0, 0.0),
            ("CANCELED", 1.0, 1.0),
        ],
        bends: &[],
    },
    Layout {
        name: "lifecycle",
        column: 310.0,
        row: 84.0,
        places: &[
            ("RUNNING", 0.0, 1.5),
            ("PAUSED", 0.0, 4.0),
            ("CANCELING", 1.25, 4.0),
            ("CANCELED", 2.3, 4.0),
            ("REJECTED", 2.3, 2.4),
            ("FAILED", 2.3, 1.2),
            ("COMPLETED", 2.3, 0.0),
        ],
        bends: &[
            ("RUNNING", "PAUSED", 70.0, 0.5),
            ("PAUSED", "RUNNING", 70.0, 0.5),
            ("RUNNING", "CANCELING", 0.0, 0.6),
        ],
    },
    Layout {
        name: "node",
        column: 340.0,
        row: 120.0,
        places: &[
            ("PENDING", 0.0, 1.2),
            ("ACTIVE", 1.0, 1.2),
            ("COMPLETED", 2.0, 0.6),
            ("CANCELED", 2.0, 1.8),
            ("FAILED", 0.5, 0.0),
            ("SKIPPED", 0.0, 2.4),
            ("BLOCKED", 1.0, 2.6),
        ],
        bends: &[
            ("PENDING", "ACTIVE", 24.0, 0.5),
            ("ACTIVE", "PENDING", 24.0, 0.5),
            ("ACTIVE", "BLOCKED", 90.0, 0.5),
            ("BLOCKED", "ACTIVE", 90.0, 0.5),
        ],
    },
    Layout {
        name: "attempt",
        column: 310.0,
        row: 130.0,
        places: &[
            ("PREPARED", 0.0, 1.0),
            ("DISPATCHED", 1.0, 1.0),
            ("UNKNOWN", 2.0, 1.0),
            ("CONFIRMED_APPLIED", 1.5, 0.0),
            ("CONFIRMED_NOT_APPLIED", 1.0, 2.0),
        ],
        bends: &[],
    },
    Layout {
        name: "consumption",
        column: 330.0,
        row: 80.0,
        places: &[("VALID", 0.0, 0.0), ("INVALIDATED", 1.0, 0.0)],
        bends: &[],
    },
];

const STYLE: &str = "\
<style>
  text { font-family: 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif; font-size: 12px; fill: #1f2328; text-anchor: middle; }
  .state { font-weight: 600; font-size: 13px; }
  .by { fill: #444c56; font-size: 11.5px; }
  .box { fill: #eef4fb; stroke: #3b6ea5; stroke-width: 1.5; }
  .end { fill: #f4f4f4; stroke: #57606a; stroke-width: 1.5; }
  .rim { fill: none; stroke: #57606a; stroke-width: 1; }
  .arrow { fill: none; stroke: #57606a; stroke-width: 1.4; marker-end: url(#tip); }
  .none { stroke-dasharray: 5 4; }
  .dot { fill: #57606a; }
</style>
<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
<path d=\"M0,1 L10,5 L0,9 z\" fill=\"#57606a\"/></marker></defs>
";

/// A picture in SVG.
///
/// # Errors
/// A sentence that names the machine or the state that has no place.
pub fn svg(machine: &Machine) -> Result<String, String> {
    let layout = LAYOUTS.iter().find(|layout| layout.name == machine.name);
    let layout = layout.ok_or_else(|| format!("{} has no layout", machine.name))?;
    for state in machine.states() {
        layout.place(state)?;
    }
    let (mut lines, mut labels) = (String::new(), String::new());
    for (from, to, by) in &machine.moves {
        let arrow = match from {
            None => layout.start(to)?,
            Some(from) if from == to => layout.turn(to)?,
            Some(from) => layout.arrow(from, to)?,
        };
        let none = if by.is_empty() { " none" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "<path class=\"arrow{none}\" d=\"{}\"/>", arrow.path);
        if from.is_none() {
            let (x, y) = layout.place(to)?;
            let x = x - WIDTH / 2.0 - LEAD;
            let _ = writeln!(
                lines,
                "<circle class=\"dot\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/>"
            );
        }
        label(&mut labels, arrow.at, &made(by));
    }
    let mut boxes = String::new();
    for state in machine.states() {
        let (x, y) = layout.place(state)?;
        boxed(&mut boxes, (x, y), state, machine.is_final(state));
    }
    let (width, height) = layout.size();
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>The state machine: {}</title>\n{STYLE}\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{lines}{boxes}{labels}</svg>\n",
        machine.name
    ))
}

/// An arrow and where its label stands.
struct Arrow {
    path: String,
    at: (f64, f64),
}

impl Layout {
    /// The middle of a state's box.
    fn place(&self, state: &str) -> Result<(f64, f64), String> {
        let found = self.places.iter().find(|(name, ..)| *name == state);
        let (_, column, row) =
            found.ok_or_else(|| format!("{state} of {} has no place", self.name))?;
        let x = MARGIN + LEAD + WIDTH / 2.0 + column * self.column;
        let y = MARGIN + HEIGHT / 2.0 + row * self.row;
        Ok((x, y))
    }

    fn size(&self) -> (f64, f64) {
        let most = |pick: fn(&Place) -> f64| self.places.iter().map(pick).fold(0.0, f64::max);
        let right = MARGIN + LEAD + WIDTH + most(|place| place.1) * self.column;
        let low = MARGIN + HEIGHT + most(|place| place.2) * self.row;
        (right + MARGIN, low + MARGIN)
    }

    fn bend(&self, from: &str, to: &str) -> (f64, f64) {
        let mut bends = self.bends.iter();
        let own = bends.find(|(one, other, ..)| *one == from && *other == to);
        own.map_or((0.0, 0.5), |(.., by, at)| (*by, *at))
    }

    /// From the dot that everything begins at.
    fn start(&self, to: &str) -> Result<Arrow, String> {
        let (x, y) = self.place(to)?;
        let (begin, end) = (x - WIDTH / 2.0 - LEAD, x - WIDTH / 2.0 - 2.0);
        let path = format!("M{begin},{y} L{end},{y}");
        Ok(Arrow {
            path,
            at: ((begin + end) / 2.0, y),
        })
    }

    /// From a state to itself, above it.
    fn turn(&self, state: &str) -> Result<Arrow, String> {
        let (x, y) = self.place(state)?;
        let (left, right, top) = (x + 8.0, x + 58.0, y - HEIGHT / 2.0);
        let path = format!(
            "M{left},{top} C{left},{0} {right},{0} {right},{1}",
            top - 40.0,
            top - 2.0
        );
        Ok(Arrow {
            path,
            at: (x + 33.0, top - 46.0),
        })
    }

    fn arrow(&self, from: &str, to: &str) -> Result<Arrow, String> {
        let (start, end) = (self.place(from)?, self.place(to)?);
        let (bend, share) = self.bend(from, to);
        let (dx, dy) = (end.0 - start.0, end.1 - start.1);
        let length = dx.hypot(dy).max(1.0);
        // To the right of the way, so that there and back do not meet.
        let aside = (-dy / length * -bend, dx / length * -bend);
        let shifted = |at: (f64, f64)| (at.0 + aside.0 / 2.0, at.1 + aside.1 / 2.0);
        let begin = edge(shifted(start), shifted(end), start);
        let stop = edge(shifted(end), shifted(start), end);
        let middle = (
            (begin.0 + stop.0) / 2.0 + aside.0,
            (begin.1 + stop.1) / 2.0 + aside.1,
        );
        let path = format!(
            "M{:.1},{:.1} Q{:.1},{:.1} {:.1},{:.1}",
            begin.0, begin.1, middle.0, middle.1, stop.0, stop.1
        );
        let curve = |a: f64, b: f64, c: f64| {
            let rest = 1.0 - share;
            rest * rest * a + 2.0 * rest * share * b + share * share * c
        };
        let at = (
            curve(begin.0, middle.0, stop.0),
            curve(begin.1, middle.1, stop.1),
        );
        Ok(Arrow { path, at })
    }
}

/// Where the way from inside a box to another point leaves the box.
fn edge(from: (f64, f64), to: (f64, f64), center: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (half, tall) = (WIDTH / 2.0 + 3.0, HEIGHT / 2.0 + 3.0);
    let reach = |offset: f64, way: f64, half: f64| match way.abs() < 0.001 {
        true => f64::INFINITY,
        false => (half - offset * way.signum()) / way.abs(),
    };
    let across = reach(from.0 - center.0, dx, half);
    let along = reach(from.1 - center.1, dy, tall);
    let share = across.min(along);
    (from.0 + dx * share, from.1 + dy * share)
}

fn boxed(out: &mut String, (x, y): (f64, f64), state: &str, is_final: bool) {
    // A long name gets the room that it needs.
    let width = WIDTH.max(state.len() as f64 * 9.6 + 22.0);
    let (left, top) = (x - width / 2.0, y - HEIGHT / 2.0);
    let class = if is_final { "end" } else { "box" };
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"9\"/>"
    );
    if is_final {
        let _ = writeln!(
            out,
            "<rect class=\"rim\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\" rx=\"6\"/>",
            left + 3.5,
            top + 3.5,
            width - 7.0,
            HEIGHT - 7.0
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"state\" x=\"{x:.1}\" y=\"{:.1}\">{state}</text>",
        y + 4.5
    );
}

/// The commands of a move, one below the other, on a ground that hides the arrow.
fn label(out: &mut String, (x, y): (f64, f64), by: &[&str]) {
    let longest = by.iter().map(|name| name.len()).max().unwrap_or(0) as f64;
    let (width, height) = (longest * 7.0 + 8.0, by.len() as f64 * LINE + 2.0);
    let _ = writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#ffffff\"/>",
        x - width / 2.0,
        y - height / 2.0
    );
    for (number, name) in by.iter().enumerate() {
        let line = y - height / 2.0 + LINE * (number as f64 + 0.8);
        let _ = writeln!(
            out,
            "<text class=\"by\" x=\"{x:.1}\" y=\"{line:.1}\">{name}</text>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::all;

    #[test]
    fn every_machine_is_drawn_with_all_its_states() {
        for machine in all() {
            let picture = svg(&machine).unwrap();
            for state in machine.states() {
                assert!(picture.contains(&format!(">{state}</text>")), "{state}");
            }
            let arrows = picture.matches("<path class=\"arrow").count();
            assert_eq!(arrows, machine.moves.len(), "{}", machine.name);
        }
    }

    #[test]
    fn a_state_without_a_place_is_an_error() {
        let odd = |name| Machine {
            name,
            moves: vec![(None, "NOWHERE".to_owned(), vec![])],
        };
        assert!(svg(&odd("hold")).unwrap_err().contains("NOWHERE"));
        assert!(svg(&odd("nothing")).unwrap_err().contains("no layout"));
    }
}
