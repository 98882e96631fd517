#!/usr/bin/env python3
# ONNX's node suite, and random graphs, through compiled code.
# SPDX-License-Identifier: Apache-2.0
"""usage: test_compiled.py BUILD [--pure] [--random N] [--match PATTERN] [--report FILE]

Compiles every case of BUILD/onnx-suite/node and runs it, several at a time. What only strings, sequences, optional
values, maps or complex numbers keep from being compiled is refused by design, and listed apart; any other refusal is a
failure. Then random graphs (tools/fuzz_compiled.py). FILE receives counts by operator, as Markdown. The last line is
`N passed, N failed`.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHUNK = 60
BY_DESIGN = re.compile(r"string|sequence|optional|\bmap|complex|tensors are compiled|images")
ROW = re.compile(r"^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)$")
LAST = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) refused", re.M)


def run(build, folders, pure):
    command = [str(build / "cameo"), "test", *map(str, folders), "--backend", "compiled"]
    done = subprocess.run(command + (["--pure"] if pure else []), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout


def write_report(path, operators, passed, failed, refused):
    lines = ["| operator | passed | failed | refused |", "| --- | --- | --- | --- |"]
    for name, counts in sorted(operators.items()):
        lines.append(f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} |")
    lines.append(f"| all cases | {passed} | {failed} | {refused} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--match", default="*")
    parser.add_argument("--report", type=Path)
    args = parser.parse_args()
    cases = sorted((args.build / "onnx-suite" / "node").glob(args.match))
    chunks = [cases[i:i + CHUNK] for i in range(0, len(cases), CHUNK)]
    operators = collections.defaultdict(lambda: [0, 0, 0])
    passed = failed = by_design = 0
    reasons = collections.Counter()
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 2)) as pool:
        for chunk, text in zip(chunks, pool.map(lambda c: run(args.build, c, args.pure), chunks)):
            counts = LAST.search(text)
            if not counts:
                print(f"FAIL {chunk[0].name} and {len(chunk) - 1} more: {text.strip()[-500:]}")
                failed += len(chunk)
                continue
            passed += int(counts[1])
            failed += int(counts[2])
            for line in text.splitlines():
                row = ROW.match(line)
                if row:
                    for i in range(3):
                        operators[row[1]][i] += int(row[i + 2])
                if line.startswith("FAIL "):
                    print(line, flush=True)
                if line.startswith("REFUSED "):
                    reason = line.split(": ", 2)[-1]
                    if BY_DESIGN.search(reason):
                        by_design += 1
                        reasons[BY_DESIGN.search(reason)[0]] += 1
                    else:
                        failed += 1
                        print(f"FAIL {line[8:]}", flush=True)
    print(f"refused by design: {by_design}: " + ", ".join(f"{n} {why}" for why, n in reasons.most_common()))
    if args.report:
        write_report(args.report, operators, passed, failed, by_design)
    if args.random:
        command = [sys.executable, str(Path(__file__).parent / "fuzz_compiled.py"), str(args.build),
                   "--count", str(args.random)]
        done = subprocess.run(command + (["--pure"] if args.pure else []), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        print(done.stdout.rstrip())
        counts = LAST.search(done.stdout)
        passed += int(counts[1]) if counts else 0
        failed += int(counts[2]) + int(counts[3]) if counts else 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
