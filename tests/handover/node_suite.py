"""ONNX's node suite through generated code: node_suite.py CAMEO SUITE [--to pytorch-code] [--match TEXT] [--report FILE]

Each case's model becomes code, which runs in this process on the case's inputs; its results are compared as ONNX's own
runner compares them. Cases that cannot pass are listed with their reasons in exceptions.txt in this folder; one that
passes all the same fails the run, so that the list stays true.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import traceback

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from frameworks import FRAMEWORKS

HERE = os.path.dirname(os.path.abspath(__file__))


def read_exceptions(framework):
    out = {}
    with open(os.path.join(HERE, "exceptions.txt"), encoding="ascii") as file:
        for line in file:
            words = line.split(None, 2)
            if len(words) == 3 and words[0] == framework:
                out[words[1]] = words[2].strip()
    return out


def read_value(path, type_proto):
    with open(path, "rb") as file:
        data = file.read()
    return parse_value(data, type_proto)


def parse_value(data, type_proto):
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    if kind == "map_type":
        return numpy_helper.to_dict(onnx.MapProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def given(framework, value):
    if value is None:
        return None
    if isinstance(value, list):
        return [given(framework, v) for v in value]
    if isinstance(value, dict):
        return {k: given(framework, v) for k, v in value.items()}
    return framework.tensor(np.asarray(value))


def compare(framework, got, expected, rtol, atol):
    if expected is None:
        assert got is None, "a result should be absent"
        return
    if isinstance(expected, list):
        assert isinstance(got, (list, tuple)), f"a result is no sequence, but {type(got)}"
        assert len(got) == len(expected), f"a sequence has {len(got)} elements, expected {len(expected)}"
        for g, e in zip(got, expected):
            compare(framework, g, e, rtol, atol)
        return
    if isinstance(expected, dict):
        assert set(got) == set(expected), "a map has other keys"
        for k in expected:
            compare(framework, got[k], expected[k], rtol, atol)
        return
    expected = np.asarray(expected)
    if not hasattr(got, "shape"):
        got = np.asarray(got).astype(expected.dtype) if np.isscalar(got) else got
    array = framework.numpy(got, expected) if not np.isscalar(got) else np.asarray(got)
    assert array.shape == expected.shape, f"a result has shape {array.shape}, expected {expected.shape}"
    if expected.dtype == object or expected.dtype.kind in "US":
        assert [str(v) for v in array.flatten()] == [
            v.decode() if isinstance(v, bytes) else str(v) for v in expected.flatten()
        ], "texts differ"
    elif expected.dtype.kind in "biu":
        np.testing.assert_array_equal(array, expected)
    else:
        if expected.dtype.kind not in "fc":
            expected, array = expected.astype(np.float32), np.asarray(array).astype(np.float32)
        np.testing.assert_allclose(array, expected, rtol=rtol, atol=atol, equal_nan=True)


def generate(arguments):
    cameo, framework, model, folder = arguments
    done = subprocess.run(
        [cameo, "export", model, "--to", framework, "--no-check", "-o", folder], capture_output=True, text=True, timeout=300
    )
    return None if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


def load_module(folder, name):
    spec = importlib.util.spec_from_file_location("generated_" + name, os.path.join(folder, "model.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_case(framework, case, folder, name, suite):
    framework.begin()
    module = load_module(folder, name)
    model = onnx.load(os.path.join(suite, name, "model.onnx"))
    initializers = {t.name for t in model.graph.initializer}
    wanted = [i for i in model.graph.input if i.name not in initializers]
    data_sets = sorted(d for d in os.listdir(os.path.join(suite, name)) if d.startswith("test_data_set_"))
    for data_set in data_sets:
        at = os.path.join(suite, name, data_set)
        inputs = [given(framework, read_value(os.path.join(at, f"input_{i}.pb"), v.type)) for i, v in enumerate(wanted)]
        expected = [read_value(os.path.join(at, f"output_{i}.pb"), v.type) for i, v in enumerate(model.graph.output)]
        results = framework.run(module, inputs)
        if len(expected) == 1:
            results = (results,)
        assert len(results) == len(expected), f"{len(results)} results, expected {len(expected)}"
        for got, want in zip(results, expected):
            compare(framework, got, want, case.rtol, case.atol)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cameo")
    parser.add_argument("suite", help="build/onnx-suite/node")
    parser.add_argument("--to", default="pytorch-code", choices=sorted(FRAMEWORKS))
    parser.add_argument("--match", default="", help="only cases whose name holds one of these texts, separated by commas")
    parser.add_argument("--report", help="write all outcomes as JSON")
    parser.add_argument("--keep", help="a folder for the generated code")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--verbose", action="store_true", help="print the reason of each failure in full")
    args = parser.parse_args()
    cases = {c.name: c for c in load_model_tests(kind="node")}
    names = sorted(n for n in os.listdir(args.suite) if n in cases and any(m in n for m in args.match.split(",")))
    framework = FRAMEWORKS[args.to]()
    exceptions = read_exceptions(args.to)
    outcomes = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = args.keep or scratch
        jobs = [
            (args.cameo, args.to, os.path.join(args.suite, n, "model.onnx"), os.path.join(root, n)) for n in names
        ]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            refusals = dict(zip(names, pool.map(generate, jobs)))
        for name in names:
            if refusals[name]:
                outcomes[name] = ("refused", refusals[name])
                continue
            try:
                run_case(framework, cases[name], os.path.join(root, name), name, args.suite)
                outcomes[name] = ("passed", "")
            except Exception as error:  # whatever generated code does, the next case runs
                text = traceback.format_exc() if args.verbose else f"{type(error).__name__}: {str(error).strip()[:300]}"
                outcomes[name] = ("failed", " ".join(text.split()) if not args.verbose else text)
    return report(args, outcomes, exceptions, framework)


def report(args, outcomes, exceptions, framework):
    wrong = 0
    for name, (outcome, why) in outcomes.items():
        if outcome == "passed" and name in exceptions:
            print(f"{name}: passes, and exceptions.txt says that it cannot")
            wrong += 1
        elif outcome != "passed" and name not in exceptions:
            print(f"{name}: {outcome}: {why}")
            wrong += 1
    for word, expanded in (("operators", False), ("expanded", True)):
        part = [o for n, (o, _) in outcomes.items() if n.endswith("_expanded") == expanded]
        counts = {kind: part.count(kind) for kind in ("passed", "failed", "refused")}
        print(f"{args.to}, {word}: {len(part)} cases, " + ", ".join(f"{n} {k}" for k, n in counts.items()))
    if framework.widened:
        print("held in a wider type: " + ", ".join(sorted(framework.widened)))
    if args.report:
        with open(args.report, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
