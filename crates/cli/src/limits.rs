//! The bounds of the command line and of the coding workflow, each with its reason.
//! Invariant: whatever a repository, an agent or a person sends is bounded by one of these before it is kept.
//! Read by every module of this crate.

/// Most bytes of one git call's output: a patch has to fit an artifact, and listings of paths are far smaller.
pub const GIT_OUTPUT_BYTES: u64 = 256 << 20;
/// Most bytes of git's own message that are kept: it is shown in one line.
pub const GIT_MESSAGE_BYTES: u64 = 16 << 10;
/// Most bytes of a patch. A change that a person is to accept is smaller by orders of magnitude.
pub const PATCH_BYTES: u64 = 64 << 20;
/// Most bytes of a plan: a person reads all of it before approving.
pub const PLAN_BYTES: u64 = 256 << 10;
/// Most bytes of a task text: it stands in the commit message and on the command line.
pub const TASK_BYTES: usize = 64 << 10;
/// Most bytes of a command: it is part of what is approved.
pub const COMMAND_BYTES: usize = 16 << 10;
/// Most bytes that a transcript keeps of an agent's or a check's output, beginning and end each half.
pub const TRANSCRIPT_BYTES: u64 = 1 << 20;
/// Most bytes of a usage file: it holds one number.
pub const USAGE_BYTES: u64 = 128;
/// Most digits of a usage: no agent run costs more, and a run's sum stays far below what an account can hold.
pub const USAGE_DIGITS: usize = 18;
/// Longest time for one git call, in seconds: listing and adding the largest trees takes minutes, and a call that
/// waits for a pipe in an agent's tree would never end.
pub const GIT_SECONDS: u64 = 900;
/// Most bytes of an evidence file that a person hands in.
pub const EVIDENCE_BYTES: u64 = 1 << 20;
/// Most corrections: each one is three nodes of the graph, which is fixed before the run begins.
pub const MAX_CORRECTIONS: u32 = 20;
/// Corrections unless `--max-corrections` says otherwise.
pub const DEFAULT_CORRECTIONS: u32 = 2;
/// Most names that `--env` lets through.
pub const ENV_NAMES: usize = 64;
/// Longest time for one agent run or check, in seconds: one day.
pub const TIMEOUT_SECONDS: u64 = 86_400;
/// Time for one agent run or check unless `--timeout` says otherwise, in seconds.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 1_800;
/// How often one operation is tried in all: a check that was lost with the engine runs again, and a tree that could
/// not be built is built again. More kills during one piece of work than this are not an accident.
pub const MAX_ATTEMPTS: u64 = 16;
/// How often the agent is started for one operation: two tries more when it says that it did nothing (exit 75), or a
/// person says so.
pub const AGENT_STARTS: usize = 3;
/// How long after its start a run may begin new work, in milliseconds: thirty days, so that a plan can wait
/// for a person over a holiday.
pub const DEADLINE_MS: u64 = 30 * 86_400_000;
/// How long an approval stays current, in milliseconds: seven days, the work begins at once unless killed.
pub const APPROVAL_MS: u64 = 7 * 86_400_000;
/// How long artifacts are kept at least, in milliseconds: ten years, an audit asks later than the work ends.
pub const RETENTION_MS: u64 = 3_650 * 86_400_000;
/// Longest lease of a claim, in milliseconds: the engine claims and acknowledges in one go.
pub const LEASE_MS: u64 = 60_000;
/// How many lines of a failing step's output are shown.
pub const TAIL_LINES: usize = 12;
/// How many changed files `unknown` lists before it counts the rest.
pub const LISTED_FILES: usize = 20;
/// With less room than this on the store's disk, a git call that failed is taken to have failed for it, in bytes:
/// git writes files of a few blocks before it says anything.
pub const FULL_BYTES: u64 = 64 << 10;
/// Most bytes of a request on the socket: an evidence file in hex, and something around it.
pub const SOCKET_REQUEST_BYTES: u64 = 4 << 20;
/// Most bytes of an answer on the socket: a patch, as JSON and as text.
pub const SOCKET_ANSWER_BYTES: u64 = 1 << 30;
/// Most connections to one engine at a time: terminals and workers of one person.
pub const CONNECTIONS: usize = 64;
/// How long a verb waits for a store that another process has open and does not serve yet, in milliseconds: opening
/// replays what was not indexed, and a verb that only looks is done sooner.
pub const STORE_WAIT_MS: u64 = 3_000;
/// How often it tries meanwhile, in milliseconds.
pub const STORE_LOOK_MS: u64 = 50;
/// Most bytes of the record of a person's decision: a reason, and what was proven.
pub const DECISION_BYTES: u64 = 1 << 20;
/// Most notices in one answer of the outbox: a consumer takes them one by one anyway.
pub const OUTBOX_NOTICES: usize = 64;
/// After how many events with nothing to tell the cursor of a consumer moves on by itself: reading them again takes
/// some milliseconds.
pub const OUTBOX_QUIET_EVENTS: u64 = 256;
/// Longest time for one call of a command that is told something, in seconds: it hands a line on.
pub const TELL_SECONDS: u64 = 30;
/// Longest wait before a command that failed is called again, in milliseconds; the first one is 64 times shorter.
pub const TELL_AGAIN_MS: u64 = 64_000;
/// How long an engine that ends waits for what is still to be told, in milliseconds; the next one tells the rest.
pub const TELL_LAST_MS: u64 = 10_000;
/// How often a verb that follows the outbox looks for an engine, or into the store while there is none, in
/// milliseconds.
pub const OUTBOX_LOOK_MS: u64 = 1_000;
/// Most bytes of a key's file: a name of the longest store's log, and 44 characters.
pub const KEY_BYTES: u64 = 8 << 10;
/// How many bytes of a transcript are read at a time while it is followed.
pub const ATTACH_BYTES: u64 = 64 << 10;
/// Most bytes of a repository's `praxis.toml`: it is a handful of lines.
pub const PROJECT_BYTES: u64 = 64 << 10;
