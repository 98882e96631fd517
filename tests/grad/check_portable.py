#!/usr/bin/env python3
# Runs the gradients of the operator cases in another runtime and compares with our numbers.
# SPDX-License-Identifier: Apache-2.0
"""usage: check_portable.py RUN_CASES FOLDER... [--show]

RUN_CASES writes the gradients of all cases in the folders as plain ONNX models. Each is run by ONNX Runtime;
where that cannot, or has a fault, by ONNX's reference evaluator, counted apart. What neither confirms must be
listed in exceptions.txt beside this file, and nothing else may be. --show names all that ONNX Runtime did not do.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper
import onnxruntime
from onnx.reference import ReferenceEvaluator

np.seterr(all="ignore")  # cases sit on poles and overflow on purpose

HERE = pathlib.Path(__file__).resolve().parent
# Relative to the largest element. Kernels of others sum in float, in another order.
TOLERANCE = {"float64": 1e-7, "float32": 2e-4, "float16": 2e-2, "bfloat16": 6e-2}


def load_value(path, kind):
    bytes_ = path.read_bytes()
    if kind == "sequence_type":
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(bytes_))
    if kind == "optional_type":
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(bytes_))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(bytes_))


def load_case(folder):
    model = onnx.load(folder / "model.onnx")
    feeds = {info.name: load_value(folder / f"input_{i}.pb", info.type.WhichOneof("value"))
             for i, info in enumerate(model.graph.input)}
    expected = [load_value(folder / f"output_{i}.pb", info.type.WhichOneof("value"))
                for i, info in enumerate(model.graph.output)]
    return model, feeds, expected


def by_onnxruntime(model, feeds, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    wanted = {info.name for info in session.get_inputs()}
    return session.run(None, {name: value for name, value in feeds.items() if name in wanted})


def by_plain_onnxruntime(model, feeds):
    """Without its rewriting of graphs, which has faults inside loops."""
    return by_onnxruntime(model, feeds, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)


def by_reference(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def difference(got, expected):
    """None, or what differs."""
    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for number, (a, b) in enumerate(zip(got, expected)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {number} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(wide_b)
        largest = max(1e-3, np.abs(wide_b[finite]).max(initial=0))
        if not np.allclose(wide_a, wide_b, rtol=0, equal_nan=True,
                           atol=TOLERANCE.get(str(b.dtype), 0) * largest):
            return f"result {number} is {wide_a.ravel()[:8]}, not {wide_b.ravel()[:8]}"
    return None


RUNTIMES = {"ONNX Runtime": by_onnxruntime,
            "ONNX Runtime without optimizations": by_plain_onnxruntime,
            "the reference evaluator": by_reference}


def run_case(folder):
    """Who agrees with us, and what the others said before it: that they differ, or cannot run it."""
    model, feeds, expected = load_case(folder)
    said = {"differs": [], "not run": []}
    for name, run in RUNTIMES.items():
        try:
            found = difference(run(model, feeds), expected)
        except Exception as error:  # whatever a runtime throws, it has not run the model
            said["not run"].append(f"{name}: {' '.join(str(error).split())[:300]}")
            continue
        if not found:
            return name, "; ".join(said["differs"] + said["not run"])
        said["differs"].append(f"{name}: {found}")
    kind = "differs" if said["differs"] else "not run"
    return kind, "; ".join(said["differs"] + said["not run"])


def check_case(folder):
    try:
        onnx.checker.check_model(onnx.load(folder / "model.onnx"))
    except onnx.checker.ValidationError as error:
        return "illegal", " ".join(str(error).split())
    return run_case(folder)


def read_exceptions():
    """{"not run norm/lrn.txt LRN": how many}"""
    counts = {}
    for line in (HERE / "exceptions.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            what, _, count = line.rpartition(" ")
            counts[what] = int(count)
    return counts


def main():
    show = "--show" in sys.argv
    program, *folders = [arg for arg in sys.argv[1:] if arg != "--show"]
    agreed, others, failures = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as to:
        done = subprocess.run([program, "--export", to, *folders], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            failures.append(f"run_cases --export: {done.stdout}")
        for folder in sorted(pathlib.Path(to).iterdir()):
            place = (folder / "from.txt").read_text().strip()
            path, _, op = place.split(":")
            outcome, why = check_case(folder)
            if outcome in RUNTIMES:
                agreed[outcome] += 1
            elif outcome == "illegal":
                failures.append(f"{place}: {why}")
            else:
                others[f"{outcome} {'/'.join(pathlib.Path(path).parts[-2:])} {op.strip()}"] += 1
            if show and outcome != "ONNX Runtime":
                print(f"{outcome}: {place}: {why}")
    known = read_exceptions()
    failures += [f"{what}: {others[what]} times, exceptions.txt says {known.get(what, 0)}"
                 for what in sorted(known.keys() | others.keys())
                 if others[what] != known.get(what, 0)]
    for failure in failures:
        print(failure)
    print("gradients that others agree on:",
          ", ".join(f"{agreed[name]} by {name}" for name in RUNTIMES),
          f"; {sum(others.values())} that they do not run or run wrongly")
    print(f"# counts: {sum(agreed.values())} passed, {len(failures)} failed")
    return 1 if failures or not agreed else 0


if __name__ == "__main__":
    sys.exit(main())
