//! Whatever can be thrown at the socket: lines that are none, clients that do not read or leave, engines that die.
//! Invariant: who asks properly is answered, whatever others do; what an engine leaves behind stands in nobody's way.
//! Through a real `praxis serve` and the other verbs.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use aiws::json::Value;
use aiws::object;
use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Client, Served, praxis};
use crate::support::{AGENT, World, called, text};

fn list() -> Value {
    object! { "verb": "list" }
}

/// A world whose store `praxis serve` has open, with a run that waits for its plan's approval, and who follows it.
struct Waiting {
    served: Served,
    run: String,
    code: Child,
    said: BufReader<std::process::ChildStderr>,
    _repo: std::path::PathBuf,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.code.kill();
        let _ = self.code.wait();
    }
}

fn waiting() -> Waiting {
    let world = World::new(AGENT);
    let mut code = world.code(&[]);
    let World {
        dir, store, repo, ..
    } = world;
    let served = Served::on(dir, store);
    let mut code = code
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(code.stderr.take().unwrap());
    until(&mut said, "waits for a person");
    let listed = served.client().ask(list()).unwrap();
    let run = text(&listed, "/runs/0/run").to_owned();
    Waiting {
        served,
        run,
        code,
        said,
        _repo: repo,
    }
}

/// Reads until a line says this.
fn until(said: &mut impl BufRead, what: &str) -> String {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(
            said.read_line(&mut line).unwrap(),
            0,
            "no {what:?} in {all}"
        );
        all.push_str(&line);
        if line.contains(what) {
            return all;
        }
    }
}

/// A line that is no request is refused, and the next one on the same connection is answered.
#[test]
fn what_is_no_request_is_refused_and_nothing_else_happens() {
    let served = Served::new();
    let mut client = served.client();
    assert_eq!(text(&client.hello, "/process"), served.pid().to_string());
    let asked = |more: &str| format!("{{\"protocol\":\"praxis-socket/1\",\"id\":1,{more}}}");
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let odd = [
        "garbage".to_owned(),
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        deep,
        "{\"protocol\":\"praxis-socket/1\"".to_owned(),
        "{\"protocol\":\"praxis-socket/2\",\"id\":1,\"request\":{\"verb\":\"list\"}}".to_owned(),
        "{\"protocol\":\"praxis-socket/1\",\"request\":{\"verb\":\"list\"}}".to_owned(),
        "{\"protocol\":\"praxis-socket/1\",\"id\":-1,\"request\":{\"verb\":\"list\"}}".to_owned(),
        asked("\"id\":2,\"request\":{\"verb\":\"list\"}"),
        asked("\"request\":{\"verb\":\"list\",\"verb\":\"holds\"}"),
        asked("\"request\":{\"verb\":\"frobnicate\"}"),
        asked("\"request\":{\"verb\":\"list\",\"all\":true}"),
        asked("\"request\":\"list\""),
        asked("\"as\":\"root\",\"request\":{\"verb\":\"list\"}"),
        asked("\"view\":{\"width\":80},\"request\":{\"verb\":\"list\"}"),
        asked("\"request\":{\"verb\":\"show\",\"run\":7}"),
    ];
    for line in &odd {
        assert_eq!(client.refused(line), "USAGE", "{line:.200}");
    }
    assert!(client.send(b"\xff\xfe\n"));
    assert_eq!(text(&client.line().unwrap(), "/error/code"), "USAGE");
    client.ask(list()).expect("the connection still serves");
}

#[test]
fn half_a_line_is_nothing_and_an_overlong_one_ends_the_connection() {
    let served = Served::new();
    let mut half = served.client();
    half.send(b"{\"protocol\":\"praxis-socket/1\",\"id\":1,\"request\":{\"verb\":\"li");
    drop(half);
    let mut long = served.client();
    let chunk = vec![b'x'; 1 << 20];
    // The engine may close before it has all of it.
    while long.send(&chunk) {}
    let mut other = served.client();
    other.ask(list()).unwrap();
    let mut exact = served.client();
    let reads = exact.send(&vec![b'x'; 4 << 20]);
    assert!(reads, "the bound itself is read");
    assert_eq!(text(&exact.line().unwrap(), "/error/code"), "USAGE");
    assert_eq!(
        exact.line(),
        None,
        "what follows cannot be told from the rest"
    );
}

/// Sixty-four connections are served; who comes then is told so at once, verbs included, and has room when one leaves.
#[test]
fn a_full_house_says_so() {
    let served = Served::new();
    let mut guests: Vec<Client> = (0..64).map(|_| served.client()).collect();
    let late = served.client();
    assert_eq!(text(&late.hello, "/error/code"), "BUSY");
    let verb = called(praxis(&served.store).args(["list", "--json"]));
    assert!(verb.out.contains("\"BUSY\""), "{}{}", verb.out, verb.err);
    let mut last = guests.pop().unwrap();
    last.ask(list()).unwrap();
    last.close();
    // The engine closes its side after it has let go of the place.
    let mut next = served.client();
    while next.hello.get("error").is_some() {
        next = served.client();
    }
    next.ask(list()).unwrap();
}

/// A client that asks and never reads holds up itself alone, and not the engine's end either.
#[test]
fn who_never_reads_holds_up_nobody() {
    let mut served = Served::new();
    let mut stream = UnixStream::connect(served.socket()).unwrap();
    stream.set_nonblocking(true).unwrap();
    let line = "{\"protocol\":\"praxis-socket/1\",\"id\":1,\"request\":{\"verb\":\"list\"}}\n";
    let mut full = 0;
    // Until neither side's buffer moves any more.
    while full < 100 {
        match stream.write(line.as_bytes()) {
            Ok(_) => full = 0,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                full += 1;
                served.client().ask(list()).expect("others are answered");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(
        served.interrupt(),
        Some(0),
        "it ends though somebody does not read"
    );
}

/// Who leaves in the middle of watching is forgotten; the run goes on, and the next one sees it.
#[test]
fn who_leaves_while_watching_stops_nothing() {
    let waiting = waiting();
    for _ in 0..70 {
        let mut client = waiting.served.client();
        client.ask_only(object! { "verb": "watch", "runs": vec![waiting.run.as_str()] });
        let item = client.line().unwrap();
        assert_eq!(text(&item, "/item/value/runs/0/standing"), "NEEDS_APPROVAL");
    }
    let page = waiting
        .served
        .client()
        .ask(object! { "verb": "show" })
        .unwrap();
    assert_eq!(text(&page, "/standing"), "NEEDS_APPROVAL");
}

#[test]
fn the_socket_is_the_users_alone() {
    let served = Served::new();
    let socket = std::fs::metadata(served.socket()).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let store = std::fs::metadata(&served.store).unwrap();
    assert_eq!(store.permissions().mode() & 0o777, 0o700);
    assert!(!served.store.join("engine.new").exists());
}

/// What a killed engine leaves is in nobody's way: verbs open the store themselves, and the next engine serves it.
#[test]
fn the_socket_of_a_dead_engine_is_nothing() {
    let mut served = Served::new();
    served.kill();
    assert!(served.socket().exists(), "it had no time to remove it");
    let verb = called(praxis(&served.store).arg("list"));
    assert_eq!(verb.exit, Some(0), "{}", verb.err);
    served.serve();
    served.client().ask(list()).unwrap();
    assert_eq!(served.interrupt(), Some(0));
    assert!(!served.socket().exists(), "one that ends removes it");
}

/// A store whose path is too long for a socket names another place, which is as private; verbs and scripts find it.
#[test]
fn a_long_path_has_its_socket_elsewhere() {
    let dir = crate::support::scratch();
    let runtime = dir.path().join("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let store = dir.path().canonicalize().unwrap().join("s".repeat(150));
    let served = Served::with(dir, store, &[("XDG_RUNTIME_DIR", runtime.as_os_str())]);
    let named = std::fs::read_to_string(served.store.join("engine.sock.path")).unwrap();
    let named = std::path::Path::new(named.trim_end());
    let found = std::fs::metadata(named).unwrap();
    assert!(found.file_type().is_socket() && found.permissions().mode() & 0o777 == 0o600);
    let folder = std::fs::metadata(named.parent().unwrap()).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    assert_eq!(folder.uid(), rustix::process::getuid().as_raw());
    let mut client = Client::at(named);
    client.ask(list()).unwrap();
    // The verb's own environment does not matter: the store says where.
    let verb = called(
        praxis(&served.store)
            .env_remove("XDG_RUNTIME_DIR")
            .arg("list"),
    );
    assert_eq!(verb.exit, Some(0), "{}", verb.err);
    served.mission("m");
    assert!(served.script("worker.py", "m").status().unwrap().success());
}

/// A link that somebody put where the socket belongs is replaced, and what it leads to stays as it is; a store behind
/// a link is the same store.
#[test]
fn links_lead_nowhere_else() {
    let mut served = Served::new();
    served.kill();
    let victim = served.dir.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    for name in ["engine.sock", "engine.new"] {
        let path = served.store.join(name);
        let _ = std::fs::remove_file(&path);
        symlink(&victim, &path).unwrap();
    }
    served.serve();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    let found = std::fs::symlink_metadata(served.socket()).unwrap();
    assert!(found.file_type().is_socket());
    let link = served.dir.path().join("link");
    symlink(&served.store, &link).unwrap();
    let verb = called(praxis(&link).arg("list"));
    assert_eq!(verb.exit, Some(0), "{}", verb.err);
}

#[test]
fn a_second_engine_says_who_has_the_store() {
    let served = Served::new();
    let second = called(praxis(&served.store).arg("serve"));
    assert_ne!(second.exit, Some(0));
    let who = format!("process {}", served.pid());
    assert!(second.err.contains(&who), "{}", second.err);
    assert!(second.err.contains("STORE_LOCKED"), "{}", second.err);
    served.client().ask(list()).unwrap();
}

/// An engine that is killed while terminals wait at it is noticed by each: the one that follows a run
/// takes over, a plain client sees the end of the connection.
#[test]
fn a_killed_engine_is_noticed_by_everybody_who_waits() {
    let mut waiting = waiting();
    let mut client = waiting.served.client();
    client.ask_only(object! { "verb": "watch", "runs": vec![waiting.run.as_str()] });
    client.line().unwrap();
    waiting.served.kill();
    while client.line().is_some() {}
    until(&mut waiting.said, "this terminal goes on with its own runs");
    until(&mut waiting.said, "waits for a person");
    let page = called(praxis(&waiting.served.store).args(["show", "--json"]));
    assert!(
        page.out.contains("NEEDS_APPROVAL"),
        "{}{}",
        page.out,
        page.err
    );
    let pid = Pid::from_child(&waiting.code);
    kill_process(pid, Signal::INT).unwrap();
    let mut rest = String::new();
    waiting.said.read_to_string(&mut rest).unwrap();
    waiting.code.wait().unwrap();
}

/// Verbs that come at once while no engine runs wait for each other, whether they look or change.
#[test]
fn verbs_at_once_wait_for_each_other() {
    let world = crate::support::finished();
    let verbs = [
        ["list"],
        ["verify"],
        ["log"],
        ["resume"],
        ["holds"],
        ["resume"],
        ["inbox"],
    ];
    let children: Vec<Child> = verbs
        .iter()
        .map(|verb| {
            let mut command = praxis(&world.store);
            command
                .args(verb)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for (child, verb) in children.into_iter().zip(verbs) {
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{verb:?}: {err}");
    }
}
