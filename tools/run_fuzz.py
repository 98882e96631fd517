#!/usr/bin/env python3
# Runs the libFuzzer programs of the fuzz build: each for a few seconds, or all until nothing new is found.
# SPDX-License-Identifier: Apache-2.0
"""usage: run_fuzz.py              every target for FUZZ_SECONDS (60), from the committed seeds on
       run_fuzz.py --long [NAME..]  until coverage stops growing; see docs/fuzzing.md
       run_fuzz.py --compare [NAME..]  edges after FUZZ_EXECUTIONS with and without structural changes

Inputs that broke a target go to build/fuzz-crashes/NAME and are printed, so that a failure can be repeated from the
output alone. FUZZ_SEED (1 unless given) is where chance begins, so that the same commit is tried the same way as far as
time allows."""

import base64
import copy
import datetime
import json
import os
import re
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

    def __init__(self, program, folders, options, environment=None):
        crashes = CRASHES / program.name
        crashes.mkdir(parents=True, exist_ok=True)
        words = SEEDS / "words.dict"
        command = [str(program), f"-artifact_prefix={crashes}/", "-timeout=20", "-rss_limit_mb=2048",
                   "-malloc_limit_mb=1024", "-print_final_stats=1", f"-max_len={MOST_INPUT}", "-len_control=0", *options]
        if words.exists() and program.name in ("fuzz_text", "fuzz_mlir"):
            command.append(f"-dict={words}")
        env = dict(os.environ, **(environment or {}))
        env.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1:intercept_tls_get_addr=0")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        with tempfile.TemporaryFile() as sink:
            child = subprocess.Popen(command + [str(f) for f in folders], env=env, stdout=sink, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(child.pid, 0)
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

    FACTS = {"executions": 0, "seconds": 0.0, "edges": 0, "seed_edges": 0, "last_new": 0.0, "memory": 0, "findings": [],
             "slices": 0, "merged": False}

    def __init__(self, program, saved):
        self.program = program
        self.facts = {**copy.deepcopy(self.FACTS), **saved}  # a list of its own

    @property
    def corpus(self):
        return CORPUS / self.program.name

    def quiet(self):
        return self.facts["seconds"] - self.facts["last_new"]

    def finished(self):
        return (len(self.facts["findings"]) >= MOST_FINDINGS
                or (self.quiet() >= setting("FUZZ_QUIET_SECONDS", 1800)
                    and self.facts["executions"] >= setting("FUZZ_EXECUTIONS", 10 ** 7)))

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
        """Of all seeds those that add coverage: one pass over them, once."""
        self.corpus.mkdir(parents=True, exist_ok=True)
        folders = [f for f in (*committed(self.program), SEEDS / self.program.name) if f.is_dir()]
        before = broken_inputs(self.program)
        run = Run(self.program, [self.corpus, *folders], ["-merge=1"])
        self.facts["seconds"] += run.seconds
        self.facts["merged"] = run.ok
        for path in sorted(broken_inputs(self.program) - before):  # a merge goes on after them
            print(f"FAIL {self.program.name}: a seed breaks it: {path.relative_to(ROOT)}")
            self.facts["findings"].append({"what": "a seed breaks it", "inputs": [str(path.relative_to(ROOT))]})

    def step(self, seconds):
        if not self.facts["merged"]:
            self.choose_seeds()
        self.facts["slices"] += 1
        seed = setting("FUZZ_SEED", 1) + self.facts["slices"]
        self.take(Run(self.program, [self.corpus], [f"-max_total_time={seconds}", f"-seed={seed}"]))


def read_state():
    """Facts by target, and the day on which their corpus began."""
    saved = json.loads(STATE.read_text()) if STATE.exists() else {}
    began = saved.pop("began", str(datetime.date.today()))
    return saved, began


def write_state(targets, began):
    CORPUS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"began": began, **{t.program.name: t.facts for t in targets}}, indent=1)
    part = STATE.with_suffix(".part")
    part.write_text(text)
    part.replace(STATE)


def memory_bound(name):
    text = (ROOT / "tests/fuzz" / (name + ".c")).read_text()
    base, per_byte = (re.search(rf"\.{field} = (\d+)", text).group(1) for field in ("memory_base", "memory_per_byte"))
    return f"{base} MiB + {per_byte} n"


def runs_in(page, began):
    """The rows of earlier runs in the results: each began with empty folders on a day of its own."""
    rows = re.findall(r"^\| (\d{4}-\d\d-\d\d) \| ([\d,]+) \| ([\d.]+) \| (\d+) \|$", page, re.M)
    return [(day, int(executions.replace(",", "")), float(hours), int(findings))
            for day, executions, hours, findings in rows if day != began]


def run_rows(runs):
    rows = ["| began | executions | processor hours | findings |", "| --- | --- | --- | --- |"]
    rows += [f"| {day} | {executions:,} | {hours:.1f} | {findings} |" for day, executions, hours, findings in runs]
    executions, hours, findings = (sum(run[i] for run in runs) for i in (1, 2, 3))
    return [*rows, f"| in all | {executions:,} | {hours:.1f} | {findings} |"]


def write_page(targets, began):
    """The tables of docs/fuzzing.md, between its two marks."""
    rows = ["| target | executions | processor minutes | edges | inputs kept | findings | memory bound | largest share |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for target in targets:
        facts = target.facts
        kept = sum(1 for _ in target.corpus.glob("*"))
        rows.append(f"| `{target.program.name}` | {facts['executions']:,} | {facts['seconds'] / 60:.0f} | {facts['edges']:,} | "
                    f"{kept:,} | {len(facts['findings'])} | {memory_bound(target.program.name)} | {facts['memory']} % |")
    total = sum(t.facts["executions"] for t in targets)
    hours = sum(t.facts["seconds"] for t in targets) / 3600
    findings = sum(len(t.facts["findings"]) for t in targets)
    finished = sum(t.finished() for t in targets)
    begin, end = "<!-- results -->\n", "<!-- end of results -->\n"
    text = PAGE.read_text()
    head, rest = text.split(begin)
    old, tail = rest.split(end)
    rows += ["", f"Written on {datetime.date.today()} by `make fuzz-long`: {finished} of {len(targets)} targets met the rule above.",
             "", "All runs, each from its own seeds on:", "",
             *run_rows([*runs_in(old, began), (began, total, hours, findings)])]
    PAGE.write_text(head + begin + "\n" + "\n".join(rows) + "\n\n" + end + tail)


def run_long(names):
    saved, began = read_state()
    if not SEEDS.is_dir():
        fuzz_seeds.make(SEEDS)
    targets = [Target(p, saved.get(p.name, {})) for p in programs()]
    chosen = [t for t in targets if not names or t.program.name in names or t.program.name[5:] in names]
    limit = setting("FUZZ_CORE_SECONDS", 8 * 3600)
    known = sum(len(t.facts["findings"]) for t in targets)
    while True:
        spent = sum(t.facts["seconds"] for t in targets)
        open_targets = [t for t in chosen if not t.finished()]
        if not open_targets or spent >= limit:
            break
        # The target with the least time goes next. So a target that finishes early leaves its share to the others.
        target = min(open_targets, key=lambda t: t.facts["seconds"])
        slice_seconds = int(max(5, min(setting("FUZZ_SLICE_SECONDS", 300), limit - spent)))
        target.step(slice_seconds)
        write_state(targets, began)
        facts = target.facts
        print(f"{target.program.name}: {facts['executions']:,} executions, {facts['edges']:,} edges, "
              f"{target.quiet():.0f} s without a new one, {len(facts['findings'])} findings", flush=True)
    write_page(targets, began)
    found = sum(len(t.facts["findings"]) for t in targets) - known
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
