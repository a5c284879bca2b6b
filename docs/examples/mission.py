# Opens a mission for workers: python3 mission.py STORE MISSION RUN. Two nodes add numbers, then the run has its result.
import json, socket, sys
from pathlib import Path

store, mission, run = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
elsewhere = store / "engine.sock.path"
connection = socket.socket(socket.AF_UNIX)
connection.connect(elsewhere.read_text().strip() if elsewhere.exists() else str(store / "engine.sock"))
engine = connection.makefile("rw", encoding="utf-8")
assert json.loads(engine.readline())["protocol"] == "praxis-socket/1"

def apply(command):
    request = {"verb": "apply", "command": command}
    print(json.dumps({"protocol": "praxis-socket/1", "id": 1, "request": request}), file=engine, flush=True)
    said = json.loads(engine.readline())
    return said["answer"]["value"] if "answer" in said else sys.exit(str(said["error"]))

def node(name, kind, *after):
    return {"id": name, "kind": kind, "dependsOn": list(after), "config": {"executionKind": "AGENT"} if kind == "TASK" else {}}

contract = {
    "edition": "0.4", "features": [], "extensions": ["aiws-handoff/1"], "missionId": mission, "contractId": "adding", "revision": "1",
    "budget": "10", "deadlineMs": "99999999999999", "maxAttempts": "3",
    "authority": {"rootGrants": [{"grantId": "adding", "parentGrantId": None, "subject": "agent:adder", "actions": ["add"],
                                  "scopes": ["numbers"], "maxAmount": "2", "notAfterMs": "99999999999999"}]},
}
config = {"optionalInputs": [], "mappings": [], "requiredSkip": [], "scopeBindings": [], "restartPolicy": "AUTO",
          "leaseMs": "60000", "defaultStop": "DRAIN", "maxRecipients": "8"}
graph = {"graphId": "adding", "revision": "1", "planRevision": "1",
         "nodes": [node("first", "TASK"), node("second", "TASK", "first"), node("end", "END", "second")]}

def of_mission(name, command):
    apply({"requestId": name, "missionId": mission, "expectedRevision": None, "ownerEpoch": None, "command": command})

of_mission("open", {"type": "openMission", "contract": contract, "config": config})
of_mission("start", {"type": "startRun", "runId": run})
body = {"type": "activateGraph", "runId": run, "ownerEpoch": "0", "graph": graph}  # the run's owner fills in its epoch
apply({"requestId": "activate", "missionId": mission, "runId": run, "intent": {"intent": "command", "body": body}})
print("open")
