#!/usr/bin/env python3
# Judges `cameo upgrade` and `cameo downgrade` by recorded calls of the converter of ONNX.
# SPDX-License-Identifier: Apache-2.0
"""usage: convert_version.py CAMEO FOLDER [--exceptions FILE]

FOLDER has a folder for each call: in.onnx, case.json with the target and the outcome, and where that
was "ok" the recorded out.onnx. A conversion agrees when it has the recorded outcome; its result is
accepted by `cameo check`, by onnx's checker and by onnx's strict shape inference; and its nodes,
Constant and Identity aside, are the recorded operators with the recorded attributes. The exceptions
file has a line for each call where ours is meant to differ: the folder's name, then the reason. An
exception that is none fails the run.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx


def imported(model):
    return next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))


def attributes(node):
    """What a node says, defaults aside."""
    said = {}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            continue
        value = onnx.helper.get_attribute_value(attribute)
        said[attribute.name] = str(value) if not isinstance(value, float) else f"{value:.6g}"
    return said


def without_defaults(node, version):
    """The attributes of a node that differ from its schema's defaults."""
    said = attributes(node)
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return said
    for name, attribute in schema.attributes.items():
        if name in said and attribute.default_value.type:
            value = onnx.helper.get_attribute_value(attribute.default_value)
            if said[name] == (str(value) if not isinstance(value, float) else f"{value:.6g}"):
                del said[name]
    return said


def operators(model, target):
    nodes = (n for n in model.graph.node if n.op_type not in ("Constant", "Identity"))
    return collections.Counter(
        (n.op_type, tuple(sorted(without_defaults(n, target).items()))) for n in nodes)


def violations(cameo, path):
    run = subprocess.run([cameo, "check", path], capture_output=True, text=True, check=False)
    return run.stdout.splitlines()[:-1] if run.returncode else []


def refusal(model):
    """What onnx's checker and inference say against a model."""
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return f"onnx: {error}".replace("\n", " ")[:300]
    return None


def judge(cameo, folder, scratch):
    """None where the call agrees, else what differs."""
    case = json.loads((folder / "case.json").read_text())
    given = onnx.load(folder / "in.onnx", load_external_data=False)
    target = case["target"]
    command = "upgrade" if target >= imported(given) else "downgrade"
    out = scratch / "out.onnx"
    out.unlink(missing_ok=True)
    run = subprocess.run([cameo, command, folder / "in.onnx", "--opset", str(target), "--as-is", "-o", out],
                         capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):
        return f"exit code {run.returncode}: {run.stderr.strip()}"
    if (run.returncode == 0) != (case["outcome"] == "ok"):
        return f"recorded {case['outcome']}, ours: {run.stderr.strip() or 'ok'}"
    if run.returncode:
        return "a refusal left a file" if out.exists() else None
    before, after = violations(cameo, folder / "in.onnx"), violations(cameo, out)
    if len(after) > len(before):
        return f"cameo check: {after}"
    made = onnx.load(out, load_external_data=False)
    if imported(made) != target:
        return f"imports opset {imported(made)}"
    if refusal(made) and not refusal(given):
        return refusal(made)
    recorded = onnx.load(folder / "out.onnx", load_external_data=False)
    ours, theirs = operators(made, target), operators(recorded, target)
    if ours != theirs:
        return f"nodes {sorted((ours - theirs).elements())}, recorded {sorted((theirs - ours).elements())}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cameo", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--exceptions", type=pathlib.Path,
                        default=pathlib.Path(__file__).with_name("convert_version_exceptions.txt"))
    options = parser.parse_args()
    lines = options.exceptions.read_text().splitlines() if options.exceptions.exists() else []
    exceptions = dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(f for f in options.folder.iterdir() if (f / "case.json").exists()):
            reason = judge(options.cameo, folder, pathlib.Path(scratch))
            expected = exceptions.pop(folder.name, None)
            counts["agree" if reason is None else "excepted" if expected else "differ"] += 1
            if reason is not None and not expected:
                test = json.loads((folder / "case.json").read_text())["test"].split("::")[-1]
                print(f"{folder.name} {test}: {reason}")
            if reason is None and expected:
                counts["differ"] += 1
                print(f"{folder.name}: agrees, but is listed as an exception: {expected}")
    for name in exceptions:
        print(f"{name}: is listed as an exception, but there is no such call")
    print(f"{counts['agree']} agree, {counts['excepted']} excepted, {counts['differ']} differ")
    return 1 if counts["differ"] or not counts["agree"] else 0


if __name__ == "__main__":
    sys.exit(main())
