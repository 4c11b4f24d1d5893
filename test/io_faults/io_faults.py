#!/usr/bin/env python3
"""Lets the system calls of Tenon's commands, and of a host in C, fail in turn, and kills them at each.

Usage: io_faults.py TENON INJECT HOST [--all | --pairs SECONDS | --runs N] [--only TEXT] [--seed N]

Without options, tries a fixed choice of N faults (150). --all tries each fault at each call of each scenario whose name
has TEXT; --pairs tries two faults at once, chosen at random, for that long (0: for ever).

A command must end with an error and a documented exit code, or succeed with complete outputs. Each output is the old
file or the new one, and nothing else is left, except by a process that was killed: see `may_remain`.
"""

import argparse
import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

PROGRAM = """\
fn @main(%x: tensor[n, 16; f32], %k: i64) -> tensor[n, 16; f32] {
  %r = loop (%i: i64 = 0, %y: tensor[n, 16; f32] = %x) while { less(%i, %k) } {
    %j = add(%i, 1)
    %z = matmul(%y, tensor[16, 16; f32]{WEIGHTS})
    %e = exp(%z)
    (%j, %e)
  }
  %r.1
}
""".replace("WEIGHTS", ", ".join(["0.25"] * 256))
SCALARS = """\
fn @main(%n: i64) -> i64 {
  %r = loop (%i: i64 = 0, %sum: i64 = 0) while { less(%i, %n) } {
    %j = add(%i, 1)
    %s = add(%sum, %i)
    (%j, %s)
  }
  %r.1
}
"""
ASSEMBLY = """\
const "w" = tensor[2; u8] hex "0102"
func @main(x: tensor[n; f32]) -> any {
  %1 = shape_of %0
  ret %1
}
"""
OLD = b"the old output\n"
USAGE, RUNTIME = 2, 5  # the exit codes of what the system refuses


@dataclasses.dataclass
class Scenario:
    name: str
    command: list[str]
    outputs: tuple[str, ...] = ()  # files in `out`, whose old content must survive failures
    timed: bool = False  # what is written holds times, so that each run writes something else
    isolated: bool = False  # a child process does the work, so that its parent may be killed instead
    prints_failures: bool = False  # standard output says what failed, though the command may succeed


@dataclasses.dataclass(frozen=True)
class Fault:
    kinds: str
    how: str
    lasting: bool = False
    # The command must succeed nevertheless, with the same results.
    harmless: bool = False

    def at(self, number: int) -> str:
        return f"{self.kinds}@{number}{'..' if self.lasting else ''}={self.how}"


DISK_FULL = Fault("write,truncate,sync,link,mode", "ENOSPC", lasting=True)
FAULTS = [
    DISK_FULL,
    Fault("write", "ENOSPC"),
    Fault("write", "EIO"),
    Fault("write", "EINTR"),
    Fault("write", "short", harmless=True),
    Fault("read", "EIO"),
    Fault("read", "EIO", lasting=True),
    Fault("read", "EINTR"),
    Fault("read", "short", harmless=True),
    Fault("pipe", "EINTR", harmless=True),
    Fault("pipe", "short", harmless=True),
    Fault("open", "EMFILE"),
    Fault("open", "EMFILE", lasting=True),
    Fault("open", "EACCES"),
    Fault("close", "EIO"),
    Fault("close", "EINTR"),
    Fault("stat", "EIO"),
    Fault("stat", "EACCES", lasting=True),
    Fault("folder", "EIO"),
    Fault("link", "EIO"),
    Fault("link", "EEXIST"),
    Fault("rename", "EIO"),
    Fault("mode", "EIO"),
    Fault("mode", "EPERM"),
    Fault("sync", "EIO"),
    Fault("sync", "ENOSPC"),
    Fault("truncate", "ENOSPC"),
    Fault("descriptor", "EMFILE"),
    Fault("memfd", "EMFILE"),
    Fault("memfd", "ENOMEM", lasting=True),
    Fault("map", "ENOMEM"),
    Fault("map", "ENOMEM", lasting=True),
    Fault("random", "ENOSYS"),
    Fault("thread", "EAGAIN"),
    Fault("thread", "EAGAIN", lasting=True),
    Fault("process", "EAGAIN"),
]
# A file is removed only after a failure, and its removal may fail, too.
REMOVALS = [(Fault(kinds, "EIO"), Fault("unlink", "EIO", lasting=True)) for kinds in ("rename", "write", "sync")]
# The calls before which, and after which, files differ, and some others.
KILLED = "open,write,close,folder,unlink,link,rename,mode,sync,truncate,memfd,thread,process"
KILLS = [Fault(KILLED, how) for how in ("kill", "term", "kill-root", "term-root")]
# What else matters where temporary files have names.
NAMED = ("open", "write", "close", "rename", "mode", "sync", "random")


@dataclasses.dataclass
class Outcome:
    code: int | None = None
    signal: int | None = None
    hang: bool = False
    hits: list[str] = dataclasses.field(default_factory=list)  # KIND CALL WHAT
    steps: list[str] = dataclasses.field(default_factory=list)
    stdout: bytes = b""
    stderr: str = ""


def scenarios(tenon: str, host: str) -> list[Scenario]:
    inputs = ["--dim", "n=3", "--input", "x=x.npy", "--input", "k=2"]
    return [
        Scenario("compile", [tenon, "compile", "-q", "m.tn", "-o", "out/m.tnx"], ("m.tnx",)),
        Scenario("compile model", [tenon, "compile", "-q", "external.onnx", "-o", "out/m.tnx"], ("m.tnx",)),
        Scenario(
            "compile bytecode",
            [tenon, "compile", "-q", "scalars.tn", "--mode", "bytecode", "-o", "out/m.tnx"],
            ("m.tnx",),
        ),
        Scenario(
            "compile weights",
            [tenon, "compile", "-q", "m.tn", "--external-weights", "out/m.safetensors", "-o", "out/m.tnx"],
            ("m.safetensors", "m.tnx"),
        ),
        Scenario("compile shared", [tenon, "compile", "-q", "m.tn", "--shared", "-o", "out/m.so"], ("m.so",)),
        Scenario(
            "compile isolated",
            [tenon, "compile", "-q", "--isolate", "m.tn", "-o", "out/m.tnx"],
            ("m.tnx",),
            isolated=True,
        ),
        Scenario(
            "compile isolated report",
            [tenon, "compile", "-q", "--isolate", "m.tn", "--report", "out/r.html", "-o", "out/m.tnx"],
            ("r.html", "m.tnx"),
            timed=True,
            isolated=True,
        ),
        Scenario(
            "compile dumps",
            [tenon, "compile", "-q", "scalars.tn", "--dump-after", "simplify", "--dump-dir", "out", "-o", "out/m.tnx"],
            ("00_simplify.tn", "m.tnx"),
        ),
        Scenario("asm", [tenon, "asm", "-q", "p.tna", "-o", "out/p.tnx"], ("p.tnx",)),
        Scenario("disasm", [tenon, "disasm", "-q", "m.tnx", "-o", "out/m.tna"], ("m.tna",)),
        Scenario("opt", [tenon, "opt", "-q", "m.tn", "-o", "out/m.tn"], ("m.tn.weights", "m.tn")),
        Scenario("run", [tenon, "run", "-q", "m.tnx", *inputs, "--output", "output_0=out/y.npy"], ("y.npy",)),
        Scenario("run npz", [tenon, "run", "-q", "m.tnx", "--inputs", "in.npz", "--input", "k=2", "--outputs", "out/y.npz"], ("y.npz",)),
        Scenario("run folder", [tenon, "run", "-q", "m.tnx", *inputs, "--outputs", "out"], ("output_0.npy",)),
        Scenario(
            "run untrusted",
            [tenon, "run", "-q", "--untrusted", "c.tnx", *inputs, "--deadline", "1h", "--output", "output_0=out/y.npy"],
            ("y.npy",),
        ),
        Scenario(
            "run interpret",
            [tenon, "run", "-q", "--mode", "interpret", "m.tn", *inputs, "--output", "output_0=out/y.npy"],
            ("y.npy",),
        ),
        Scenario("run print", [tenon, "run", "-q", "m.tnx", *inputs]),
        Scenario("verify", [tenon, "verify", "m.tnx"]),
        Scenario("dump", [tenon, "dump", "m.tnx"]),
        Scenario("inspect", [tenon, "inspect", "external.onnx"]),
        Scenario("report", [tenon, "report", "-q", "m.tnx", "-o", "out/r.html"], ("r.html",), timed=True),
        Scenario("trace", [tenon, "trace", "-q", "m.tnx", "--dim", "n=3", "-o", "out/t.json"], ("t.json",), timed=True),
        Scenario("host", [host, "m.tnx"], prints_failures=True),
    ]


class Bench:
    """A folder in which scenarios run."""

    def __init__(self, folder: Path, tenon: str, inject: str, host: str) -> None:
        self.folder, self.inject = folder, inject
        self.out, self.tmp = folder / "out", folder / "tmp"
        self.report = folder.with_name(folder.name + ".report")
        # With a bound for spinning threads, the command doesn't start itself anew.
        self.environment = {**os.environ, "GOMP_SPINCOUNT": "1000", "TMPDIR": str(self.tmp)}
        self.prepare(tenon)
        self.given = self.files()
        self.new: dict[tuple[str, str], bytes] = {}  # by scenario and output
        self.has_old = False
        self.scenarios = scenarios(tenon, host)

    def prepare(self, tenon: str) -> None:
        corpus = Path(__file__).resolve().parent.parent / "fuzz/corpus/onnx"
        for name in ("external.onnx", "external.bin"):
            shutil.copy(corpus / name, self.folder)
        (self.folder / "m.tn").write_text(PROGRAM)
        (self.folder / "scalars.tn").write_text(SCALARS)
        (self.folder / "p.tna").write_text(ASSEMBLY)
        self.out.mkdir()
        self.tmp.mkdir()
        inputs = ["--dim", "n=3", "--input", "x=random", "--input", "k=2"]
        for command in (
            ["compile", "-q", "m.tn", "-o", "m.tnx"],
            ["compile", "-q", "--keep-computes", "m.tn", "-o", "c.tnx"],
            ["run", "-q", "m.tnx", *inputs, "--output", "output_0=x.npy"],
        ):
            subprocess.run([tenon, *command], cwd=self.folder, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        with zipfile.ZipFile(self.folder / "in.npz", "w") as archive:
            archive.write(self.folder / "x.npy", "x.npy")

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() or path.is_symlink()
        }

    def reset(self, scenario: Scenario, has_old: bool) -> None:
        for folder in (self.out, self.tmp):
            shutil.rmtree(folder)
            folder.mkdir()
        self.has_old = has_old
        if has_old:
            for name in scenario.outputs:
                (self.out / name).write_bytes(OLD)

    def run(self, scenario: Scenario, *options: str, has_old: bool = True) -> Outcome:
        self.reset(scenario, has_old)
        command = [self.inject, "--report", str(self.report), *options, "--", *scenario.command]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True
        )
        if done.returncode == 77:
            print("skipped: this system does not permit tracing")
            sys.exit(77)
        outcome = Outcome(stdout=done.stdout, stderr=done.stderr.decode(errors="replace"))
        for line in self.report.read_text(errors="replace").splitlines():
            what, _, rest = line.partition(" ")
            if what in ("hit", "step"):
                (outcome.hits if what == "hit" else outcome.steps).append(rest)
            elif what == "exit":
                outcome.code = int(rest)
            elif what == "signal":
                outcome.signal = int(rest)
            else:
                outcome.hang = True
        return outcome

    # What is wrong with an outcome; "" if nothing is.
    def judge(self, scenario: Scenario, base: Outcome, outcome: Outcome, faults: list[Fault], no_tmpfile: bool) -> str:
        if outcome.hang:
            return "it hangs"
        if outcome.code is None and outcome.signal is None:
            return "it never ended"
        killed = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
        sent = {killed[f.how.removesuffix("-root")] for f in faults if f.how.removesuffix("-root") in killed}
        if outcome.signal is not None and outcome.signal not in sent:
            return f"it was ended by signal {outcome.signal}"
        if outcome.code not in (None, 0, USAGE, RUNTIME):
            return f"exit code {outcome.code}"
        if outcome.code not in (None, 0) and not re.search("^error: ", outcome.stderr, re.MULTILINE):
            return "it failed without an error"
        if outcome.code not in (None, 0) and all(f.harmless for f in faults):
            return "it failed"
        if outcome.code == 0 and not scenario.prints_failures and outcome.stdout != base.stdout:
            return f"it succeeded, but printed {outcome.stdout[:200]!r}"
        if outcome.stdout.endswith(b"failed\nfailed\n") and not any(f.lasting for f in faults):
            return "a host's second try failed, too"
        return self.judge_files(scenario, outcome, signal.SIGKILL in sent, no_tmpfile)

    def judge_files(self, scenario: Scenario, outcome: Outcome, was_killed: bool, no_tmpfile: bool) -> str:
        found = self.files()
        for path, content in self.given.items():
            if found.pop(path, None) != content:
                return f"{path} was changed"
        for name in scenario.outputs:
            content = found.pop(f"out/{name}", None)
            is_new = content is not None and self.is_complete(scenario, name, content)
            is_old = content == (OLD if self.has_old else None)
            if not is_new and not is_old:
                return f"{name} is neither old nor new: {content[:200] if content is not None else 'missing'!r}"
            if outcome.code == 0 and not is_new:
                return f"it succeeded, but {name} is old"
        removal_failed = any(hit.startswith("unlink ") for hit in outcome.hits)
        for path in list(found):
            if (was_killed or removal_failed) and self.may_remain(path, scenario, outcome, no_tmpfile):
                del found[path]
        return f"it left {', '.join(found)}" if found else ""

    def is_complete(self, scenario: Scenario, name: str, content: bytes) -> bool:
        if not scenario.timed or not name.endswith((".html", ".json")):
            return content == self.new[scenario.name, name]
        if name.endswith(".html"):
            return content.endswith(b"</html>\n")
        try:
            return bool(json.loads(content))
        except ValueError:
            return False

    # SIGKILL leaves the process no time to remove a temporary file that has a name, and removing may fail. Where files without names are
    # supported, it has one only between link and rename, when it is complete.
    @staticmethod
    def may_remain(path: str, scenario: Scenario, outcome: Outcome, no_tmpfile: bool) -> bool:
        names = "|".join(re.escape(name) for name in scenario.outputs)
        if not re.fullmatch(rf"out/\.({names})\.[0-9a-f]{{24}}\.tmp", path):
            return False
        return no_tmpfile or any(hit.startswith("rename ") for hit in outcome.hits)


@dataclasses.dataclass
class Trial:
    scenario: Scenario
    faults: list[tuple[Fault, int]]
    no_tmpfile: bool
    has_old: bool

    def options(self) -> list[str]:
        chosen = [option for fault, number in self.faults for option in ("--fault", fault.at(number))]
        return [*chosen, *(["--no-tmpfile"] if self.no_tmpfile else [])]

    def text(self) -> str:
        return f"{self.scenario.name}{'' if self.has_old else ' (no old output)'}: {' '.join(self.options())}"


class Session:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.bases: dict[tuple[str, bool], Outcome] = {}
        self.tried = self.reached = self.failed = self.succeeded = self.killed = self.problems = 0

    # The run without faults: its steps, and what its outputs are.
    def base(self, scenario: Scenario, no_tmpfile: bool = False) -> Outcome:
        key = (scenario.name, no_tmpfile)
        if key not in self.bases:
            options = ["--steps", *(["--no-tmpfile"] if no_tmpfile else [])]
            outcome = self.bench.run(scenario, *options)
            if outcome.code != 0 or not outcome.steps:
                raise RuntimeError(f"{scenario.name} fails without a fault: {outcome.code}, {outcome.stderr}")
            for name in scenario.outputs:
                self.bench.new[scenario.name, name] = (self.bench.out / name).read_bytes()
            self.bases[key] = outcome
        return self.bases[key]

    def calls(self, scenario: Scenario, fault: Fault, no_tmpfile: bool) -> list[str]:
        kinds = fault.kinds.split(",")
        return [step for step in self.base(scenario, no_tmpfile).steps if step.split(" ")[0] in kinds]

    # The call that a trial's fault is for: KIND CALL WHAT.
    def call_of(self, trial: Trial) -> str:
        fault, number = trial.faults[0]
        return self.calls(trial.scenario, fault, trial.no_tmpfile)[number]

    def attempt(self, trial: Trial) -> None:
        bench = self.bench
        base = self.base(trial.scenario, trial.no_tmpfile)
        outcome = bench.run(trial.scenario, *trial.options(), has_old=trial.has_old)
        self.tried += 1
        self.reached += bool(outcome.hits)
        self.killed += outcome.signal is not None
        self.failed += outcome.code not in (None, 0)
        self.succeeded += outcome.code == 0
        faults = [fault for fault, _ in trial.faults]
        problem = bench.judge(trial.scenario, base, outcome, faults, trial.no_tmpfile)
        if not problem:
            return
        self.problems += 1
        print(f"{trial.text()}\n  {problem}\n  at {'; '.join(outcome.hits) or 'no call'}")
        print("".join(f"  | {line}\n" for line in outcome.stderr.splitlines()[:12]), end="", flush=True)

    def summary(self) -> str:
        return (
            f"{self.tried} runs: {self.reached} reached their fault; {self.failed} ended with an error, "
            f"{self.killed} by a signal, {self.succeeded} succeeded; {self.problems} findings"
        )


def distinct(calls: list[str]) -> list[int]:
    """The places of calls, of those that are repeated only the first two and the last."""
    places: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        places.setdefault(call, []).append(place)
    return sorted({place for found in places.values() for place in (*found[:2], found[-1])})


def trials_of(session: Session, scenario: Scenario) -> list[Trial]:
    """Each fault at each call."""
    trials = []
    for no_tmpfile in (False, True) if scenario.outputs else (False,):
        for fault in [*FAULTS, *(KILLS if scenario.outputs else [])]:
            if no_tmpfile and fault not in KILLS and not set(fault.kinds.split(",")) & set(NAMED):
                continue
            if fault.how.endswith("-root") and not scenario.isolated:
                continue
            for number in distinct(session.calls(scenario, fault, no_tmpfile)):
                trials.append(Trial(scenario, [(fault, number)], no_tmpfile, has_old=number % 2 == 0))
        for fault, removal in REMOVALS if scenario.outputs else []:
            for number in distinct(session.calls(scenario, fault, no_tmpfile)):
                faults = [(fault, number), (removal, 0)]
                trials.append(Trial(scenario, faults, no_tmpfile, has_old=number % 2 == 0))
    return trials


def choice_of(session: Session, scenarios: list[Scenario], count: int, seed: int) -> list[Trial]:
    """As many trials of each scenario, half of them at calls that name its outputs."""
    chance = random.Random(seed)
    chosen: list[Trial] = []
    for scenario in scenarios:
        trials = trials_of(session, scenario)
        near = [trial for trial in trials if "/out/" in session.call_of(trial) or " out/" in session.call_of(trial)]
        share = count // len(scenarios)
        chosen += chance.sample(near, min(share // 2, len(near)))
        chosen += chance.sample(trials, min(share - share // 2, len(trials)))
    return chosen


def pairs(session: Session, scenarios: list[Scenario], seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    end = time.monotonic() + seconds if seconds else float("inf")
    while time.monotonic() < end:
        scenario = chance.choice(scenarios)
        trials = trials_of(session, scenario)
        first, second = chance.sample(trials, 2)
        # A kill ends the run, so that a second fault after it would never happen.
        if first.faults[0][0] in KILLS:
            continue
        session.attempt(dataclasses.replace(first, faults=first.faults + second.faults))


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("tenon", "inject", "host"):
        parser.add_argument(name, type=os.path.realpath)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--pairs", type=float)
    parser.add_argument("--runs", type=int, default=150)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        session = Session(Bench(work, options.tenon, options.inject, options.host))
        chosen = [scenario for scenario in session.bench.scenarios if options.only in scenario.name]
        if options.pairs is not None:
            pairs(session, chosen, options.pairs, options.seed)
        elif options.all:
            for scenario in chosen:
                trials = trials_of(session, scenario)
                start, problems = time.monotonic(), session.problems
                for trial in trials:
                    session.attempt(trial)
                took = time.monotonic() - start
                found = session.problems - problems
                print(f"{scenario.name}: {len(trials)} runs, {found} findings, {took:.0f} s", flush=True)
        else:
            for trial in choice_of(session, chosen, options.runs, options.seed):
                session.attempt(trial)
        print(session.summary())
    # Where threads take turns, a fault may miss its call; if most do, the test tests nothing.
    return 1 if session.problems or 2 * session.reached < session.tried else 0


if __name__ == "__main__":
    sys.exit(main())
