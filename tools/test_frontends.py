#!/usr/bin/env python3
# Models of other frameworks, exported by their converters: tools/test_frontends.py BUILD [--write-docs] [WORD]...
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
         "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "2"}
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


def run_rows(command, names):
    """Results of rows; one that brings its process down is a failure, and the next process goes on behind it."""
    left = list(names)
    while left:
        process = subprocess.Popen([*command, *left], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        errors = []
        reader = threading.Thread(target=lambda p=process, e=errors: e.extend(p.stderr), daemon=True)
        reader.start()
        begun, silent = None, False
        for line in lines_of(process):
            if line is None:
                silent = True
                break
            said = json.loads(line)
            if "begin" in said:
                begun = said["begin"]
                continue
            begun = None
            left.remove(said["row"])
            yield said
        code = process.wait()
        reader.join(10)
        if not left:
            return
        row = begun or left[0]
        why = f"nothing came for {LIMIT} seconds" if silent else f"the process ended with {code}"
        left.remove(row)
        yield {"row": row, "kind": "test", "reason": f"{why}: {''.join(errors)[-1500:]}", "seconds": 0}


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
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    python = os.environ.get("PYTHON", str(build / "frontends-venv/bin/python3"))
    os.environ.update(QUIET, PYTHONPATH=f"{build}/python{os.pathsep}{ROWS}")
    exceptions, counts, results, versions, missing = read_exceptions(), {"pass": 0, "listed": 0, "FAIL": 0}, {}, {}, []
    unknown = set(exceptions)
    files = sorted(ROWS.glob("test_*.py"))
    named = [file for file in files if file.stem in options.words]
    words = [word for word in options.words if word not in {file.stem for file in files}]
    for file in files if options.write_docs or not named else named:
        asked = subprocess.run([python, file], capture_output=True, text=True, check=False)
        if asked.returncode:
            print(f"FAIL {file.stem}: {asked.stderr.strip()[-1000:]}")
            counts["FAIL"] += 1
            missing.append(file.stem)
            continue
        about = json.loads(asked.stdout)
        versions.update(about["versions"])
        unknown -= set(about["rows"])
        parts = [word for word in words if word not in about["rows"]]
        rows = [row for row in about["rows"] if not words or row in words or any(part in row for part in parts)]
        kept = Kept(build / "frontends", file.stem, about["rows"])
        if rows:
            print(file.stem, flush=True)
        for result in run_rows([python, file], rows):
            verdict, said = judge(result, exceptions)
            counts[verdict] += 1
            kept.keep(result)
            print(f"  {verdict} {result['row']} ({said})", flush=True)
        results.update({row: kept.results.get(row) for row in about["rows"]})
    if not missing and not named and unknown:
        print(f"FAIL exceptions.txt lists rows that do not exist: {', '.join(sorted(unknown))}")
        counts["FAIL"] += len(unknown)
    frameworks = [0, 0]
    if FRAMEWORK_TESTS.is_dir() and (not options.words or "frameworks" in options.words):
        frameworks = run_framework_tests(python)
    if options.write_docs:
        missing += [row for row, result in results.items() if not result]
        if missing:
            sys.exit(f"docs/frontends.md is not written, these did not run: {', '.join(missing)}")
        frontends_page.write(ROOT / "docs/frontends.md", [(r, judge(r, exceptions)[0]) for r in results.values()],
                             exceptions, versions)
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
