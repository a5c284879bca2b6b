//! The proof itself: from the caller up to the top, and what is recorded of it.
//! Invariant: a proof exists only where every process on the way was read, alive, and still the same at the end.
//! Called by the host before a decision that needs a person.

use std::path::Path;

use aiws::error::Error;
use aiws::json::Value;
use aiws::object;

use crate::render::escape;

use super::pin::{Caller, Pinned};
use super::process::{Marked, Stat, terminal_name};
use super::refusal::{Reason, refused, unread};
use super::{MAX_DEPTH, ProcessId, Way, Work};

/// Most parents that a record names; it counts the rest.
const RECORDED: usize = 32;

/// How often the work is listed where its shims end meanwhile.
pub const LOOKS: usize = 8;

/// Most characters of a name or a path in a record.
const NAME_COLUMNS: usize = 256;

/// A pinned process on the way up, with what it was when it was reached.
struct Step {
    pin: Pinned,
    seen: Stat,
}

/// What was proven of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    value: Value,
}

impl Proof {
    /// The canonical evidence, format `praxis-human` version 0.
    #[must_use]
    pub fn to_value(&self) -> Value {
        self.value.clone()
    }
}

/// Whether a caller does not descend from the work, with the evidence.
///
/// # Errors
///
/// `HUMAN_REQUIRED`, with the detail `reason`: the caller is or descends from a shim or the engine, bears the mark of
/// an attempt, is traced, runs under another login or in another process namespace, is gone or changed on the way, or
/// cannot be read; or an attempt is lost and this is not a decision typed at a terminal.
pub fn prove(caller: &Caller, way: Way, work: &Work, now_ms: u64) -> Result<Proof, Error> {
    let proven = attempt(caller, way, work, now_ms);
    proven.map_err(|error| {
        error
            .with("pid", Value::from(caller.pin.id.pid))
            .with("way", way.name())
            .with("store", escape::line(&work.store.display().to_string()))
    })
}

/// Whether a refusal speaks of the list of the work alone: a shim of it ended while it was looked at. The list is made
/// anew then, and what that shim may have left behind is held against the caller as it would be a moment later.
#[must_use]
pub fn is_outdated(error: &Error) -> bool {
    error.details.get("reason").and_then(Value::as_str) == Some(Reason::ShimUnseen.name())
}

fn attempt(caller: &Caller, way: Way, work: &Work, now_ms: u64) -> Result<Proof, Error> {
    check_login(caller)?;
    let parents = parents(caller)?;
    check_descent(caller, &parents, work)?;
    check_marks(caller, &parents)?;
    let stat = check_unchanged(caller, &parents)?;
    check_alive(work)?;
    check_lost(&stat, way, work)?;
    let value = record(caller, &stat, &parents, way, work, now_ms)?;
    Ok(Proof { value })
}

/// The login is that of this process, real and effective, and nothing traces the caller.
fn check_login(caller: &Caller) -> Result<(), Error> {
    let what = format!("process {}", caller.pin.id.pid);
    let status = caller.pin.folder.status();
    let status = status.map_err(|error| unread(&what, &error))?;
    let ours = rustix::process::geteuid().as_raw();
    if [caller.uid, status.real_uid, status.effective_uid] != [ours; 3] {
        let found = format!(
            "{what} under login {} (real {}, at connecting {}) where the store is of login {ours}",
            status.effective_uid, status.real_uid, caller.uid
        );
        return Err(refused(Reason::OtherUser, found));
    }
    if status.tracer != 0 {
        let found = format!("{what}, which process {} traces", status.tracer);
        return Err(refused(Reason::Traced, found));
    }
    Ok(())
}

/// The pinned parents of the caller, nearest first. Each was the parent of the one below after it had been pinned.
fn parents(caller: &Caller) -> Result<Vec<Step>, Error> {
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let child = steps.last().map_or(&caller.pin, |step| &step.pin);
        let number = child.now()?.parent;
        // Above the first process of the namespace, and above one that was put into it from outside, is nothing that
        // the work could be: shims and engine have numbers in here.
        if number == 0 {
            return Ok(steps);
        }
        if steps.len() == MAX_DEPTH {
            let found = format!("a process with more than {MAX_DEPTH} parents");
            return Err(refused(Reason::TooDeep, found));
        }
        let pin = Pinned::open(number)?;
        if child.now()?.parent != number {
            return Err(changed(child.id));
        }
        let seen = pin.now()?;
        steps.push(Step { pin, seen });
    }
}

/// Neither the caller nor any parent is a shim or the engine; the engine that asks by itself is no other's child.
fn check_descent(caller: &Caller, parents: &[Step], work: &Work) -> Result<(), Error> {
    for pin in line(caller, parents) {
        let shim = match work.shims.contains(&pin.id) {
            true => Some("is a shim of this store"),
            false => is_shim(pin)?.then_some("is a shim"),
        };
        if let Some(what) = shim {
            return Err(descends(pin, Reason::Shim, what));
        }
        let itself = caller.is_this_process() && pin.id == caller.pin.id;
        if work.engine == Some(pin.id) && !itself {
            return Err(descends(pin, Reason::Engine, "is the engine"));
        }
    }
    Ok(())
}

/// Neither the caller nor any parent has the environment of an attempt, as far as the system shows it.
fn check_marks(caller: &Caller, parents: &[Step]) -> Result<(), Error> {
    for pin in line(caller, parents) {
        let marked = pin.folder.marked();
        let marked = marked.map_err(|error| unread(&format!("process {}", pin.id.pid), &error))?;
        if marked == Marked::Yes {
            let what = "has the environment of an agent or a check";
            return Err(descends(pin, Reason::Mark, what));
        }
    }
    Ok(())
}

fn is_shim(pin: &Pinned) -> Result<bool, Error> {
    let read = pin.folder.is_shim();
    read.map_err(|error| unread(&format!("process {}", pin.id.pid), &error))
}

/// The caller and its parents, upwards.
fn line<'a>(caller: &'a Caller, parents: &'a [Step]) -> impl Iterator<Item = &'a Pinned> {
    std::iter::once(&caller.pin).chain(parents.iter().map(|step| &step.pin))
}

/// The whole line once more, from the caller up: alive, the same, and each still the child of the next.
fn check_unchanged(caller: &Caller, parents: &[Step]) -> Result<Stat, Error> {
    let stat = caller.pin.now()?;
    let mut child = (caller.pin.id, stat.parent);
    for step in parents {
        let seen = step.pin.now()?;
        if child.1 != step.pin.id.pid {
            return Err(changed(child.0));
        }
        child = (step.pin.id, seen.parent);
    }
    match child.1 {
        0 => Ok(stat),
        _ => Err(changed(child.0)),
    }
}

/// What the caller was held against lived to the end of the walk. A shim that died on the way let go of what it had
/// started; one that holds its lock and is not to be seen lives where this process does not look; and where another
/// process stands in its place, whoever wrote that had something to hide.
fn check_alive(work: &Work) -> Result<(), Error> {
    for shim in &work.shims {
        let pin = Pinned::exactly(*shim);
        if !pin.is_ok_and(|pin| pin.folder.is_shim().unwrap_or(false)) {
            let found = format!(
                "that shim {}, whose lock is held, is not to be seen here: what it started may be anywhere",
                shim.pid
            );
            return Err(refused(Reason::ShimUnseen, found));
        }
    }
    match work.engine.map(Pinned::exactly) {
        Some(Err(_)) => Err(refused(Reason::Changed, "that the engine ended meanwhile")),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Where an attempt's processes may be anywhere, a decision is typed in the foreground of a terminal.
fn check_lost(stat: &Stat, way: Way, work: &Work) -> Result<(), Error> {
    if !work.lost || (way == Way::Typed && in_foreground(stat)) {
        return Ok(());
    }
    let how = match (way, stat.terminal) {
        (Way::Verb, _) => "a verb",
        (Way::InAdvance, _) => "a decision in advance",
        (Way::Typed, 0) => "an answer without a terminal",
        (Way::Typed, _) => "an answer from the background of a terminal",
    };
    let found = format!(
        "{how} while an attempt has neither a lock nor an exit record, so that its processes may be anywhere"
    );
    Err(refused(Reason::Lost, found))
}

fn in_foreground(stat: &Stat) -> bool {
    stat.terminal != 0 && stat.group > 0 && stat.foreground == stat.group
}

fn changed(id: ProcessId) -> Error {
    let found = format!("that process {} changed parents meanwhile", id.pid);
    refused(Reason::Changed, found)
}

fn descends(pin: &Pinned, reason: Reason, what: &str) -> Error {
    let name = pin.now().map(|stat| shown(&stat.name));
    let found = format!(
        "a caller that is or descends from process {} ({}), which {what}",
        pin.id.pid,
        name.as_deref().unwrap_or("gone since")
    );
    refused(reason, found).with("ancestor", Value::from(pin.id.pid))
}

fn record(
    caller: &Caller,
    stat: &Stat,
    parents: &[Step],
    way: Way,
    work: &Work,
    now_ms: u64,
) -> Result<Value, Error> {
    let what = format!("process {}", stat.pid);
    let failed = |error: std::io::Error| unread(&what, &error);
    let executable = caller.pin.folder.executable().map_err(failed)?;
    let namespace = caller.pin.folder.namespace().map_err(failed)?;
    Ok(object! {
        "format": "praxis-human",
        "version": 0,
        "uid": caller.uid,
        "user": crate::session::login()?.as_str(),
        "pid": stat.pid,
        "startTime": int(stat.start),
        "boot": praxis_engine::shim::descendants::boot(),
        "name": shown(&stat.name),
        "executable": executable_value(&executable),
        "terminal": terminal_value(stat),
        "processNamespace": namespace,
        "way": way.name(),
        "atMs": int(now_ms),
        "pinnedBy": caller.by.name(),
        "ancestors": Value::Array(parents.iter().take(RECORDED).map(parent_value).collect()),
        "ancestorCount": int(parents.len() as u64),
        "checked": checked_value(caller, parents, work),
    })
}

fn executable_value(path: &Path) -> Value {
    let name = path.file_name().unwrap_or_default();
    object! {
        "name": shown(&name.to_string_lossy()),
        "path": shown(&path.to_string_lossy()),
    }
}

fn terminal_value(stat: &Stat) -> Value {
    if stat.terminal == 0 {
        return Value::Null;
    }
    object! {
        "name": terminal_name(stat.terminal),
        "device": stat.terminal,
        "session": stat.session,
        "foreground": in_foreground(stat),
    }
}

fn parent_value(step: &Step) -> Value {
    object! {
        "pid": step.pin.id.pid,
        "startTime": int(step.seen.start),
        "name": shown(&step.seen.name),
    }
}

/// What the caller was held against, so that a reader need not guess what a proof of that day covered.
fn checked_value(caller: &Caller, parents: &[Step], work: &Work) -> Value {
    let hidden = line(caller, parents)
        .filter(|pin| !matches!(pin.folder.marked(), Ok(Marked::No)))
        .count();
    let shims = work.shims.iter().map(|shim| Value::from(shim.pid));
    object! {
        "sameLogin": true,
        "notTraced": true,
        "shims": Value::Array(shims.collect()),
        "engine": work.engine.map_or(Value::Null, |engine| Value::from(engine.pid)),
        "callerIsEngine": work.engine == Some(caller.pin.id),
        "attemptLost": work.lost,
        "hiddenEnvironments": int(hidden as u64),
    }
}

fn shown(text: &str) -> String {
    escape::clip(&escape::line(text), NAME_COLUMNS)
}

fn int(number: u64) -> Value {
    let most = aiws::limits::MAX_SAFE_INTEGER;
    Value::Int(i64::try_from(number).unwrap_or(most).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    fn reason(error: &Error) -> &str {
        error.details.get("reason").and_then(Value::as_str).unwrap()
    }

    #[test]
    fn another_login_is_refused() {
        let mut caller = Caller::this_process().unwrap();
        assert!(prove(&caller, Way::Verb, &Work::default(), 1).is_ok());
        caller.uid += 1;
        let error = prove(&caller, Way::Verb, &Work::default(), 1).unwrap_err();
        assert_eq!(reason(&error), "OTHER_USER");
    }

    /// The parent dies between the walk and the second look.
    #[test]
    fn a_line_that_breaks_meanwhile_is_refused() {
        let script = "exec 3<&0; cat <&3 >/dev/null & echo $!; wait";
        let mut middle = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut number = String::new();
        let out = middle.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut number).unwrap();
        let mut caller = Caller::this_process().unwrap();
        caller.pin = Pinned::open(number.trim().parse().unwrap()).unwrap();
        let parents = parents(&caller).unwrap();
        assert_eq!(parents[0].pin.id.pid, middle.id());
        assert!(check_unchanged(&caller, &parents).is_ok());
        let input = middle.stdin.take();
        middle.kill().unwrap();
        middle.wait().unwrap();
        let error = check_unchanged(&caller, &parents).unwrap_err();
        assert!(matches!(reason(&error), "GONE" | "CHANGED"), "{error}");
        drop(input);
    }

    /// A shim that ended is no reason to refuse for good: the list of the work is what is old.
    #[test]
    fn a_shim_that_ended_meanwhile_makes_the_list_old() {
        let caller = Caller::this_process().unwrap();
        let gone = ProcessId {
            start: caller.pin.id.start + 1,
            ..caller.pin.id
        };
        let work = Work {
            shims: vec![gone],
            ..Work::default()
        };
        let error = prove(&caller, Way::Verb, &work, 1).unwrap_err();
        assert!(is_outdated(&error), "{error}");
        let work = Work {
            engine: Some(gone),
            ..Work::default()
        };
        assert!(!is_outdated(
            &prove(&caller, Way::Verb, &work, 1).unwrap_err()
        ));
    }

    #[test]
    fn an_engine_that_ended_meanwhile_is_refused() {
        let caller = Caller::this_process().unwrap();
        let gone = ProcessId {
            start: caller.pin.id.start + 1,
            ..caller.pin.id
        };
        let work = Work {
            engine: Some(gone),
            ..Work::default()
        };
        let error = prove(&caller, Way::Verb, &work, 1).unwrap_err();
        assert_eq!(reason(&error), "CHANGED");
    }
}
