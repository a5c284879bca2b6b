//! The scene of these tests: runs that wait for a person, an agent with designs on them, and the person.
//! Invariant: an impostor says by a FIFO that it is done; what came of each of its tries stands in a file.
//! Used by the tests of this folder.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use aiws::json::Value;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{self, Called, World, called, parse, text};

/// An agent that does its work.
const HONEST: &str = r#"
case "$PRAXIS_STAGE" in
plan) echo plan > "$PRAXIS_OUTPUT_DIR/plan.md" ;;
*) echo good > a.txt ;;
esac
"#;

/// What every impostor has: the ways to decide, each with a file of what came of it.
const TRIES: &str = r#"
try() {
    name=$1; shift; code=0
    timeout 60 "$@" >"$RESULTS/$name" 2>&1 </dev/null || code=$?
    echo "exit $code" >>"$RESULTS/$name"
}
tries() {
    p="$PRAXIS --store $STORE --json"
    try approve $p approve "$PLAN_RUN" --digest "$PLAN_DIGEST" --as tester
    try accept $p approve "$RESULT_RUN" --digest "$RESULT_DIGEST" --as tester
    try continue $p continue "$PAUSED_RUN" --reason mine
    try reconcile $p reconcile "$OWN" --applied --evidence "$VARS" --as tester
    try advance $p resume "$PLAN_RUN" --approve-as mallory --no-wait
    try code $p code --repo "$REPO" --task evil --agent "sh $EVIL" --check true --approve-as mallory --no-wait
    try resume $p resume "$RESULT_RUN" --no-wait
    try told $p outbox --consumer mail
    try clean $p clean
    try socket python3 "$SPEAK" "$STORE/engine.sock" "$PLAN_RUN" "$PLAN_DIGEST"
}
shim() {
    p=$$
    until tr '\0' ' ' </proc/$p/cmdline | grep -q ' __shim '; do p=$(cut -d' ' -f4 /proc/$p/stat); done
    echo $p
}
engine() {
    cut -d' ' -f4 /proc/$(shim)/stat
}
dead() {
    # The first thread of a process that was killed is a zombie before the last one closed its files.
    while read -r stat 2>/dev/null </proc/$1/stat; do
        case "$stat" in *') Z '*) test "$(ls /proc/$1/task 2>/dev/null | wc -l)" -gt 1 || return 0 ;; esac
    done
}
"#;

/// A person's own protocol, spoken by whoever likes.
const SPEAK: &str = r#"
import json, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
lines = peer.makefile("rw")
lines.readline()
decide = {"verb": "decide", "run": sys.argv[2], "digest": sys.argv[3], "yes": True,
          "way": "AT_TERMINAL", "name": "tester"}
lines.write(json.dumps({"protocol": "praxis-socket/1", "id": 1, "request": decide}) + "\n")
lines.flush()
print(lines.readline())
"#;

/// A daemon's beginning: no parent, no session, no environment of the attempt.
const DAEMON: &str =
    r#"env -i PATH="$PATH" setsid sh "$DAEMON_SCRIPT" </dev/null >/dev/null 2>&1 &"#;

/// An agent's end that leaves a daemon, and stays until that has begun.
pub const LEAVE: &str = "shim >\"$RESULTS/shim\"\n( DAEMON )\nread -r go <\"$GO\"\n";

/// A daemon's beginning: the shim's number.
pub const STAY: &str = "s=$(cat \"$RESULTS/shim\")\n";

/// A store with a plan, a result and a paused run that wait, and an agent that has designs on them.
pub struct Scene {
    pub world: World,
    engine: Option<Child>,
    pub plan: (String, String),
    result: (String, String),
    paused: String,
}

impl Scene {
    pub fn new() -> Self {
        let world = World::new(HONEST);
        let mut scene = Self {
            world,
            engine: None,
            plan: Default::default(),
            result: Default::default(),
            paused: String::new(),
        };
        scene.paused = scene.waiting();
        let paused = scene.verb(&["pause", &scene.paused]);
        assert_eq!(paused.exit, Some(0), "{}", paused.err);
        let run = scene.waiting();
        let digest = scene.digest(&run);
        let approved = scene.verb(&["approve", &run, "--digest", &digest]);
        assert_eq!(approved.exit, Some(0), "{}", approved.err);
        let resumed = scene.verb(&["resume", &run, "--no-wait"]);
        assert_eq!(resumed.exit, Some(3), "{}", resumed.err);
        scene.result = (run.clone(), scene.digest(&run));
        let run = scene.waiting();
        scene.plan = (run.clone(), scene.digest(&run));
        scene
    }

    /// A new run that has a plan.
    fn waiting(&self) -> String {
        let page = called(&mut self.world.code(&["--no-wait", "--json"]));
        assert_eq!(page.exit, Some(3), "{}{}", page.out, page.err);
        text(&parse(&page.out), "/runs/0/run").to_owned()
    }

    /// What waits in a run, by its digest: a decision on something else is told what it is.
    fn digest(&self, run: &str) -> String {
        let stale = self.verb(&["approve", run, "--digest", "0", "--json"]);
        assert!(stale.out.contains("APPROVAL_STALE"), "{}", stale.out);
        let is_digest = |word: &&str| word.len() == 64;
        let mut words = stale.out.split(|char: char| !char.is_ascii_hexdigit());
        words.find(is_digest).unwrap().to_owned()
    }

    pub fn verb(&self, args: &[&str]) -> Called {
        self.world.verb(args)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.dir.path().join(name)
    }

    /// Has the store open in a process of its own, as a person's other terminal would.
    pub fn serve(&mut self) {
        let mut command = self.world.praxis();
        command.arg("serve").stderr(Stdio::piped());
        let mut engine = command.spawn().unwrap();
        let said = engine.stderr.take().unwrap();
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert!(line.contains("serving"), "{line}");
        self.engine = Some(engine);
    }

    /// Writes the impostor: `agent` is what its agent does in the plan stage, `daemon` what it leaves behind.
    pub fn impostor(&self, agent: &str, daemon: &str) {
        let results = self.path("results");
        fs::create_dir_all(&results).unwrap();
        let engine = self.engine.as_ref().map_or(0, Child::id);
        let vars = format!(
            "PRAXIS={} STORE={} REPO={} RESULTS={} VARS={} SPEAK={} EVIL={} DAEMON_SCRIPT={} ENGINE={engine}\n\
             PLAN_RUN={} PLAN_DIGEST={} RESULT_RUN={} RESULT_DIGEST={} PAUSED_RUN={} FIFO={} GO={}\n",
            env!("CARGO_BIN_EXE_praxis"),
            self.world.store.display(),
            self.world.repo.display(),
            results.display(),
            self.path("vars.sh").display(),
            self.path("speak.py").display(),
            self.path("evil.sh").display(),
            self.path("daemon.sh").display(),
            self.plan.0,
            self.plan.1,
            self.result.0,
            self.result.1,
            self.paused,
            self.path("done").display(),
            self.path("go").display(),
        );
        self.world.file("vars.sh", &vars);
        self.world.file("speak.py", SPEAK);
        self.world.file("evil.sh", HONEST);
        let begin = format!(
            ". {}\nOWN=$(cat {} 2>/dev/null)\n",
            self.path("vars.sh").display(),
            self.path("own").display()
        );
        self.world
            .file("daemon.sh", &format!("{begin}{TRIES}{daemon}"));
        let keep = format!("echo $PRAXIS_ATTEMPT_ID > {}\n", self.path("own").display());
        let agent = agent.replace("DAEMON )", &format!("{DAEMON} )"));
        let plan = "echo plan > \"$PRAXIS_OUTPUT_DIR/plan.md\"\n";
        fs::write(
            &self.world.agent,
            format!("{keep}{begin}{TRIES}{plan}{agent}"),
        )
        .unwrap();
        for fifo in ["done", "go"] {
            let made = Command::new("mkfifo")
                .arg(self.path(fifo))
                .status()
                .unwrap();
            assert!(made.success());
        }
    }

    /// Runs the impostor's agent to whatever end.
    pub fn run(&self) -> Called {
        called(&mut self.world.code(&["--no-wait", "--json"]))
    }

    /// Starts the impostor's run in the background.
    pub fn begin(&self) -> Running {
        let mut command = self.world.code(&["--no-wait", "--json"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }

    /// Waits for what the impostor left behind.
    pub fn daemon_is_done(&self) {
        let mut wait = Command::new("timeout");
        let said = called(wait.arg("60").arg("cat").arg(self.path("done")));
        assert_eq!(said.out, "done\n", "the daemon did not come to its end");
    }

    /// What came of a try: the text, and the reason of the refusal.
    pub fn outcome(&self, name: &str) -> (String, Option<String>) {
        let path = self.path("results").join(name);
        let said = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let reason = said
            .split("\"reason\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .map(str::to_owned);
        (said, reason)
    }

    /// Each of these tries was refused for this reason.
    pub fn refused(&self, names: &[&str], expected: &str) {
        for name in names {
            let (said, reason) = self.outcome(name);
            assert!(said.contains("HUMAN_REQUIRED"), "{name}: {said}");
            assert_eq!(reason.as_deref(), Some(expected), "{name}: {said}");
        }
    }

    pub fn standing(&self, run: &str) -> String {
        text(&self.world.json(&["show", run]), "/standing").to_owned()
    }

    /// Nothing was decided, and nothing was started by anybody but the person.
    pub fn untouched(&self) {
        assert_eq!(self.standing(&self.plan.0), "NEEDS_APPROVAL");
        assert_eq!(self.standing(&self.result.0), "NEEDS_ACCEPTANCE");
        let held = self.world.json(&["holds"]).to_string();
        assert!(held.contains(&self.paused), "{held}");
        let log = self.verb(&["log", "--json"]).out;
        assert!(
            !log.contains("mallory") && !log.contains("\"tester\""),
            "{log}"
        );
    }

    /// The person's own yes, without a terminal.
    pub fn person_approves(&self) -> Called {
        self.verb(&["approve", &self.plan.0, "--digest", &self.plan.1, "--json"])
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(engine) = &mut self.engine {
            let _ = engine.kill();
            let _ = engine.wait();
        }
    }
}

/// A `praxis code` in the background.
pub struct Running(Child);

impl Running {
    /// Its exit; none after a signal.
    pub fn wait(mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

/// A command in front of a terminal of its own, with what is typed there; what the terminal showed, and the exit.
pub fn at_terminal(command: &Command, typed: &str) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let side = || -> Stdio {
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        rustix::fs::open(name.as_c_str(), flags, Mode::empty())
            .unwrap()
            .into()
    };
    let mut session = Command::new("setsid");
    session
        .arg("--ctty")
        .arg("--wait")
        .arg(command.get_program());
    session.args(command.get_args()).env("TERM", "xterm");
    session.stdin(side()).stdout(side()).stderr(side());
    rustix::io::write(&master, typed.as_bytes()).unwrap();
    let mut child = session.spawn().unwrap();
    drop(session);
    let (mut screen, mut shown, mut bytes) = (File::from(master), String::new(), [0; 4096]);
    while let Ok(count @ 1..) = screen.read(&mut bytes) {
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    (child.wait().unwrap().code(), shown)
}

/// The stored record of a decision in this name.
pub fn decision(scene: &Scene, name: &str) -> Value {
    let files = support::files(&scene.world.store.join("artifacts"), &|_| false);
    let record = files.iter().find_map(|(_, bytes)| {
        let value = aiws::strict::parse(bytes).ok()?;
        let format = value.get("format").and_then(Value::as_str);
        let of = value.get("name").and_then(Value::as_str);
        (format == Some("praxis-decision") && of == Some(name)).then_some(value)
    });
    record.unwrap_or_else(|| panic!("no decision of {name} is stored"))
}
