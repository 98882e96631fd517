#!/usr/bin/env python3
# Runs the benchmarks; every figure stands beside a peer's or a baseline's from the same run.
# SPDX-License-Identifier: Apache-2.0
"""usage: run.py, from the project's root after `make`; called by `make bench-parts`.

Opening a 1 GiB model beside onnx.load, the executor's cost per node, files of very many nodes run, checked, inferred and converted, and the networks of ONNX's suite with random weights beside ONNX Runtime.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "build" / "bench"


def run(*command):
    print("$", " ".join(str(part) for part in command), flush=True)
    return subprocess.run([str(part) for part in command], check=False).returncode


def main():
    status = run(sys.executable, ROOT / "bench/open_model.py", BENCH / "open_model")
    status |= run(BENCH / "run_small")
    status |= run(sys.executable, ROOT / "bench/many_nodes.py", ROOT / "build/cameo", ROOT / "build/bench-models/chains")
    status |= run(sys.executable, ROOT / "bench/tools.py", ROOT / "build/cameo", ROOT / "build/bench-models/chains")
    suite = ROOT / "build/onnx-suite"
    status |= run(sys.executable, ROOT / "tools/make_suite.py", suite)
    filled = ROOT / "build/bench-models"
    filled.mkdir(parents=True, exist_ok=True)
    models = sorted((suite / "light").iterdir())
    status |= run(sys.executable, ROOT / "bench/fill_weights.py", filled, *models)
    status |= run(sys.executable, ROOT / "bench/peers.py", *sorted(filled.glob("*.onnx")))
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
