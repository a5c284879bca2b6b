"""The tree and the signed checkpoint of a Praxis journal, for verify.py, with the standard library of Python 3 alone.

Written from section 7 of FORMAT.md, not from the Rust code: Ed25519 (RFC 8032), the tree (RFC 6962), the note (C2SP).
"""

import base64
import hashlib

MAX_NOTE, MAX_SIGNATURES, MAX_NAME, MAX_PROOF = 262_144, 64, 4_096, 64
TREE = 0
PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"



class Refused(Exception):
    """Why a checkpoint is refused; `kind` is a stable word, `what` a sentence."""

    def __init__(self, kind, what):
        super().__init__(what)
        self.kind, self.what = kind, what


# Ed25519, verification alone.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(one, two):
    """Adds points of the curve in extended coordinates."""
    a, b = (one[1] - one[0]) * (two[1] - two[0]), (one[1] + one[0]) * (two[1] + two[0])
    c, d = 2 * one[3] * two[3] * D, 2 * one[2] * two[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    total = (0, 1, 1, 0)
    while number:
        total, point, number = add(total, point) if number & 1 else total, add(point, point), number >> 1
    return total


def point_of(data):
    """The point of 32 bytes; None where they are not the encoding of one."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def is_small(point):
    x, y, z, _ = times(8, point)
    return x == 0 and y == z


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def ed25519(public, message, signature):
    """Whether a signature holds; points of small order are refused, so that one signature means one message."""
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r, s = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L or is_small(a) or is_small(r):
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = times(s, BASE), add(r, times(h, a))
    return all((left[at] * right[2] - right[at] * left[2]) % P == 0 for at in (0, 1))


# The tree.

def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


class Range:
    """The roots of a tree's full subtrees, the largest first."""

    def __init__(self):
        self.size, self.nodes = 0, []

    def push(self, leaf):
        node, size = sha(b"\0", leaf), self.size
        while size & 1:
            node, size = sha(b"\1", self.nodes.pop(), node), size >> 1
        self.nodes.append(node)
        self.size += 1

    def root(self):
        if not self.nodes:
            return sha()
        root = self.nodes[-1]
        for node in reversed(self.nodes[:-1]):
            root = sha(b"\1", node, root)
        return root


def proven(leaf, index, size, proof):
    """The root that a proof leads to from the leaf at an index; None for a proof of another shape."""
    if not 0 <= index < size or len(proof) > MAX_PROOF:
        return None
    at, last, root = index, size - 1, sha(b"\0", leaf)
    for hash_ in proof:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = sha(b"\1", hash_, root)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            root = sha(b"\1", root, hash_)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


# Keys and notes.

def base64_of(text):
    """The bytes of a text in base 64; None where it is not the one text of its bytes."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return data if base64.b64encode(data).decode() == text else None


def is_name(text):
    fits = all(char != "+" and not char.isspace() and char >= " " for char in text)
    return fits and 0 < len(text.encode()) <= MAX_NAME


def head(note, key, store):
    """Size and root of a signed checkpoint of this store, behind a signature of the key."""
    # What the command line could not decode is no key.
    key = (key or "").encode("utf-8", "replace").decode("utf-8")
    name, id_, key = (key.removesuffix("\n").split("+", 2) + ["", "", ""])[:3]
    key = base64_of(key) or b""
    if not is_name(name) or len(key) != 33 or key[0] != 1 or sha(name.encode(), b"\n", key)[:4].hex() != id_:
        raise Refused("KEY", "expected --verifier-key NAME+ID+KEY as praxis keygen printed it")
    try:
        text, signatures = note.decode("utf-8").rsplit("\n\n", 1)
    except ValueError:
        raise Refused("CHECKPOINT", "expected a text, an empty line and signatures") from None
    lines = signatures.split("\n")
    plain = all(byte >= 32 or byte == 10 for byte in note)
    if len(note) > MAX_NOTE or lines.pop() or len(lines) > MAX_SIGNATURES or not plain:
        raise Refused("CHECKPOINT", "expected lines without control characters within the bounds")
    text, valid = text + "\n", False
    for line in lines:
        mark, of, data = (line.split(" ", 2) + ["", "", ""])[:3]
        data = base64_of(data) or b""
        if mark != "\u2014" or not is_name(of) or len(data) < 5:
            raise Refused("CHECKPOINT", "a line of a signature is not written as one")
        if of == name and data[:4].hex() == id_:
            if not ed25519(key[1:], text.encode(), data[4:]):
                raise Refused("SIGNATURE", "the signature does not hold for this checkpoint")
            valid = True
    if not valid:
        raise Refused("SIGNATURE", "the checkpoint has no signature of this key")
    origin, size, root = text.split("\n")[:3] if text.count("\n") == 3 else ("", "", "")
    root = base64_of(root) or b""
    is_size = size.isascii() and size.isdigit() and (size == "0" or size[0] != "0") and len(size) <= 20
    if not is_size or int(size) >= 2**64 or len(root) != 32 or not origin:
        raise Refused("CHECKPOINT", "expected origin, size and root in three lines")
    escaped = "".join(chr(byte) if chr(byte) in PLAIN else f"%{byte:02x}" for byte in store.encode())
    if origin != f"praxis-tree-{TREE}/{escaped}":
        raise Refused("ORIGIN", f"the checkpoint is of {origin[:80]!r}, not of this store")
    return int(size), root
