# What ONNX's own tests ask of onnx.compose.merge_models, asked of `cameo merge`.
# SPDX-License-Identifier: Apache-2.0
"""python merge.py CAMEO FOLDER: FOLDER has a folder per case, with in0.onnx, in1.onnx, case.json
(io_map, prefix1, prefix2, outputs, outcome) and, where upstream succeeded, out.onnx.

Compared are nodes, inputs, outputs, initializers, value_info, functions, metadata and opsets, names
and order included. What is left out of the comparison:
- doc strings, producer and version of the model: upstream makes new ones, we keep those of the first
- opset imports that upstream lists twice: the list is compared as a set
- the name of the graph where a model had an empty one
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import onnx


def bare(messages):
    """Bytes of messages, without names that are there and empty: upstream prefixes by setting."""
    out = []
    for message in messages:
        if hasattr(message, "op_type") and not message.name:
            message.ClearField("name")
        out.append(message.SerializeToString(deterministic=True))
    return out


def summary(model):
    graph = model.graph
    return {
        "ir": model.ir_version,
        "opsets": sorted({(o.domain, o.version) for o in model.opset_import}),
        "metadata": sorted((p.key, p.value) for p in model.metadata_props),
        "nodes": bare(graph.node),
        "inputs": bare(graph.input),
        "outputs": bare(graph.output),
        "initializers": bare(graph.initializer),
        "sparse_initializers": bare(graph.sparse_initializer),
        "value_info": sorted(bare(graph.value_info)),
        "functions": bare(model.functions),
        "name": graph.name,
    }


def run_case(cameo, folder, scratch):
    case = json.loads((folder / "case.json").read_text())
    out = pathlib.Path(scratch) / "out.onnx"
    out.unlink(missing_ok=True)
    command = [cameo, "merge", folder / "in0.onnx", folder / "in1.onnx", "-o", out]
    for output, name in case["io_map"]:
        command += ["--map", f"{output}:{name}"]
    for key in ("prefix1", "prefix2"):
        if case.get(key):
            command += [f"--{key}", case[key]]
    for name in case.get("outputs") or []:
        command += ["--outputs", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if case["outcome"] != "ok":
        return None if done.returncode == 1 else f"accepted; upstream says {case['message']}"
    if done.returncode:
        return f"refused: {done.stderr.strip()}"
    ours = summary(onnx.load(out))
    theirs = summary(onnx.load(folder / "out.onnx"))
    wrong = [key for key in ours if ours[key] != theirs[key]]
    return f"differs in {', '.join(wrong)}" if wrong else None


def main():
    cameo, root = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    cases = sorted(path.parent for path in root.glob("*/case.json"))
    with tempfile.TemporaryDirectory() as scratch:
        for folder in cases:
            problem = run_case(cameo, folder, scratch)
            if problem:
                failed += 1
                print(f"{folder.name}: {problem}")
    print(f"{len(cases) - failed} of {len(cases)} cases agree")
    return failed > 0 or not cases


if __name__ == "__main__":
    sys.exit(main())
