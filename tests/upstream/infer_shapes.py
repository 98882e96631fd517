#!/usr/bin/env python3
# Holds `cameo infer` against recorded calls of onnx.shape_inference.infer_shapes.
# SPDX-License-Identifier: Apache-2.0
"""usage: infer_shapes.py CAMEO FOLDER [--all]

FOLDER holds one folder per call: in.onnx, case.json (outcome, strict, data_prop), out.onnx where the outcome is ok.
Ours agrees when it refuses what was refused, and otherwise says at least as much of every value: element types, ranks
and numbers are the same, dimensions that are equal there are equal here, up to the names of fresh symbols. Where the
two differ, tests/upstream/infer_shapes.txt must say why; a line of it that is no longer needed fails. The last line is
`# counts: N passed, N failed`.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnx.shape_inference

LISTED = pathlib.Path(__file__).with_suffix(".txt")


def graphs(model):
    """Every graph and function, with a key that both models have."""
    def walk(graph, key):
        yield key, graph
        for n, node in enumerate(graph.node):
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from walk(attribute.g, f"{key}/{n}.{attribute.name}")
    yield from walk(model.graph, "")


def types(model):
    """The types of all named values: (graph, name) to TypeProto."""
    found = {}
    for key, graph in graphs(model):
        for infos in (graph.value_info, graph.output):
            for info in infos:
                found[key, info.name] = info.type
    for function in model.functions:
        for info in function.value_info:
            found[f"function {function.name}", info.name] = info.type
    return found


def names_of(model):
    """Symbols that the file itself has."""
    names = set()
    def add(kind):
        which = kind.WhichOneof("value")
        if which in ("tensor_type", "sparse_tensor_type"):
            for dim in getattr(kind, which).shape.dim:
                names.add(dim.dim_param)
        elif which in ("sequence_type", "optional_type"):
            add(getattr(kind, which).elem_type)
    for _, graph in graphs(model):
        for infos in (graph.input, graph.value_info, graph.output):
            for info in infos:
                add(info.type)
    return names - {""}


class Comparison:
    def __init__(self, names):
        self.names = names
        self.renamed = {}

    def dims(self, theirs, ours):
        if len(theirs.dim) != len(ours.dim):
            return f"rank {len(theirs.dim)} there, {len(ours.dim)} here"
        for i, (a, b) in enumerate(zip(theirs.dim, ours.dim)):
            if a.HasField("dim_value"):
                if not b.HasField("dim_value") or b.dim_value != a.dim_value:
                    return f"dimension {i} is {a.dim_value} there, {b.dim_param or b.dim_value} here"
            elif a.dim_param in self.names:
                if not b.HasField("dim_value") and b.dim_param != a.dim_param:
                    return f"dimension {i} is {a.dim_param} there, {b.dim_param or '?'} here"
            elif a.dim_param:
                mine = b.dim_value if b.HasField("dim_value") else b.dim_param or "?"
                if self.renamed.setdefault(a.dim_param, mine) != mine:
                    return f"dimension {i} is {a.dim_param} there, {mine} here, {self.renamed[a.dim_param]} elsewhere"
        return None

    def compare(self, theirs, ours):
        which = theirs.WhichOneof("value")
        if which is None:
            return None
        if ours.WhichOneof("value") != which:
            return f"{which} there, {ours.WhichOneof('value')} here"
        a, b = getattr(theirs, which), getattr(ours, which)
        if which in ("tensor_type", "sparse_tensor_type"):
            if a.elem_type and a.elem_type != b.elem_type:
                return f"element type {a.elem_type} there, {b.elem_type} here"
            if not a.HasField("shape"):
                return None
            return self.dims(a.shape, b.shape) if b.HasField("shape") else "a shape there, none here"
        if which in ("sequence_type", "optional_type"):
            return self.compare(a.elem_type, b.elem_type)
        return None


def refuses_types(path):
    """Does onnx refuse it too, once it is asked to look at the operators' type constraints? Ours always does."""
    try:
        onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError:
        return True
    return False


def judge(cameo, folder, scratch):
    """None where the two agree, else how they differ."""
    case = json.loads((folder / "case.json").read_text())
    out = scratch / "out.onnx"
    out.unlink(missing_ok=True)
    run = subprocess.run([cameo, "infer", folder / "in.onnx", "-o", out], capture_output=True, text=True)
    if case["outcome"] != "ok":
        return None if run.returncode == 1 else "refused there, not here"
    if run.returncode and refuses_types(folder / "in.onnx"):
        return None
    if run.returncode:
        return "refused here: " + (run.stdout + run.stderr).strip().splitlines()[0][:300]
    theirs, ours = onnx.load(folder / "out.onnx"), onnx.load(out)
    comparison = Comparison(names_of(onnx.load(folder / "in.onnx")))
    mine = types(ours)
    for key, kind in types(theirs).items():
        if key not in mine:
            if kind.WhichOneof("value"):
                return f"{key[0]} '{key[1]}' has a type there, none here"
            continue
        differs = comparison.compare(kind, mine[key])
        if differs:
            return f"{key[0]} '{key[1]}': {differs}"
    return None


def main():
    cameo, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    listed = {}
    for line in LISTED.read_text().splitlines() if LISTED.exists() else ():
        if line and not line.startswith("#"):
            name, reason = line.split(" ", 1)
            listed[name] = reason
    passed = failed = 0
    seen = set()
    with tempfile.TemporaryDirectory() as scratch:
        for one in sorted(folder.iterdir()):
            test = json.loads((one / "case.json").read_text())["test"].split("::")[-1]
            differs = judge(cameo, one, pathlib.Path(scratch))
            name = f"{one.name}:{test}"
            excused = listed.get(test) or listed.get(name)
            if differs and excused:
                seen.add(test if test in listed else name)
            if differs and not excused:
                failed += 1
                print(f"{name}: {differs}")
            else:
                passed += 1
    for name in sorted(set(listed) - seen):
        failed += 1
        print(f"{name} agrees now: remove it from {LISTED.name}")
    print(f"{len(seen)} exceptions\n# counts: {passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
