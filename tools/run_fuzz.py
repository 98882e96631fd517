#!/usr/bin/env python3
# Runs the libFuzzer programs of the fuzz build: each for a few seconds, or all until nothing new is found.
# SPDX-License-Identifier: Apache-2.0
"""usage: run_fuzz.py              every target for FUZZ_SECONDS (60), from the committed seeds on
       run_fuzz.py --long [NAME..]  until coverage stops growing; see docs/fuzzing.md
       run_fuzz.py --compare [NAME..]  edges after FUZZ_EXECUTIONS with and without structural changes

Inputs that broke a target go to build/fuzz-crashes/NAME and are printed, so that a failure can be repeated from the
output alone. FUZZ_SEED (1 unless given) is where chance begins, so that the same commit is tried the same way as far as
time allows. With --long, FUZZ_JOBS (1 unless given) slices run at a time, and an interrupt (Ctrl-C, SIGTERM) ends the run
early: the page and the state are written as at any end."""

import base64
import concurrent.futures
import contextlib
import copy
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import fuzz_seeds

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/fuzz/fuzzers"
CORPUS = ROOT / "build/fuzz-corpus"
CRASHES = ROOT / "build/fuzz-crashes"
SEEDS = ROOT / "build/fuzz-seeds"
STATE = CORPUS / "state.json"
PAGE = ROOT / "docs/fuzzing.md"
MOST_PRINTED = 16 * 1024
MOST_INPUT = 64 * 1024
MOST_FINDINGS = 20  # of one target; then it is left alone until they are mended
FRAMES = 12
# Freed memory is kept apart for a while, so that its use is noticed. An input frees what it allocated, so a little of
# it is enough; 256 MiB, as usual, cost a page fault for every page that is allocated.
SANITIZER = "allocator_may_return_null=1:intercept_tls_get_addr=0:quarantine_size_mb=16"


def setting(name, usual):
    return int(os.environ.get(name) or usual)


def programs(names=()):
    found = sorted(p for p in PROGRAMS.glob("fuzz_*") if os.access(p, os.X_OK)
                   and (ROOT / "tests/fuzz" / (p.name + ".c")).exists())
    return [p for p in found if not names or p.name in names or p.name[5:] in names]


def report_head(output):
    """The first sentence of the sanitizer and the frames under it."""
    lines = output.splitlines()
    starts = [i for i, line in enumerate(lines) if re.search(r"ERROR: |runtime error: |^ALARM: ", line)]
    if not starts:
        return []
    head, frames = [lines[starts[0]]], 0
    for line in lines[starts[0] + 1:]:
        if re.match(r"\s*#\d+ ", line):
            frames += 1
            head.append(line)
            if frames == FRAMES:
                break
        elif frames:
            break
    return head


def print_input(path):
    data = path.read_bytes()
    if len(data) > MOST_PRINTED:
        print(f"     {len(data)} bytes, too many to print")
        return
    print(f"     {len(data)} bytes; the lines below through base64 -d give the file back")
    text = base64.b64encode(data).decode()
    for at in range(0, len(text), 100):
        print(text[at:at + 100])


class Run:
    """One run of a fuzz program: how it ended, what it counted."""

    running = set()  # children
    stopping = False

    @classmethod
    def stop_all(cls):
        """libFuzzer ends in order, with its counts, on SIGUSR1."""
        cls.stopping = True
        for child in list(cls.running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGUSR1)

    def __init__(self, program, folders, options, environment=None):
        crashes = CRASHES / program.name
        crashes.mkdir(parents=True, exist_ok=True)
        words = SEEDS / "words.dict"
        command = [str(program), f"-artifact_prefix={crashes}/", "-timeout=20", "-rss_limit_mb=2048",
                   "-malloc_limit_mb=1024", "-print_final_stats=1", f"-max_len={MOST_INPUT}", "-len_control=0", *options]
        if words.exists() and program.name in ("fuzz_text", "fuzz_mlir"):
            command.append(f"-dict={words}")
        if program.name[5:] in fuzz_seeds.MODEL_TARGETS:
            # Which edges are rare is counted for each of an input's thousands of edges: a third of the time.
            command.append("-entropic=0")
        env = dict(os.environ, **(environment or {}))
        env.setdefault("ASAN_OPTIONS", SANITIZER)
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        with tempfile.TemporaryFile() as sink:
            # A session of its own, because Ctrl-C in a terminal must not look like a finding.
            child = subprocess.Popen(command + [str(f) for f in folders], env=env, stdout=sink, stderr=subprocess.STDOUT,
                                     start_new_session=True)
            self.running.add(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
            self.running.discard(child.pid)
            child.returncode = os.waitstatus_to_exitcode(status)
            sink.seek(0)
            self.output = sink.read().decode(errors="replace")
        self.program = program
        self.ok = child.returncode == 0
        self.code = child.returncode
        self.seconds = usage.ru_utime + usage.ru_stime  # of the processor, whatever else the machine does
        self.executions = self.last(r"stat::number_of_executed_units:\s*(\d+)")
        self.edges = self.last(r"\bcov: (\d+)")
        self.memory = self.last(r"stat::memory_share: (\d+)")
        self.inputs = [Path(p) for p in re.findall(r"Test unit written to (\S+)", self.output)]

    def last(self, pattern):
        found = re.findall(pattern, self.output)
        return int(found[-1]) if found else 0

    def tell(self):
        print(f"FAIL {self.program.name}: exit {self.code}")
        for line in report_head(self.output) or self.output.splitlines()[-20:]:
            print(f"     {line.strip()}")
        for found in self.inputs:
            print(f"     reproduce: {self.program.relative_to(ROOT)} {found.relative_to(ROOT)}")
            print_input(found)


def broken_inputs(program):
    return set((CRASHES / program.name).glob("*"))


def committed(program):
    folder = ROOT / "tests/fuzz/corpus" / program.name
    return [folder] if folder.is_dir() else []


# ---- a short run of each ----


def run_short():
    seconds, seed = setting("FUZZ_SECONDS", 60), setting("FUZZ_SEED", 1)
    passed = failed = 0
    for program in programs():
        corpus = ROOT / "build/fuzz/corpus" / program.name
        corpus.mkdir(parents=True, exist_ok=True)
        run = Run(program, [corpus, *committed(program)], [f"-max_total_time={seconds}", f"-seed={seed}", "-verbosity=0"])
        passed, failed = passed + run.ok, failed + (not run.ok)
        if run.ok:
            print(f"ok   {program.name}: {run.executions} runs in {seconds} s")
        else:
            run.tell()
    if not passed + failed:
        print("no fuzz targets here")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


# ---- until nothing new is found ----


class Target:
    """What is known of one target, kept between runs in build/fuzz-corpus/state.json."""

    FACTS = {"executions": 0, "seconds": 0.0, "edges": 0, "last_new": 0.0, "memory": 0, "findings": [], "slices": 0,
             "merged": False}

    def __init__(self, program, saved, before):
        self.program = program
        self.before = before  # executions of earlier runs
        self.facts = {**copy.deepcopy(self.FACTS), **saved}  # a list of its own
        self.slices = 0  # under way
        self.planned = 0  # seconds of these

    @property
    def corpus(self):
        return CORPUS / self.program.name

    def executions(self):
        return self.before + self.facts["executions"]

    def seconds(self):
        return self.facts["seconds"] + self.planned

    def quiet(self):
        return self.facts["seconds"] - self.facts["last_new"]

    def finished(self):
        return (len(self.facts["findings"]) >= MOST_FINDINGS
                or (self.quiet() >= setting("FUZZ_QUIET_SECONDS", 1800)
                    and self.executions() >= setting("FUZZ_EXECUTIONS", 10 ** 7)))

    def can_begin(self):
        """A second slice at the same time shares the corpus; the first one chooses the seeds for both."""
        return not self.finished() and (self.facts["merged"] or not self.slices)

    def take(self, run):
        facts = self.facts
        facts["seconds"] += run.seconds
        facts["executions"] += run.executions
        facts["memory"] = max(facts["memory"], run.memory)
        if run.edges > facts["edges"]:
            facts["edges"] = run.edges
            facts["last_new"] = facts["seconds"]
        if not run.ok:
            head = report_head(run.output)
            facts["findings"].append({"what": head[0].strip() if head else f"exit {run.code}",
                                      "inputs": [str(p.relative_to(ROOT)) for p in run.inputs]})
            run.tell()

    def choose_seeds(self):
        """Of all seeds those that add coverage: one pass over them, once. The run, and the seeds that break the target."""
        self.corpus.mkdir(parents=True, exist_ok=True)
        folders = [f for f in (*committed(self.program), SEEDS / self.program.name) if f.is_dir()]
        before = broken_inputs(self.program)
        run = Run(self.program, [self.corpus, *folders], ["-merge=1"])
        return run, sorted(broken_inputs(self.program) - before)  # a merge goes on after them

    def take_seeds(self, run, broken):
        self.facts["seconds"] += run.seconds
        self.facts["merged"] = run.ok
        for path in broken:
            print(f"FAIL {self.program.name}: a seed breaks it: {path.relative_to(ROOT)}")
            self.facts["findings"].append({"what": "a seed breaks it", "inputs": [str(path.relative_to(ROOT))]})

    def begin(self, pool, seconds):
        """A slice on a thread of the pool; finish() takes what came of it, on the thread that keeps the state."""
        self.facts["slices"] += 1
        self.slices += 1
        self.planned += seconds
        seed = setting("FUZZ_SEED", 1) + self.facts["slices"]
        return pool.submit(self.slice, seconds, seed)

    def slice(self, seconds, seed):
        seeds = None if self.facts["merged"] else self.choose_seeds()
        time = 1 if Run.stopping else seconds
        return seconds, seeds, Run(self.program, [self.corpus], [f"-max_total_time={time}", f"-seed={seed}"])

    def finish(self, result):
        planned, seeds, run = result
        self.slices -= 1
        self.planned -= planned
        if seeds:
            self.take_seeds(*seeds)
        self.take(run)
        facts = self.facts
        print(f"{self.program.name}: {facts['executions']:,} executions, {facts['edges']:,} edges, "
              f"{self.quiet():.0f} s without a new one, {len(facts['findings'])} findings", flush=True)


class State:
    """All targets, when their corpora began, and what earlier runs on the page have used."""

    def __init__(self):
        saved = json.loads(STATE.read_text()) if STATE.exists() else {}
        page = PAGE.read_text()
        self.began = saved.pop("began", f"{datetime.datetime.now():%Y-%m-%d %H:%M}")
        self.before = saved.pop("before", None) or executions_in(page)
        self.seconds_before = sum(hours for _, _, hours, _ in runs_in(page, self.began)) * 3600
        self.targets = [Target(p, saved.get(p.name, {}), self.before.get(p.name, 0)) for p in programs()]

    def seconds(self):
        """Of the processor, with the slices under way."""
        return self.seconds_before + sum(t.seconds() for t in self.targets)

    def findings(self):
        return sum(len(t.facts["findings"]) for t in self.targets)

    def write(self):
        CORPUS.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"began": self.began, "before": self.before, **{t.program.name: t.facts for t in self.targets}},
                          indent=1)
        part = STATE.with_suffix(".part")
        part.write_text(text)
        part.replace(STATE)


def memory_bound(name):
    text = (ROOT / "tests/fuzz" / (name + ".c")).read_text()
    base, per_byte = (re.search(rf"\.{field} = (\d+)", text).group(1) for field in ("memory_base", "memory_per_byte"))
    return f"{base} MiB + {per_byte} n"


def number(text):
    return int(text.replace(",", ""))


def executions_in(page):
    """Of all runs, by target."""
    rows = re.findall(r"^\| `(fuzz_\w+)` \| [\d,]+ \| ([\d,]+) \|", page, re.M)
    return {name: number(executions) for name, executions in rows}


def runs_in(page, began):
    """The rows of earlier runs in the results: each began with empty folders at a time of its own."""
    rows = re.findall(r"^\| (\d{4}-\d\d-\d\d(?: \d\d:\d\d)?) \| ([\d,]+) \| ([\d.]+) \| (\d+) \|$", page, re.M)
    return [(when, number(executions), float(hours), int(findings))
            for when, executions, hours, findings in rows if when != began]


def run_rows(runs):
    rows = ["| began | executions | processor hours | findings |", "| --- | --- | --- | --- |"]
    rows += [f"| {when} | {executions:,} | {hours:.2f} | {findings} |" for when, executions, hours, findings in runs]
    executions, hours, findings = (sum(run[i] for run in runs) for i in (1, 2, 3))
    return [*rows, f"| in all | {executions:,} | {hours:.2f} | {findings} |"]


def write_page(state):
    """The tables of docs/fuzzing.md, between its two marks."""
    targets = state.targets
    rows = ["| target | executions | in all runs | processor minutes | edges | inputs kept | findings | memory bound "
            "| largest share |", "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for target in targets:
        facts = target.facts
        kept = sum(1 for _ in target.corpus.glob("*"))
        rows.append(f"| `{target.program.name}` | {facts['executions']:,} | {target.executions():,} "
                    f"| {facts['seconds'] / 60:.0f} | {facts['edges']:,} | {kept:,} | {len(facts['findings'])} "
                    f"| {memory_bound(target.program.name)} | {facts['memory']} % |")
    total = sum(t.facts["executions"] for t in targets)
    hours = sum(t.facts["seconds"] for t in targets) / 3600
    finished = sum(t.finished() for t in targets)
    begin, end = "<!-- results -->\n", "<!-- end of results -->\n"
    text = PAGE.read_text()
    head, rest = text.split(begin)
    old, tail = rest.split(end)
    rows += ["", f"Written on {datetime.date.today()} by `make fuzz-long`: {finished} of {len(targets)} targets met the rule above.",
             "", "All runs, each from its own seeds on:", "",
             *run_rows([*runs_in(old, state.began), (state.began, total, hours, state.findings())])]
    PAGE.write_text(head + begin + "\n" + "\n".join(rows) + "\n\n" + end + tail)


def next_target(chosen):
    """The one with the least slices under way, then with the least time. So a target that finishes early leaves its share
    to the others."""
    ready = [t for t in chosen if t.can_begin()]
    return min(ready, key=lambda t: (t.slices, t.seconds()), default=None)


def run_slices(state, chosen):
    limit, length = setting("FUZZ_CORE_SECONDS", 8 * 3600), setting("FUZZ_SLICE_SECONDS", 300)
    under_way, jobs = {}, setting("FUZZ_JOBS", 1)
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, lambda *_: Run.stop_all())
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while True:
            while len(under_way) < jobs and not Run.stopping and state.seconds() < limit:
                target = next_target(chosen)
                if not target:
                    break
                slice_seconds = int(max(5, min(length, limit - state.seconds())))
                under_way[target.begin(pool, slice_seconds)] = target
            if not under_way:
                break
            done, _ = concurrent.futures.wait(under_way, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                under_way.pop(future).finish(future.result())
            state.write()


def run_long(names):
    if not SEEDS.is_dir():
        fuzz_seeds.make(SEEDS)
    state = State()
    chosen = [t for t in state.targets if not names or t.program.name in names or t.program.name[5:] in names]
    known = state.findings()
    if state.seconds() >= setting("FUZZ_CORE_SECONDS", 8 * 3600):
        print(f"all runs together have used {state.seconds():.0f} s of processor time: nothing is run; a larger "
              "FUZZ_CORE_SECONDS allows more")
        return 0
    run_slices(state, chosen)
    write_page(state)
    found = state.findings() - known
    print(f"{len(chosen)} targets, {found} new findings; {PAGE.relative_to(ROOT)} has the counts")
    return 1 if found else 0


# ---- what structural changes are good for ----


def run_compare(names):
    """The same count of executions from the same committed seeds, with and without structural changes."""
    executions, seed = setting("FUZZ_EXECUTIONS", 20000), setting("FUZZ_SEED", 1)
    print(f"edges after {executions:,} executions, seed {seed}")
    for program in programs(names):
        edges = []
        for environment in ({"CAMEO_FUZZ_BYTES": "1"}, {}):
            with tempfile.TemporaryDirectory() as corpus:
                run = Run(program, [corpus, *committed(program)], [f"-runs={executions}", f"-seed={seed}"], environment)
                edges.append(f"{run.edges}" if run.ok else f"{run.edges} (failed)")
        print(f"| `{program.name}` | {edges[0]} | {edges[1]} |", flush=True)
    return 0


def main(arguments):
    if arguments[:1] == ["--long"]:
        return run_long(arguments[1:])
    if arguments[:1] == ["--compare"]:
        return run_compare(arguments[1:])
    return run_short()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
