//! Every text for people at the widths of real terminals, against golden files.
//! Invariant: no line is wider than the terminal but commands and paths, which are there to be copied.
//! Run by `cargo test`; PRAXIS_BLESS=1 writes the files anew.

use aiws::decimal::Dec;
use aiws::json::Value;
use aiws::record::{HoldDecision, HoldReason, Lifecycle};
use praxis_model::run::NodeStatus;

use super::approval::{Finished, Plan, plan_text, result_text};
use super::page::{HoldLine, Page, Spend, Standing, Uncertain};
use super::rows::{Row, Wait};
use super::style::{Style, painted_width, unpainted};
use super::unknown::{self, Finding};
use super::{escape, holds, inbox, list, live, text};

/// 2026-11-30 20:00:00Z.
const START: u64 = 1_796_068_800_000;
const NOW: u64 = START + 3_725_000;
const WIDTHS: [usize; 3] = [40, 80, 120];

fn row(id: &str, title: &str, status: NodeStatus, word: &'static str) -> Row {
    let bad = matches!(word, "failed" | "uncertain" | "blocked" | "denied");
    let attempts = usize::from(!matches!(word, "" | "waits" | "skipped"));
    Row {
        id: id.to_owned(),
        title: title.to_owned(),
        status,
        word,
        bad,
        plumbing: false,
        depth: usize::from(matches!(id, "correct-1" | "check-1")),
        attempts,
        spent: Dec::from_u64(u64::from(word == "done")),
        time: (Some(START), Some(START + 1_250)),
        elapsed_ms: (attempts > 0).then_some(1_250),
        note: None,
        waits: None,
        bound_ms: None,
    }
}

fn waiting(id: &str, title: &str, what: &str) -> Row {
    Row {
        waits: Some(Wait {
            what: what.to_owned(),
            until_ms: None,
        }),
        ..row(id, title, NodeStatus::Pending, "")
    }
}

fn page(run: &str, standing: Standing, started_ms: u64, rows: Vec<Row>) -> Page {
    Page {
        run: run.to_owned(),
        task: "make the failing test pass, without changing what the test says of leap years"
            .to_owned(),
        repository: "/home/alice/src/calendar".to_owned(),
        base: "bcaaf75c9a9ed72d2c09fc5d239e62c4655a924f".to_owned(),
        standing,
        cause: None,
        started_ms,
        last_ms: started_ms + 60_000,
        spend: Spend {
            spent: Dec::from_u64(2),
            reserved: Dec::from_u64(u64::from(matches!(
                standing,
                Standing::Going | Standing::Uncertain
            ))),
            bound: Dec::from_u64(4),
            overrun: Dec::ZERO,
        },
        epoch: 1,
        head: (27, "a722f911".repeat(8)),
        rows,
        holds: Vec::new(),
        uncertain: Vec::new(),
        accepted: None,
        branch: None,
        since_ms: started_ms + 60_000,
        deadline_ms: started_ms + 30 * 86_400_000,
        failing: None,
        to_read: None,
        driven: true,
        decides_on: None,
        next: Vec::new(),
    }
}

fn going() -> Page {
    let mut running = row(
        "implement",
        "the agent implements it",
        NodeStatus::Active,
        "running",
    );
    (running.attempts, running.elapsed_ms, running.bound_ms) = (2, Some(725_000), Some(1_800_000));
    let rows = vec![
        row("plan", "the agent plans", NodeStatus::Completed, "done"),
        Row {
            note: Some("approved by alice at a terminal".to_owned()),
            attempts: 0,
            elapsed_ms: None,
            spent: Dec::ZERO,
            ..row(
                "approve",
                "a person approves the plan",
                NodeStatus::Completed,
                "done",
            )
        },
        running,
        waiting("check-0", "the check runs", "after implement"),
        waiting(
            "correct-1",
            "the agent corrects it, no. 1",
            "if check-0 fails",
        ),
        waiting("check-1", "the check runs again", "after correct-1"),
        waiting("verify", "the check is recorded", "once it passes"),
        waiting("accept", "a person accepts the result", "after verify"),
    ];
    page("r-6g26my9t", Standing::Going, START, rows)
}

fn approving() -> Page {
    let mut waits = row(
        "approve",
        "a person approves the plan",
        NodeStatus::Pending,
        "waits",
    );
    waits.waits = Some(Wait {
        what: "for a person".to_owned(),
        until_ms: Some(START + 30 * 86_400_000),
    });
    let rows = vec![
        row("plan", "the agent plans", NodeStatus::Completed, "done"),
        waits,
        waiting("implement", "the agent implements it", "after approve"),
    ];
    let mut page = page(
        "r-3mr9s4nh",
        Standing::NeedsApproval,
        START - 7_200_000,
        rows,
    );
    page.to_read = Some((
        "plan",
        "/home/alice/.local/state/praxis/work/r-3mr9s4nh/attempts/plan-1/output/plan.md".to_owned(),
    ));
    page.next = vec![
        "praxis approve r-3mr9s4nh".to_owned(),
        "praxis deny r-3mr9s4nh --reason TEXT".to_owned(),
    ];
    page
}

fn held() -> Page {
    let rows = vec![
        row(
            "implement",
            "the agent implements it",
            NodeStatus::Completed,
            "done",
        ),
        Row {
            note: Some("the check ended with exit 101".to_owned()),
            waits: Some(Wait {
                what: "for the end of the hold".to_owned(),
                until_ms: None,
            }),
            ..row("check-0", "the check runs", NodeStatus::Blocked, "blocked")
        },
    ];
    let mut page = page("r-fb79gyd3", Standing::Held, START - 90_000_000, rows);
    page.holds.push(HoldLine {
        id: "491f1158614b0d2f".repeat(4),
        reason: HoldReason::CostLimit,
        sentence: "the budget is used up; another run may have more --budget".to_owned(),
        clears: "nothing in this run: cancel it and start another one",
        nodes: Vec::new(),
        allowed: vec![HoldDecision::Recheck, HoldDecision::Cancel],
        opened_ms: START - 80_000_000,
    });
    page.failing = Some((
        "check-0".to_owned(),
        vec![
            "The check `cargo test` ended with exit 101.".to_owned(),
            format!("thread 'leap' panicked: {}", "assertion failed ".repeat(9)),
        ],
    ));
    page
}

fn uncertain() -> Page {
    let rows = vec![Row {
        waits: Some(Wait {
            what: "for a person who finds out what it did".to_owned(),
            until_ms: None,
        }),
        ..row(
            "implement",
            "the agent implements it",
            NodeStatus::Active,
            "uncertain",
        )
    }];
    let mut page = page("r-u9hq2c4w", Standing::Uncertain, START - 600_000, rows);
    page.task = "\u{4e2d}\u{6587}\u{306e}\u{8aac}\u{660e}\u{3092}\u{76f4}\u{3059}: "
        .repeat(6)
        .trim_end()
        .to_owned();
    page.uncertain.push(Uncertain {
        attempt: "a534b87f7b".repeat(6),
        short: "a534b87f7b".to_owned(),
        node: "implement".to_owned(),
        reserved: Dec::from_u64(1),
        why: None,
        since_ms: START - 500_000,
    });
    page.epoch = 2;
    page
}

fn all() -> Vec<Page> {
    let done = || {
        vec![row(
            "plan",
            "the agent plans",
            NodeStatus::Completed,
            "done",
        )]
    };
    let mut accepted = page(
        "r-ffcm81y0",
        Standing::Accepted,
        START - 400_000_000,
        done(),
    );
    accepted.branch = Some("praxis/r-ffcm81y0".to_owned());
    accepted.accepted = Some(["1adcd7eb".repeat(8), "63d8447c".repeat(8)]);
    let unpublished = page("r-1v0cyq7a", Standing::Accepted, START - 300_000, done());
    let mut rejected = page(
        "r-x7k2mm5e",
        Standing::Ended(Lifecycle::Rejected),
        START - 4_000_000,
        done(),
    );
    rejected.rows.extend(going().rows.split_off(3));
    rejected.cause = Some("denied by alice: the plan (APPROVAL_DENIED)".to_owned());
    let accepting = page(
        "r-0d3hh1zz",
        Standing::NeedsAcceptance,
        START - 100_000,
        done(),
    );
    vec![
        going(),
        approving(),
        held(),
        uncertain(),
        accepted,
        unpublished,
        rejected,
        accepting,
    ]
}

/// Compares with the golden file of this name.
fn golden(name: &str, found: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("src/render/golden/{name}.txt"));
    if std::env::var_os("PRAXIS_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found,
        expected,
        "{}: PRAXIS_BLESS=1 writes it anew",
        path.display()
    );
}

/// Nothing is wider than the terminal, but what is there to be copied.
fn fits(shown: &str, width: usize) {
    for line in shown.lines() {
        let copied = [
            "praxis ",
            "/home/",
            "git -C",
            "fingerprint: ",
            "sha256 ",
            "task: ",
            "Digest: ",
            "sh /opt",
            "baseCommit: ",
        ];
        let is_copied = copied.iter().any(|begin| unpainted(line).contains(begin));
        assert!(
            is_copied || painted_width(line) <= width,
            "wider than {width}: {line}"
        );
        assert!(!line.ends_with(' '), "a blank at the end: {line:?}");
    }
}

fn at_all_widths(name: &str, shown: impl Fn(Style) -> String) {
    let mut found = String::new();
    for width in WIDTHS {
        let plain = shown(Style::plain(width));
        fits(&plain, width);
        let painted = shown(Style {
            colour: true,
            width,
        });
        assert_eq!(
            painted.lines().map(unpainted).collect::<Vec<_>>(),
            plain.lines().collect::<Vec<_>>()
        );
        found.push_str(&format!("---- {width} columns\n{plain}"));
    }
    golden(name, &found);
    for width in 40..200 {
        fits(
            &shown(Style {
                colour: true,
                width,
            }),
            width,
        );
    }
}

#[test]
fn the_table_of_runs() {
    at_all_widths("list", |style| list::text(&all(), style, NOW));
    golden("list-empty", &list::text(&[], Style::plain(80), NOW));
}

#[test]
fn the_inbox() {
    at_all_widths("inbox", |style| {
        inbox::text(&inbox::items(&all()), style, NOW)
    });
    golden("inbox-empty", &inbox::text(&[], Style::plain(80), NOW));
}

/// Everything that waits for a person is in the inbox, oldest first, and nothing else.
#[test]
fn the_inbox_has_what_waits_for_a_person() {
    let items = inbox::items(&all());
    let kinds: Vec<String> = items
        .iter()
        .map(|item| format!("{} {}", item.kind.name(), item.run))
        .collect();
    assert_eq!(
        kinds,
        [
            "LIFT r-fb79gyd3",
            "APPROVE r-3mr9s4nh",
            "SETTLE r-u9hq2c4w",
            "PUBLISH r-1v0cyq7a",
            "ACCEPT r-0d3hh1zz"
        ]
    );
    assert!(items.iter().all(|item| !item.commands.is_empty()));
    let value = inbox::value(&items);
    assert_eq!(
        value.pointer("/items/0/asks").and_then(Value::as_str),
        Some("LIFT")
    );
    assert_eq!(value.get("kind").and_then(Value::as_str), Some("inbox"));
}

#[test]
fn open_holds() {
    at_all_widths("holds", |style| holds::text(&all(), style));
    golden("holds-empty", &holds::text(&[going()], Style::plain(80)));
    let value = holds::value(&all());
    assert_eq!(
        value.pointer("/holds/0/commands/0").and_then(Value::as_str),
        Some("praxis code --from r-fb79gyd3 --budget N")
    );
}

#[test]
fn pages() {
    for page in all() {
        let name = format!("page-{}", list::word(page.standing).replace(' ', "-"));
        // Two of them wait, and two are accepted; the run tells them apart.
        at_all_widths(&format!("{name}-{}", page.run), |style| {
            text::page(&page, style)
        });
    }
}

#[test]
fn live_frames() {
    for page in [going(), approving(), held(), uncertain()] {
        at_all_widths(&format!("live-{}", page.run), |style| {
            live::frame(&page, style, NOW)
        });
    }
}

#[test]
fn changes_are_said_once() {
    let mut changes = live::Changes::default();
    let first = changes.of(&going(), Style::plain(80));
    golden("changes", &first);
    assert_eq!(changes.of(&going(), Style::plain(80)), "");
}

#[test]
fn the_question() {
    let action = aiws::object! {
        "action": "agent.implement",
        "payload": aiws::object! { "command": "sh /opt/agent.sh", "baseCommit": "bcaaf75c9a9e", "environment": Vec::<Value>::new() },
    };
    let plan = "# Plan\n\n1. Correct `is_leap`: centuries are leap years only where 400 divides them.\n2.\tDraw over this: \u{1b}[2J\n";
    let plan = Plan {
        run: "r-3mr9s4nh",
        repository: "/home/alice/src/calendar",
        base: "bcaaf75c9a9ed72d2c09fc5d239e62c4655a924f",
        task: "make the failing test pass",
        corrections: 2,
        budget: Dec::from_u64(4),
        plan,
        action: &action,
        fingerprint: &"a722f911".repeat(8),
    };
    at_all_widths("question-plan", |style| plan_text(&plan, style));
    let result = Finished {
        run: "r-0d3hh1zz",
        check: "cargo test",
        patch: "diff --git a/src/lib.rs b/src/lib.rs\nindex 1..2 100644\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@\n pub fn is_leap(year: u32) -> bool {\n-\tyear % 4 == 0\n+\tyear % 4 == 0 && (year % 100 != 0 || year % 400 == 0) // as the calendar of 1582 has it\n }\n",
        digest: &"63d8447c".repeat(8),
    };
    at_all_widths("question-result", |style| result_text(&result, style));
}

#[test]
fn an_attempt_of_unknown_outcome() {
    let finding = Finding {
        run: "r-u9hq2c4w".to_owned(),
        node: "implement".to_owned(),
        attempt: "a534b87f7b".repeat(6),
        command: "sh /opt/agents/agent.sh".to_owned(),
        tree: "/home/alice/.local/state/praxis/work/r-u9hq2c4w/clone".to_owned(),
        process: Some((4711, true)),
        changed: Ok((0..30)
            .map(|number| format!("M  src/part-{number}.rs"))
            .collect()),
        output: vec![
            "looking at src/lib.rs".to_owned(),
            String::new(),
            "thinking ".repeat(20),
        ],
        why: None,
    };
    at_all_widths("unknown", |style| unknown::text(&finding, style));
}

#[test]
fn what_is_ours_is_ascii() {
    let mut pages = all();
    for page in &mut pages {
        page.task = "plain".to_owned();
    }
    let style = Style::plain(80);
    let shown = [
        list::text(&pages, style, NOW),
        holds::text(&pages, style),
        inbox::text(&inbox::items(&pages), style, NOW),
    ];
    for text in shown.iter().chain(
        pages
            .iter()
            .map(|page| text::page(page, style))
            .collect::<Vec<_>>()
            .iter(),
    ) {
        assert!(text.is_ascii(), "{text}");
    }
    assert_eq!(escape::width("abc"), 3);
}
