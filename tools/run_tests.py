#!/usr/bin/env python3
# Runs the tests of a build folder through CTest, shows what failed, and counts single tests.
# SPDX-License-Identifier: Apache-2.0
"""usage: run_tests.py BUILD [--only LABEL,..] [--without LABEL,..] [--filter PATTERN]

The last line is `N passed, N failed`, counted over single tests: a program says how many it holds in a
line `# counts: N passed, N failed`. One that prints none counts as one test; one that ends badly
without owning up to a failure, by a crash or a leak, adds a failed test. While it runs, each test that
ends is shown: as a counter on a terminal, else as a line. OPS=NAME,.. in the environment runs the operator
cases of these families, files or operators and nothing else.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

COUNTS = re.compile(r"^# counts: (\d+) passed, (\d+) failed$", re.M)
ENDED = re.compile(r"\s*(\d+)/(\d+) Test\s+#\d+: (\S+) (.*?)\s+([\d.]+) sec$")
ROOT = Path(__file__).resolve().parent.parent


def ctest(build, args):
    report = build / "test-report.xml"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(build), "--output-junit", str(report.resolve()),
               "--test-output-size-passed", "1000000", "--test-output-size-failed", "1000000",
               "--parallel", os.environ.get("JOBS") or str(os.cpu_count() or 2),
               "--test-output-truncation", "head", "--no-tests=ignore"]
    if args.only:
        command += ["-L", "^(" + args.only.replace(",", "|") + ")$"]
    if args.without:
        command += ["-LE", "^(" + args.without.replace(",", "|") + ")$"]
    if os.environ.get("TEST"):
        command += ["-R", os.environ["TEST"]]
    env = dict(os.environ)
    # The sanitizer guesses where thread-local variables of libraries opened at run time lie, and
    # reads there when it looks for leaks: with oneDNN 2.6 that crashes it.
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1:"
                                   "intercept_tls_get_addr=0")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1")
    if build.name == "tsan":
        # Threads share primitives through oneDNN's cache under locks that the sanitizer does not see.
        env.setdefault("DNNL_PRIMITIVE_CACHE_CAPACITY", "0")
    if args.filter:
        env["CAMEO_TEST_FILTER"] = args.filter
    return report, follow(command, env)


def follow(command, env):
    """Runs CTest, showing tests as they end; returns all it printed."""
    terminal = sys.stdout.isatty()
    said = []
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", bufsize=1) as process:
        for line in process.stdout:
            said.append(line)
            found = ENDED.match(line)
            if not found:
                continue
            number, total, name, result, seconds = found.groups()
            word = "" if result.strip(". ") == "Passed" else f" {result.strip('*. ')}"
            text = f"{number:>4} of {total} {name}{word}, {seconds} s"
            if terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{text[:width]:{width}}", end="", flush=True)
            else:
                print(text, flush=True)
    if terminal:
        print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", flush=True)
    return "".join(said)


def run_picked(build):
    """The operator cases that OPS names, all families in one run."""
    program = build / "ops" / "run_cases"
    folders = sorted({str(path.parent) for path in (ROOT / "tests" / "ops").glob("*/*.txt")})
    done = subprocess.run([str(program), *folders], stdout=subprocess.PIPE, text=True,
                          errors="replace")
    print(COUNTS.sub("", done.stdout).rstrip())
    found = COUNTS.findall(done.stdout)
    passed = sum(int(p) for p, _ in found)
    failed = sum(int(f) for _, f in found) or (done.returncode != 0)
    print(f"{passed} passed, {int(failed)} failed")
    return 1 if failed else 0


def judge(case):
    """How many tests of one CTest entry passed and failed, and what it printed."""
    output = case.findtext("system-out") or ""
    found = COUNTS.findall(output)
    passed = sum(int(p) for p, _ in found)
    failed = sum(int(f) for _, f in found)
    status = case.get("status")
    if status == "run":
        if not found:
            passed = 1
    elif status != "disabled" and failed == 0:
        failed = 1
    return passed, failed, output


def reason(case):
    problem = case.find("failure")
    if problem is None:
        problem = case.find("skipped")
    return (problem.get("message") if problem is not None else "") or case.get("status")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--without", default="")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()

    if os.environ.get("OPS") and not args.only:
        return run_picked(args.build)
    shutil.rmtree(args.build / "shown", ignore_errors=True)
    report, said = ctest(args.build, args)
    if not report.exists():
        print(said)
        print("0 passed, 1 failed")
        return 1

    cases = list(ET.parse(report).getroot().iter("testcase"))
    passed = failed = 0
    bad = []
    for case in sorted(cases, key=lambda c: c.get("name")):
        good, wrong, output = judge(case)
        passed += good
        failed += wrong
        print(f"{'FAIL' if wrong else 'ok':4} {case.get('name'):40} {good:6} passed"
              + (f", {wrong} failed" if wrong else ""))
        if wrong:
            bad.append((case, output))
    for case, output in bad:
        print(f"\n---- {case.get('name')}: {reason(case)}")
        # cmocka's lines on what went well would bury the one that matters.
        print(re.sub(r"^\[ (?:RUN     |      OK) \].*\n", "", output, flags=re.M).strip()[-8000:])
    # What suites leave for people: how many of their cases pass, by operator.
    for text in sorted((args.build / "shown").glob("*.txt")):
        print(f"\n{text.read_text()}".rstrip())
    if not cases:
        print("no tests here")
    elif bad:
        print()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
