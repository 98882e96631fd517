#!/usr/bin/env python3
# ONNX's node suite, and random graphs, through compiled code.
# SPDX-License-Identifier: Apache-2.0
"""usage: test_compiled.py BUILD [--suite FOLDER] [--pure] [--random N] [--match PATTERN] [--report FILE]

Compiles every case of FOLDER (BUILD/onnx-suite/node) and runs it, several at a time; then the models of tests/mlir, whose
expectation is what the interpreter computes: `# dim N=5` there gives a dimension its size, `# in x = ..` an input its
value, others are random. What only strings, sequences, optional
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
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from fuzz_compiled import write_case

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 60
BY_DESIGN = re.compile(r"string|sequence|optional|\bmap|complex|tensors are compiled|images")
ROW = re.compile(r"^(\S+)\s+(\d+)\s+(\d+)\s+(\d+)$")
LAST = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) refused", re.M)


def run(build, folders, pure):
    command = [str(build / "cameo"), "test", *map(str, folders), "--backend", "compiled"]
    done = subprocess.run(command + (["--pure"] if pure else []), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout


def values_of(model, text):
    """Inputs by the comments of the file, others random."""
    rng = np.random.default_rng(1)
    dims = {name: int(size) for name, size in re.findall(r"^# dim (\w+)=(\d+)$", text, re.M)}
    given = dict(re.findall(r"^# in (\w+) = (.+)$", text, re.M))
    values = {}
    for port in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
        shape = [dims.get(d.dim_param, 3) if d.dim_param else d.dim_value for d in port.type.tensor_type.shape.dim]
        if port.name in given:
            value = np.asarray(eval(given[port.name], {"np": np, "rng": rng}))  # our own files
        elif dtype.kind == "f":
            value = rng.standard_normal(shape)
        else:
            value = rng.integers(0, 2 if dtype.kind == "b" else 9, shape)
        values[port.name] = np.asarray(value).astype(dtype)
    return values


def make_own(folder, build):
    """Cases of tests/mlir; their number."""
    made = 0
    for path in sorted((ROOT / "tests" / "mlir").glob("*.onnxtxt")):
        copy = folder / "model.onnx"
        subprocess.run([str(build / "cameo"), "copy", str(path), "-o", str(copy)], check=True, capture_output=True)
        model = onnx.load(copy)
        copy.unlink()
        why = write_case(folder / path.stem, model, values_of(model, path.read_text()), build / "cameo")
        if why:
            raise SystemExit(f"{path.name}: {why}")
        # Sums of some hundred terms near 1 cancel: both results are off by some units of the last place of 1.
        (folder / path.stem / "data.json").write_text('{"rtol": 1e-3, "atol": 1e-6}')
        made += 1
    return made


def write_report(path, operators, passed, failed, refused):
    lines = ["| operator | passed | failed | refused |", "| --- | --- | --- | --- |"]
    for name, counts in sorted(operators.items()):
        lines.append(f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} |")
    lines.append(f"| all cases | {passed} | {failed} | {refused} |")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--match", default="*")
    parser.add_argument("--report", type=Path)
    args = parser.parse_args()
    own = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
    make_own(Path(own.name), args.build)
    cases = sorted((args.suite or args.build / "onnx-suite" / "node").glob(args.match)) + sorted(Path(own.name).iterdir())
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
    print(f"# counts: {passed} passed, {failed} failed" if args.suite else f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
