#!/usr/bin/env python3
"""Verifies an export of a Praxis journal with the standard library of Python 3 alone.

Written from FORMAT.md, not from the Rust code. Only what has to do with checkpoints needs checkpoint.py beside it.

    verify.py [--json] EXPORT        exit 0: everything holds; exit 1: something is wrong, named with its place
    verify.py --checkpoint FILE --verifier-key KEY EXPORT        also: the export extends the signed checkpoint
    verify.py --verifier-key KEY PROOFS        an export of one mission: each event is proven under its checkpoint
"""

import hashlib
import json
import os
import sys

FORMAT, PROOFS, VERSION = "praxis-export", "praxis-proofs", 0
PROFILE, CODEC = "aiws-handoff/1", 0
MAX_SAFE = 2**53 - 1
MAX_ID = 256
MAX_DEPTH = 64
MAX_LINE_DEPTH = MAX_DEPTH + 1
MAX_EVENT = 4_194_304
MAX_LINE = MAX_EVENT + 256
MAX_PROOF = 64
MAX_PROOF_LINE = MAX_LINE + 67 * MAX_PROOF + 16
MAX_NOTE = 262_144
ZEROS = "0" * 64
ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class Fault(Exception):
    """What is wrong; `kind` is a stable word, `what` a sentence."""

    def __init__(self, kind, what):
        super().__init__(what)
        self.kind, self.what = kind, what


# Section 1: canonical JSON.

def no_number(text):
    raise Fault("JSON", f"expected an integer, found {text}")


def no_duplicates(pairs):
    members = {}
    for name, value in pairs:
        if name in members:
            raise Fault("DUPLICATE_KEY", f"the member {name!r} occurs twice")
        members[name] = value
    return members


def depth_of(text):
    """Nesting before parsing, so that a deep text cannot exhaust the parser."""
    depth = deepest = 0
    quoted = escaped = False
    for char in text:
        if quoted:
            quoted, escaped = (escaped or char != '"'), (not escaped and char == "\\")
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def parse(line):
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as cause:
        raise Fault("JSON", f"expected UTF-8: {cause}") from None
    if depth_of(text) > MAX_LINE_DEPTH:
        raise Fault("JSON", f"expected at most {MAX_LINE_DEPTH} levels of nesting")
    try:
        return json.loads(text, object_pairs_hook=no_duplicates, parse_float=no_number, parse_constant=no_number)
    except (ValueError, RecursionError) as cause:
        raise Fault("JSON", f"expected JSON: {cause}") from None


def quote(text):
    pieces = []
    for char in text:
        if char in ESCAPES:
            pieces.append(ESCAPES[char])
        elif char < " ":
            pieces.append(f"\\u{ord(char):04x}")
        elif "\ud800" <= char <= "\udfff":
            raise Fault("JSON", "expected no lone surrogate in a string")
        else:
            pieces.append(char)
    return '"' + "".join(pieces) + '"'


def write(value):
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        if abs(value) > MAX_SAFE:
            raise Fault("JSON", f"expected a safe integer, found {value}")
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return "[" + ",".join(write(item) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(quote(name) + ":" + write(value[name]) for name in names) + "}"


def canonical(value):
    return write(value).encode("utf-8")


# Shapes.

def members(value, names, what):
    if not isinstance(value, dict) or set(value) != set(names):
        raise Fault("SHAPE", f"expected {what} with exactly {', '.join(sorted(names))}")
    return value


def string(value, what):
    if not isinstance(value, str):
        raise Fault("SHAPE", f"expected {what} to be a string")
    return value


def digest(value, what):
    text = string(value, what)
    if len(text) != 64 or any(char not in "0123456789abcdef" for char in text):
        raise Fault("SHAPE", f"expected {what} to be 64 lowercase hex digits")
    return text


def amount(value, what, digits=100):
    text = string(value, what)
    if not (text.isascii() and text.isdigit() and (text == "0" or text[0] != "0") and len(text) <= digits):
        raise Fault("SHAPE", f"expected {what} to be a decimal of at most {digits} digits, found {text[:120]!r}")
    return int(text)


def decimal(value, what):
    number = amount(value, what, 20)
    if number >= 2**64:
        raise Fault("SHAPE", f"expected {what} to be a decimal below 2^64, found {number}")
    return number


def ident(value, what):
    text = string(value, what)
    if not 1 <= len(text) <= MAX_ID:
        raise Fault("SHAPE", f"expected {what} of 1 to {MAX_ID} characters, found {len(text)}")
    return text


def nullable(check, value, what):
    return None if value is None else check(value, what)


# Sections 2 to 4: events and chains.

EVENT = ("stream revision prevHash subject type requestId requestDigest part actorId actorKind policy decisionClass "
         "decisionRef atMs ownerEpoch command facts outcome result codec").split()

FACTS = ("account admissions authorizedAtMs claimFingerprint clearEvidence materialErrors materials "
         "recoveryAuthority registers restartAllowed").split()
OUTCOME = "accounts due gates identities opens owner registers transitions".split()


def shapes(event):
    """Section 2: the event's own members. What the command and the lists hold is under the hash and not looked at."""
    codec = members(event["codec"], ["profile", "version"], "the codec")
    if decimal(codec["version"], "the codec's version") != CODEC:
        raise Fault("CODEC", f"expected an event of codec version {CODEC}, found {codec['version']}")
    if string(codec["profile"], "the codec's profile") != PROFILE:
        raise Fault("SHAPE", f"expected the codec's profile {PROFILE!r}, found {codec['profile']!r}")
    part = members(event["part"], ["k", "of"], "the part")
    if not 1 <= decimal(part["k"], "part.k") <= decimal(part["of"], "part.of"):
        raise Fault("SHAPE", f"expected part 1 to N of N, found {part['k']} of {part['of']}")
    command = event["command"]
    if not isinstance(command, dict) or string(event["type"], "type") != command.get("type"):
        raise Fault("SHAPE", "expected a command of the event's type")
    subject = members(event["subject"], ["missionId", "runId"], "the subject")
    ident(subject["missionId"], "missionId")
    nullable(ident, subject["runId"], "runId")
    policy = members(event["policy"], ["id", "revision"], "the policy")
    ident(policy["id"], "policy.id")
    amount(policy["revision"], "policy.revision")
    nullable(ident, event["requestId"], "requestId")
    digest(event["requestDigest"], "requestDigest")
    ident(event["actorId"], "actorId")
    if event["actorKind"] not in ("HUMAN", "RULE", "AGENT", "SYSTEM", "UNATTRIBUTED"):
        raise Fault("SHAPE", f"expected a known actorKind, found {event['actorKind']!r}")
    string(event["decisionClass"], "decisionClass")
    nullable(ident, event["decisionRef"], "decisionRef")
    decimal(event["atMs"], "atMs")
    nullable(decimal, event["ownerEpoch"], "ownerEpoch")
    members(event["facts"], FACTS, "the facts")
    members(event["outcome"], OUTCOME, "the outcome")


def tagged(tag, material):
    return hashlib.sha256(tag.encode() + b"\n" + material).hexdigest()


def stream_of(mission, run):
    return tagged("aiws-stream", canonical([mission, run]))


class Chains:
    def __init__(self):
        self.heads = {}  # stream -> (revision, hash); revision 0 when open without events
        self.open = None  # what the next event has to be, while an append has parts to come

    def accept(self, event, hash_):
        stream, revision = digest(event["stream"], "stream"), decimal(event["revision"], "revision")
        subject = event["subject"]
        mission, run = subject["missionId"], subject["runId"]
        own = stream_of(mission, None)
        if stream not in (own, stream_of(mission, run)):
            raise Fault("STREAM", "the stream is neither the subject's nor its mission's")
        head = self.heads.get(stream, (0, ZEROS) if stream == own else None)
        if head is None:
            raise Fault("NOT_OPENED", "no earlier event opens this run's stream")
        if revision != head[0] + 1:
            raise Fault("REVISION", f"expected revision {head[0] + 1}, found {revision}")
        if digest(event["prevHash"], "prevHash") != head[1]:
            raise Fault("PREV_HASH", f"expected previous hash {head[1]}, found {event['prevHash']}")
        opens = event["outcome"]["opens"]
        if not isinstance(opens, list):
            raise Fault("SHAPE", "expected outcome.opens to be a list")
        k, of = (decimal(event["part"][name], "part") for name in ("k", "of"))
        request = (mission, event["actorId"], event["requestId"], event["requestDigest"], of)
        if (k, request) != (self.open or (1, request)):
            raise Fault("PART", f"expected part {(self.open or (1,))[0]} of one request, found part {k} of {of}")
        for opened in opens:
            if digest(opened, "an opened stream") == stream or opened in self.heads:
                raise Fault("OPENED_TWICE", f"stream {opened} is already there")
            self.heads[opened] = (0, hash_)
        self.heads[stream] = (revision, hash_)
        self.open = (k + 1, request) if k < of else None

    def lines(self):
        ended = sorted((stream, head) for stream, head in self.heads.items() if head[0] > 0)
        return [{"hash": head[1], "revision": str(head[0]), "stream": stream} for stream, head in ended]


# Sections 5, 6 and 8: the export, of everything or of one mission.

class Export:
    def __init__(self, note, key):
        self.chains, self.digest = Chains(), hashlib.sha256()
        self.count, self.sequence, self.store, self.trailer = 0, 0, None, None
        self.note, self.key, self.mission, self.head = note, key, None, None
        self.tree, self.proven, self.place = None, None, {}

    def line(self, number, raw):
        self.place = {"line": number}
        if self.trailer is not None:
            raise Fault("AFTER_TRAILER", "expected nothing after the trailer")
        if not raw.endswith(b"\n"):
            raise Fault("TRUNCATED", "expected the line to end in a line feed")
        bound = MAX_LINE if self.mission is None else MAX_PROOF_LINE
        if len(raw) > bound + 1:
            raise Fault("TOO_LARGE", f"expected a line of at most {bound} bytes")
        value = parse(raw[:-1])
        if number == 1:
            self.check_canonical(raw, value)
            self.header(value)
        elif isinstance(value, dict) and "trailer" in value:
            self.check_canonical(raw, value)
            self.end(members(value, ["trailer"], "the last line")["trailer"])
            return
        else:
            self.event(raw, value)
        self.digest.update(raw)

    def check_canonical(self, raw, value):
        if canonical(value) != raw[:-1]:
            raise Fault("NOT_CANONICAL", "the line is not in canonical form")

    def header(self, value):
        of_one = isinstance(value, dict) and value.get("format") == PROOFS
        members(value, ["format", "storeId", "version"] + (["checkpoint", "missionId"] if of_one else []), "a header")
        if not of_one and value["format"] != FORMAT:
            raise Fault("FORMAT", f"expected format {FORMAT!r}, found {value['format']!r}")
        if value["version"] is True or value["version"] is False or value["version"] != VERSION:
            raise Fault("VERSION", f"expected version {VERSION}, found {value['version']!r}")
        self.store = ident(value["storeId"], "storeId")
        if of_one:
            self.mission = ident(value["missionId"], "missionId")
            if self.note is not None:
                raise Fault("CHECKPOINT", "expected no --checkpoint: this export has its own")
            self.note = string(value["checkpoint"], "checkpoint").encode()
        if self.note is not None:
            self.check_note()
        elif self.key is not None:
            what = "expected something signed for the key: --checkpoint FILE, or the export of one mission, which has its own"
            raise Fault("CHECKPOINT", what)

    def check_note(self):
        sys.dont_write_bytecode = True
        try:
            import checkpoint
        except ImportError:
            raise Fault("CHECKPOINT", "expected checkpoint.py beside verify.py, it is not there") from None
        try:
            self.head = checkpoint.head(self.note, self.key, self.store)
        except checkpoint.Refused as refused:
            raise Fault(refused.kind, refused.what) from None
        self.tree, self.proven = checkpoint.Range(), checkpoint.proven

    def event(self, raw, value):
        proof = [] if self.mission is None else ["proof"]
        members(value, ["event", "hash", "sequence"] + proof, "a line of an event")
        event = members(value["event"], EVENT, "an event")
        sequence = decimal(value["sequence"], "sequence")
        self.place.update(sequence=sequence, stream=event["stream"], revision=event["revision"])
        self.check_canonical(raw, value)
        shapes(event)
        # Of one mission others stand between its events, but not inside an append.
        if sequence <= self.sequence or sequence != self.sequence + 1 and (proof == [] or self.chains.open):
            raise Fault("SEQUENCE", f"expected sequence {self.sequence + 1}, found {sequence}")
        material = canonical(event)
        if len(material) > MAX_EVENT:
            raise Fault("TOO_LARGE", f"expected an event of at most {MAX_EVENT} bytes")
        if depth_of(material.decode("utf-8")) > MAX_DEPTH:
            raise Fault("JSON", f"expected an event of at most {MAX_DEPTH} levels of nesting")
        hash_ = tagged("aiws-event", material)
        if digest(value["hash"], "hash") != hash_:
            raise Fault("HASH", f"the event hashes to {hash_}, the line says {value['hash']}")
        self.chains.accept(event, hash_)
        self.count, self.sequence = self.count + 1, sequence
        if proof:
            self.check_proof(event, sequence, bytes.fromhex(hash_), value["proof"])
        elif self.head and self.tree.size < self.head[0]:
            self.tree.push(bytes.fromhex(hash_))

    def check_proof(self, event, sequence, leaf, proof):
        if event["subject"]["missionId"] != self.mission:
            raise Fault("MISSION", "expected an event of the mission in the header")
        if not isinstance(proof, list):
            raise Fault("SHAPE", "expected proof to be a list")
        hashes = [bytes.fromhex(digest(hash_, "a hash of the proof")) for hash_ in proof]
        if self.proven(leaf, sequence - 1, self.head[0], hashes) != self.head[1]:
            raise Fault("PROOF", "the event is not proven to stand at this place under the checkpoint")

    def end(self, trailer):
        members(trailer, ["count", "digest", "heads"], "a trailer")
        if decimal(trailer["count"], "count") != self.count:
            raise Fault("COUNT", f"expected a count of {self.count}, found {trailer['count']}")
        if self.chains.open is not None:
            raise Fault("PART", f"expected part {self.chains.open[0]} of the last request, found the end")
        if trailer["heads"] != self.chains.lines():
            raise Fault("HEADS", "the heads are not the last events of the streams")
        found = self.digest.hexdigest()
        if digest(trailer["digest"], "digest") != found:
            raise Fault("DIGEST", f"the lines before hash to {found}, the trailer says {trailer['digest']}")
        self.trailer = trailer

    def finish(self, lines):
        self.place = {"line": lines + 1}
        if self.trailer is None:
            raise Fault("NO_TRAILER", "expected a trailer, found the end: the export was cut off")
        if self.head and self.mission is None:
            if self.head[0] > self.count:
                raise Fault("AHEAD", f"the checkpoint vouches for {self.head[0]} events, the export has {self.count}")
            if self.tree.root() != self.head[1]:
                raise Fault("FORKED", f"the first {self.head[0]} events are not those of the checkpoint")


def verify(source, note=None, key=None):
    """Gives the report as a dictionary; `ok` says whether everything holds."""
    export, lines = Export(note, key), 0
    try:
        while raw := source.readline(MAX_PROOF_LINE + 2):
            lines += 1
            export.line(lines, raw)
        export.finish(lines)
    except Fault as fault:
        return {"ok": False, "fault": fault.kind, "what": fault.what, **export.place}
    heads = export.trailer["heads"]
    report = {"ok": True, "storeId": export.store, "events": export.count, "streams": len(heads), "heads": heads,
              "digest": export.trailer["digest"]}
    if export.head:
        report["checkpoint"] = {"size": export.head[0], "rootHash": export.head[1].hex()}
    if export.mission is not None:
        report["missionId"] = export.mission
    return report


def shown(value):
    """Text from the export with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else "?" for char in str(value))[:300]


def main(arguments):
    as_json = "--json" in arguments
    paths, options = [argument for argument in arguments if argument != "--json"], {}
    while len(paths) > 2 and paths[0] in ("--checkpoint", "--verifier-key"):
        options[paths[0]] = paths[1]
        paths = paths[2:]
    if len(paths) != 1 or paths[0].startswith("--"):
        print(__doc__.strip(), file=sys.stderr)
        return 1
    try:
        note = None
        if "--checkpoint" in options:
            if not os.path.isfile(options["--checkpoint"]):
                raise OSError(f"expected a file: {options['--checkpoint']}")
            with open(options["--checkpoint"], "rb") as source:
                note = source.read(MAX_NOTE + 1)
        with open(paths[0], "rb") as source:
            report = verify(source, note, options.get("--verifier-key"))
    except OSError as cause:
        report = {"ok": False, "fault": "UNREADABLE", "what": str(cause)}
    if as_json:
        print(json.dumps({"version": VERSION, **report}, sort_keys=True))
    elif report["ok"]:
        print(f"ok: {report['events']} events in {report['streams']} streams of store {shown(report['storeId'])}")
        if "missionId" in report:
            print(f"    each is of mission {shown(report['missionId'])}, and proven to stand in the log")
        if "checkpoint" in report:
            print(f"    the checkpoint of {report['checkpoint']['size']} events is signed by the key and holds")
    else:
        place = ", ".join(f"{name} {shown(report[name])}" for name in ("line", "sequence", "stream", "revision")
                          if name in report)
        print(f"WRONG: {report['fault']} at {place or shown(paths[0])}: {shown(report['what'])}")
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
