# A worker for praxis serve: python3 worker.py STORE MISSION RUN. It adds the numbers that are handed to it.
import json, socket, sys
from pathlib import Path

store, mission, run = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
elsewhere = store / "engine.sock.path"
connection = socket.socket(socket.AF_UNIX)
connection.connect(elsewhere.read_text().strip() if elsewhere.exists() else str(store / "engine.sock"))
engine, number = connection.makefile("rw", encoding="utf-8"), 0
assert json.loads(engine.readline())["protocol"] == "praxis-socket/1"

def ask(**request):
    global number
    number += 1
    print(json.dumps({"protocol": "praxis-socket/1", "id": number, "request": request}), file=engine, flush=True)
    said = json.loads(engine.readline() or sys.exit("the engine went away"))
    return said["answer"]["value"] if "answer" in said else sys.exit(str(said["error"]))

def work(name, kind, **members):
    return ask(verb="work", worker="agent:adder", missionId=mission, runId=run,
               requestId=f"{kind}:{name}", ask={"kind": kind, **members})

while True:
    offer = ask(verb="next-delivery", worker="agent:adder", missionId=mission, runId=run)
    node, delivery = offer["node"], offer["delivery"]
    if delivery:  # claim it, look at it, say that it is here; a node is offered once all its inputs are
        name = delivery["deliveryId"]
        claim = work(name, "claim", deliveryId=name)
        work(name, "acknowledge", deliveryId=name, handoff=delivery["handoff"],
             claimToken=claim["claimToken"], generation=claim["result"]["generation"])
        continue
    if node["kind"] == "END":
        work("end", "admit", nodeId=node["id"])
        work("end", "boundary", nodeId=node["id"])
        break
    numbers = [n for manifest in offer["manifests"] for n in manifest["result"]["numbers"]] or [1, 2, 3]
    action = {"action": "add", "scope": "numbers", "payload": {"numbers": numbers}}
    effect = {"action": action, "class": "READ", "grantId": "adding", "amount": "1"}
    attempt = work(node["id"], "admit", nodeId=node["id"], effect=effect)["result"]["attemptId"]
    if not work(node["id"], "dispatch", nodeId=node["id"])["permitted"]:
        sys.exit("this was begun before: look what became of it, and report that")
    result = {"numbers": [sum(numbers)]}  # the work itself, only now
    work(node["id"], "report", attemptId=attempt, outcome="APPLIED", actual="1", evidence=result)
    work(node["id"], "boundary", nodeId=node["id"], result=result)
print("done")
