#!/usr/bin/env python3
"""Runs the real program in pseudo-terminals and keeps what they show, as text and as SVG.

    python3 docs/screens/capture.py PRAXIS [FOLDER]

PRAXIS is the binary, FOLDER where the files go (this folder unless named). Everything happens in a folder of its own
below /tmp, with the repository and the agent of examples/failing-test. It needs Rust, git and Python 3.9 or newer.

What a terminal shows is found out by a small emulation of one below: the sequences that the program writes, and no
others. One that it does not know ends the capture, so that no screen is silently wrong.
"""

import fcntl
import html
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WIDTHS = (80, 120)
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")
PLAIN = (None, False, False)  # colour, bold, dim


class Screen:
    """A grid of cells, as a terminal of this size would show it."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[(" ", PLAIN)] * columns for _ in range(rows)]
        self.x = self.y = 0
        self.style = PLAIN
        self.rest = ""

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    if len(text) - at > 16:
                        raise ValueError("unknown sequence %r" % text[at : at + 16])
                    self.rest = text[at:]
                    return
                self.control(found.group(1), found.group(2))
                at = found.end()
                continue
            if char == "\n":
                self.line_feed()
            elif char == "\r":
                self.x = 0
            elif char == "\b":
                self.x = max(0, self.x - 1)
            elif char == "\t":
                self.x = min(self.columns - 1, (self.x // 8 + 1) * 8)
            elif char >= " ":
                self.put(char)
            at += 1

    def put(self, char):
        if self.x == self.columns:
            self.x = 0
            self.line_feed()
        self.cells[self.y][self.x] = (char, self.style)
        self.x += 1

    def line_feed(self):
        if self.y + 1 < self.rows:
            self.y += 1
        else:
            self.cells.pop(0)
            self.cells.append([(" ", PLAIN)] * self.columns)

    def control(self, numbers, letter):
        if numbers.startswith("?"):
            return  # modes of the terminal, which change nothing that is drawn
        given = [int(number or 0) for number in numbers.split(";")]
        count = max(1, given[0])
        if letter == "A":
            self.y = max(0, self.y - count)
        elif letter == "K":
            self.blank(self.y, self.x)
        elif letter == "J":
            self.blank(self.y, self.x)
            for row in range(self.y + 1, self.rows):
                self.blank(row, 0)
        elif letter == "m":
            self.paint(given)
        else:
            raise ValueError("unknown sequence ESC [ %s %s" % (numbers, letter))

    def blank(self, row, column):
        for place in range(column, self.columns):
            self.cells[row][place] = (" ", PLAIN)

    def paint(self, codes):
        colour, bold, dim = self.style
        for code in codes:
            if code == 0:
                colour, bold, dim = PLAIN
            elif code == 1:
                bold = True
            elif code == 2:
                dim = True
            elif 30 <= code <= 37:
                colour = code - 30
            else:
                raise ValueError("unknown colour %d" % code)
        self.style = (colour, bold, dim)

    def lines(self):
        """The rows from the first to the last that has something."""
        shown = list(self.cells)
        while shown and all(cell == " " for cell, _ in shown[0]):
            shown.pop(0)
        while shown and all(cell == " " for cell, _ in shown[-1]):
            shown.pop()
        return shown

    def text(self):
        return "\n".join("".join(char for char, _ in row).rstrip() for row in self.lines())


COLOURS = {1: "#f47067", 2: "#57ab5a", 3: "#c69026", 6: "#39c5cf", None: "#d1d7e0"}


def svg(screen, title):
    """The screen as a picture: one piece of text per stretch of equal style, set to the grid."""
    cell, line, pad, head = 8.4, 18, 14, 30
    rows = screen.lines()
    width = screen.columns * cell + 2 * pad
    height = len(rows) * line + head + 2 * pad
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f"'
        ' font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">'
        % (width, height, width, height),
        '<rect width="100%" height="100%" rx="8" fill="#22272e"/>',
        '<rect width="100%%" height="%d" rx="8" fill="#2d333b"/>' % head,
        '<text x="%d" y="20" fill="#9198a1" xml:space="preserve">$ %s</text>' % (pad, html.escape(title)),
    ]
    for number, row in enumerate(rows):
        y = head + pad + number * line + 12
        start = 0
        while start < len(row):
            end, style = start, row[start][1]
            while end < len(row) and row[end][1] == style:
                end += 1
            piece = "".join(char for char, _ in row[start:end])
            colour, bold, dim = style
            more = ' font-weight="bold"' if bold else ""
            more += ' fill-opacity="0.65"' if dim else ""
            # What stands in columns is placed by its column, whatever font is there.
            for word in re.finditer(r"\S+(?: \S+)*", piece):
                parts.append(
                    '<text x="%.1f" y="%d" fill="%s"%s textLength="%.1f" xml:space="preserve">%s</text>'
                    % (
                        pad + (start + word.start()) * cell,
                        y,
                        COLOURS[colour],
                        more,
                        len(word.group()) * cell,
                        html.escape(word.group()),
                    )
                )
            start = end
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, argv, columns, rows, env, cwd):
        self.screen = Screen(columns, rows)
        self.code = None
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)

    def read(self, seconds):
        ready, _, _ = select.select([self.file], [], [], seconds)
        if not ready:
            return None
        try:
            data = os.read(self.file, 65536)
        except OSError:
            data = b""
        self.screen.feed(data.decode("utf-8", "replace"))
        return data

    def until(self, pattern, seconds=240):
        """Reads until the screen shows it."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.screen.text(), re.M):
            if self.read(0.2) == b"" or time.monotonic() > end:
                raise SystemExit("expected %r, found:\n%s" % (pattern, self.screen.text()))

    def settle(self):
        """Reads what is being written now, so that no screen is half drawn."""
        while self.read(0.05):
            pass

    def answer(self, text):
        """Types an answer, and goes on with an empty screen below its echo."""
        self.settle()
        self.screen = Screen(self.screen.columns, self.screen.rows)
        os.write(self.file, (text + "\n").encode())
        self.until(r"^%s$" % re.escape(text))
        self.screen.blank(0, 0)

    def end(self):
        """Reads to the program's end."""
        while self.read(60) not in (b"", None):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        os.close(self.file)
        return self.code


class World:
    """A repository with a failing test, an agent that can be made to wait, and a store."""

    def __init__(self, praxis):
        self.dir = tempfile.mkdtemp(prefix="praxis-", dir="/tmp")
        self.app = os.path.join(self.dir, "app")
        example = os.path.join(ROOT, "examples", "failing-test")
        shutil.copytree(example, self.app)
        os.rename(os.path.join(self.app, "gitignore"), os.path.join(self.app, ".gitignore"))
        os.rename(os.path.join(self.app, "agent.sh"), os.path.join(self.dir, "agent.sh"))
        bin_dir = os.path.join(self.dir, "bin")
        os.mkdir(bin_dir)
        os.symlink(os.path.abspath(praxis), os.path.join(bin_dir, "praxis"))
        self.env = {
            name: os.environ[name]
            for name in ("HOME", "LANG", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN")
            if name in os.environ
        }
        self.env.update(
            PATH=bin_dir + ":" + os.environ["PATH"],
            XDG_STATE_HOME=os.path.join(self.dir, "state"),
            TERM="xterm-256color",
        )
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A duration that is wrong by an hour")
        self.gate = os.path.join(self.dir, "gate")
        self.slow = os.path.join(self.dir, "slow-agent.sh")
        with open(self.slow, "w", encoding="utf-8") as script:
            script.write(
                'test "$PRAXIS_STAGE" != implement || { echo "looking at src/lib.rs"; '
                "while test ! -e %s; do sleep 0.2; done; }\nexec sh %s/agent.sh\n" % (self.gate, self.dir)
            )

    def git(self, *args):
        config = ["-c", "user.name=Example", "-c", "user.email=example@localhost", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.app, *config, *args], check=True, stdout=subprocess.DEVNULL)

    def start(self, args, columns=80, rows=60):
        return Terminal(["praxis", *args], columns, rows, self.env, self.app)

    def run(self, *args):
        """A verb without a terminal: its exit and its output."""
        done = subprocess.run(["praxis", *args], cwd=self.app, env=self.env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def code(self, *more, agent="agent.sh", task="make the failing test pass", check="cargo test --offline"):
        names = [name for name in ("CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN") if name in self.env]
        passed = [word for name in names for word in ("--env", name)]
        agent = "sh %s/%s" % (self.dir, agent)
        return ["code", "--repo", ".", "--task", task, "--agent", agent, "--check", check, *passed, *more]


class Book:
    """The screens that are kept."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def keep(self, name, title, screen):
        name = "%s-%d" % (name, screen.columns)
        with open(os.path.join(self.folder, name + ".txt"), "w", encoding="utf-8") as text:
            text.write("$ %s\n%s\n" % (title, screen.text().strip("\n")))
        with open(os.path.join(self.folder, name + ".svg"), "w", encoding="utf-8") as picture:
            picture.write(svg(screen, title))
        print("kept", name, flush=True)

    def verb(self, world, name, *args):
        for columns in WIDTHS:
            terminal = world.start(list(args), columns, 100)
            terminal.end()
            self.keep(name, " ".join(["praxis", *args]), terminal.screen)


def whole_run(world, book, columns):
    """A run at a terminal: the plan's question, the live tree, the result's question, the last page."""
    short = "praxis code --repo . --task ... --agent ... --check ..."
    if os.path.exists(world.gate):
        os.remove(world.gate)
    terminal = world.start(world.code("--max-corrections", "1", agent="slow-agent.sh"), columns, 60)
    terminal.until(r"Approve the plan")
    terminal.settle()
    book.keep("question-plan", short, terminal.screen)
    terminal.answer("y")
    terminal.until(r"running +implement.*[3-9]\.\d s")
    terminal.settle()
    book.keep("live", short, terminal.screen)
    open(world.gate, "w", encoding="utf-8").close()
    terminal.until(r"Accept the result")
    terminal.settle()
    book.keep("question-result", short, terminal.screen)
    terminal.answer("y")
    code = terminal.end()
    if code != 0:
        raise SystemExit("expected an accepted run, found exit %s:\n%s" % (code, terminal.screen.text()))
    book.keep("accepted", short, terminal.screen)


def killed_run(world):
    """A run whose engine and whose shim were killed, so that nobody knows what the agent did."""
    if os.path.exists(world.gate):
        os.remove(world.gate)
    args = world.code("--approve-as", "alice", agent="slow-agent.sh", task="find out what was killed")
    engine = subprocess.Popen(
        ["praxis", *args], cwd=world.app, env=world.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )
    agents = []
    while not agents:
        if engine.poll() is not None:
            raise SystemExit("the run that was to be killed ended by itself")
        time.sleep(0.2)
        agents = [pid for pid in processes() if in_clone(pid, world.dir)]
    shims = [pid for pid in ancestors(agents[0]) if pid != engine.pid and b"__shim" in command(pid)]
    for pid in [engine.pid, *shims, *agents]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    engine.wait()


def rejected_run(world):
    """A run whose plan a person denied by a verb."""
    world.run(*world.code("--no-wait", task="say durations in weeks"))
    run = re.search(r"^r-\w+", world.run("list")[1], re.M).group()
    world.run("deny", run, "--reason", "nobody counts in weeks")


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def in_clone(pid, folder):
    try:
        where = os.readlink("/proc/%d/cwd" % pid)
    except OSError:
        return False
    return where.startswith(folder) and where.endswith("/clone") and b"agent" in command(pid)


def command(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def ancestors(pid):
    found = []
    while pid > 1:
        found.append(pid)
        try:
            with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            break
    return found


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    world = World(sys.argv[1])
    book = Book(sys.argv[2] if len(sys.argv) > 2 else HERE)
    print("in", world.dir, flush=True)
    book.verb(world, "no-store", "list")
    for columns in WIDTHS:
        whole_run(world, book, columns)
    book.verb(world, "show", "show")
    book.verb(world, "diff", "diff")
    book.verb(world, "report", "report")
    world.run(*world.code("--no-wait", task="say durations of more than a day in days"))
    held = ["--approve-as", "alice", "--max-corrections", "0"]
    world.run(*world.code(*held, task="say durations in words"))
    book.verb(world, "held", "show")
    killed_run(world)
    book.verb(world, "unknown", "unknown")
    book.verb(world, "list", "list")
    book.verb(world, "inbox", "inbox")
    book.verb(world, "holds", "holds")
    rejected_run(world)
    book.verb(world, "rejected", "show")
    book.verb(world, "error", "show", "r-none")
    book.verb(world, "doctor", "doctor")


if __name__ == "__main__":
    main()
