#!/usr/bin/env python3
# Models of other frameworks, exported by their converters: tools/test_frontends.py BUILD [--write-docs] [--rest] [WORD]...
# SPDX-License-Identifier: Apache-2.0
"""Runs tests/frontends/test_*.py and python/tests/frameworks/test_*.py with the Python of BUILD/frontends-venv.

A row of tests/frontends is one model of one converter, named CONVERTER/MODEL. WORD is the name of a file, of a row, or
picks rows that have it in their name; "frameworks" picks python/tests/frameworks. tests/frontends/exceptions.txt lists
rows that cannot pass, each with who stops it and why; such a row counts as neither passed nor failed, and fails when it
does not happen as listed. The last line counts: N passed, N failed.

Results are kept in BUILD/frontends. With --write-docs, docs/frontends.md is written from them; every row must have been
run.

PYTHON in the environment is used instead of BUILD/frontends-venv/bin/python3.
"""
import argparse
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading

import frontends_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests/frontends"
FRAMEWORK_TESTS = ROOT / "python/tests/frameworks"
LIMIT = 300  # seconds for one row
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0",
         "KERAS_BACKEND": "tensorflow",
         "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1",
         "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
KINDS = ("converter", "onnxruntime", "cameo", "training")


def read_exceptions():
    """{row: (kind, part of the reason, sentence)} of lines `ROW KIND "PART": SENTENCE`"""
    found = {}
    for number, line in enumerate((ROWS / "exceptions.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r'(\S+) (\w+) "(.*?)": (.+)', line)
        if not match or match[2] not in KINDS or match[1] in found:
            sys.exit(f"tests/frontends/exceptions.txt:{number}: expected ROW {'|'.join(KINDS)} \"PART\": SENTENCE, "
                     "each row once")
        found[match[1]] = match.groups()[1:]
    return found


def lines_of(process):
    """Lines of a process as they come, None where nothing came for LIMIT seconds."""
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in process.stdout] + [lines.put("")], daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=LIMIT)
        except queue.Empty:
            process.kill()
            yield None
            return
        if not line:
            return
        yield line


class Worker:
    """A process over one file of rows. rows and versions are what it says of itself."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.errors = []
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self.reader.start()
        self.lines = lines_of(self.process)
        about = json.loads(next(self.lines, None) or "{}")
        self.rows, self.versions = about.get("rows"), about.get("versions", {})

    def run(self, names):
        """What it says of these rows."""
        self.process.stdin.write("\n".join(names))
        self.process.stdin.close()
        for line in self.lines:
            if line is None:
                self.errors.append(f"nothing came for {LIMIT} seconds")
                return
            yield json.loads(line)

    def end(self):
        """Why it ended."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait()
        self.reader.join(10)
        return f"the process ended with {code}: {''.join(self.errors)[-1500:]}"


def run_rows(worker, command, names):
    """Results of rows; one that brings its process down is a failure, and the next process goes on behind it."""
    left = list(names)
    while left:
        begun = None
        for said in worker.run(left):
            begun = said.get("begin")
            if not begun:
                left.remove(said["row"])
                yield said
        why = worker.end()
        if not left:
            return
        row = begun or left[0]
        left.remove(row)
        yield {"row": row, "kind": "test", "reason": why, "seconds": 0}
        worker = Worker(command)


class Kept:
    """The last results of the rows of one file, in BUILD/frontends; several runs may add to them at once."""

    def __init__(self, folder, name, rows):
        self.path = folder / f"{name}.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.results = {result["row"]: result for result in map(json.loads, lines) if result["row"] in rows}

    def keep(self, result):
        self.results[result["row"]] = result
        self.path.parent.mkdir(exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as to:
            to.write(json.dumps(result) + "\n")


def judge(result, exceptions):
    """"pass", "listed" or "FAIL", and what to say."""
    listed = exceptions.get(result["row"])
    if result["kind"] == "passed":
        if listed:
            return "FAIL", "is listed in exceptions.txt, but passes: remove the line"
        return "pass", ("trained, " if result.get("trained") else "") + f"{result['seconds']} s"
    said = f"{result['kind']}: {result['reason']}"
    if listed and listed[0] == result["kind"] and listed[1] in result["reason"]:
        return "listed", said
    return "FAIL", said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--write-docs", action="store_true",
                        help="write docs/frontends.md from the last results of all rows")
    parser.add_argument("--rest", action="store_true", help="run only rows that have not been run since `make clean`")
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    build = pathlib.Path(options.build).resolve()
    python = os.environ.get("PYTHON", str(build / "frontends-venv/bin/python3"))
    os.environ.update(QUIET, PYTHONPATH=f"{build}/python{os.pathsep}{ROWS}")
    exceptions, counts, results, versions, missing = read_exceptions(), {"pass": 0, "listed": 0, "FAIL": 0}, {}, {}, []
    unknown = set(exceptions)
    files = sorted(ROWS.glob("test_*.py"))
    named = [file for file in files if file.stem in options.words]
    words = [word for word in options.words if word not in {file.stem for file in files}]
    for file in files if options.write_docs or not named else named:
        worker = Worker([python, file])
        if not worker.rows:
            print(f"FAIL {file.stem}: {worker.end()}")
            counts["FAIL"] += 1
            missing.append(file.stem)
            continue
        versions.update(worker.versions)
        unknown -= set(worker.rows)
        kept = Kept(build / "frontends", file.stem, worker.rows)
        parts = [word for word in words if word not in worker.rows]
        rows = [row for row in worker.rows if (not words or row in words or any(part in row for part in parts))
                and not (options.rest and row in kept.results) and (not named or file in named)]
        if rows:
            print(file.stem, flush=True)
        for result in run_rows(worker, [python, file], rows):
            verdict, said = judge(result, exceptions)
            counts[verdict] += 1
            kept.keep(result)
            print(f"  {verdict} {result['row']} ({said})", flush=True)
        worker.end()
        results.update({row: kept.results.get(row) for row in worker.rows})
    if not missing and not named and unknown:
        print(f"FAIL exceptions.txt lists rows that do not exist: {', '.join(sorted(unknown))}")
        counts["FAIL"] += len(unknown)
    frameworks = [0, 0]
    if FRAMEWORK_TESTS.is_dir() and (not options.words or "frameworks" in options.words):
        frameworks = run_framework_tests(python)
    if options.write_docs:
        judged = [(result, judge(result, exceptions)[0]) for result in results.values() if result]
        missing += [row for row, result in results.items() if not result]
        missing += [result["row"] for result, verdict in judged if verdict == "FAIL"]
        if missing:
            sys.exit(f"docs/frontends.md is not written, these did not run or failed: {', '.join(missing)}")
        frontends_page.write(ROOT / "docs/frontends.md", judged, exceptions, versions)
    if counts["listed"]:
        print(f"{counts['listed']} exceptions, listed in tests/frontends/exceptions.txt")
    failed = counts["FAIL"] + frameworks[1]
    print(f"{counts['pass'] + frameworks[0]} passed, {failed} failed")
    return 1 if failed else 0


def run_framework_tests(python):
    """Counts of python/tests/frameworks, each file in a process of its own: frameworks do not like each other."""
    counts = [0, 0]
    for file in sorted(FRAMEWORK_TESTS.glob("test_*.py")):
        ran = subprocess.run([python, file], capture_output=True, text=True, check=False)
        total = re.search(r"^Ran (\d+) tests? in", ran.stderr, re.MULTILINE)
        others = {name: int(n) for name, n in re.findall(r"(failures|errors|skipped|unexpected successes)=(\d+)",
                                                         ran.stderr)}
        failed = sum(n for name, n in others.items() if name != "skipped") if total else 1
        if ran.returncode and not failed:
            failed = 1
        passed = int(total[1]) - failed - others.get("skipped", 0) if total else 0
        print(f"frameworks/{file.stem}: {passed} passed, {failed} failed", flush=True)
        if failed:
            print(ran.stderr[-3000:])
        counts[0] += max(passed, 0)
        counts[1] += failed
    return counts


if __name__ == "__main__":
    sys.exit(main())
