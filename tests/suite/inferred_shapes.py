#!/usr/bin/env python3
# Are the shapes that `cameo infer` finds those of a run? And how many does it leave open, beside others?
# SPDX-License-Identifier: Apache-2.0
"""usage: inferred_shapes.py CAMEO FOLDER... [--inside] [--count]

Below each FOLDER are test cases: model.onnx and test_data_set_*/{input,output}_*.pb. What the model declares of its
results is erased, `cameo infer` fills it in again, and every dimension must be the one that the recorded outputs have:
a number, or an expression whose names are bound by the recorded inputs. --inside holds all values inside the main graph
against a run by ONNX Runtime too, where that can run the model. --count compares nothing: it prints how many dimensions
of the values inside stay unknown, ours beside onnx.shape_inference and ONNX Runtime's symbolic tool.

The last line is `# counts: N passed, N failed`.
"""

import fractions
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper

WORD = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")


def erase(model):
    """Forgets the shapes of all results."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return model


def infer(cameo, model, scratch):
    before, after = scratch / "before.onnx", scratch / "after.onnx"
    onnx.save(model, before)
    after.unlink(missing_ok=True)
    run = subprocess.run([cameo, "infer", before, "-o", after], capture_output=True, text=True)
    if run.returncode:
        raise ValueError("refused: " + (run.stdout + run.stderr).strip().splitlines()[0])
    return onnx.load(after)


def tensor_of(path, kind):
    """A recorded value of that type; None where it is no tensor."""
    if not kind.HasField("tensor_type"):
        return None
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def evaluate(text, bound):
    """The expression as a number; None where a name in it is not bound."""
    if text in bound:
        return bound[text]
    names = {"floor": math.floor, "max": max, "min": min}
    for name in sorted(bound, key=len, reverse=True):
        if WORD.fullmatch(name):
            names[name.replace(".", "_")] = fractions.Fraction(bound[name])
    try:
        return int(eval(text.replace(".", "_"), {"__builtins__": {}}, names))
    except (NameError, SyntaxError):
        return None


def compare(shape, dims, bound):
    """How the two differ, or None."""
    if len(shape.dim) != len(dims):
        return f"rank {len(shape.dim)} inferred, {len(dims)} in a run"
    for i, (dim, size) in enumerate(zip(shape.dim, dims)):
        if dim.HasField("dim_value"):
            value = dim.dim_value
        else:
            value = evaluate(dim.dim_param, bound) if dim.dim_param else None
            if value is None:
                bound[dim.dim_param] = size  # a fresh name: the same everywhere
                continue
        if value != size:
            return f"dimension {i} inferred {dim.dim_param or value} ({value}), {size} in a run"
    return None


def bind(model, tensors):
    bound = {}
    for info, tensor in zip(model.graph.input, tensors):
        for dim, size in zip(info.type.tensor_type.shape.dim, tensor.dims if tensor is not None else ()):
            if dim.dim_param:
                bound.setdefault(dim.dim_param, size)
    return bound


def run_inside(model, tensors):
    """Shapes of all values by a run of ONNX Runtime; {} where it cannot."""
    import onnxruntime
    kept = onnx.ModelProto()
    kept.CopyFrom(model)
    names = {output.name for output in kept.graph.output}
    for info in model.graph.value_info:
        if info.name not in names and info.type.HasField("tensor_type"):
            kept.graph.output.add().name = info.name
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(kept.SerializeToString(), options)
        feeds = {info.name: numpy_helper.to_array(tensor) for info, tensor in zip(model.graph.input, tensors)}
        wanted = [output.name for output in session.get_outputs()]
        values = session.run(wanted, feeds)
    except Exception:
        return {}
    return {name: value.shape for name, value in zip(wanted, values) if isinstance(value, numpy.ndarray)}


def judge(cameo, folder, scratch, inside):
    model = onnx.load(folder / "model.onnx")
    sets = sorted(folder.glob("test_data_set_*"))
    inferred = infer(cameo, erase(model), scratch)
    compared = 0
    for data in sets[:1]:
        given = [path for path in sorted(data.glob("input_*.pb"), key=lambda path: int(path.stem[6:]))]
        tensors = [tensor_of(path, info.type) for path, info in zip(given, model.graph.input)]
        bound = bind(model, tensors)
        for i, output in enumerate(inferred.graph.output):
            path = data / f"output_{i}.pb"
            tensor = tensor_of(path, output.type) if path.exists() else None
            if tensor is None or not output.type.tensor_type.HasField("shape"):
                continue
            differs = compare(output.type.tensor_type.shape, list(tensor.dims), bound)
            if differs:
                raise ValueError(f"output '{output.name}': {differs}")
            compared += 1
        shapes = run_inside(inferred, tensors) if inside and None not in tensors else {}
        for info in inferred.graph.value_info:
            if info.name in shapes and info.type.tensor_type.HasField("shape"):
                differs = compare(info.type.tensor_type.shape, shapes[info.name], bound)
                if differs:
                    raise ValueError(f"value '{info.name}': {differs}")
                compared += 1
    return compared


# ---- how much is left open ----


def count_open(model, known):
    """Values inside without a shape, and dimensions that are neither numbers nor made of the inputs' names."""
    kinds = {info.name: info.type for info in list(model.graph.value_info) + list(model.graph.output)}
    values = shapeless = dims = unknown = 0
    for node in model.graph.node:
        for name in node.output:
            if not name:
                continue
            kind = kinds.get(name)
            if kind is not None and kind.WhichOneof("value") not in (None, "tensor_type"):
                continue
            values += 1
            if kind is None or not kind.tensor_type.HasField("shape"):
                shapeless += 1
                continue
            for dim in kind.tensor_type.shape.dim:
                dims += 1
                words = set(WORD.findall(dim.dim_param)) - {"floor", "Max", "Min", "max", "min", "ceiling"}
                if not dim.HasField("dim_value") and (not dim.dim_param or not words <= known):
                    unknown += 1
    return numpy.array([values, shapeless, dims, unknown])


def tools(cameo, scratch):
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    def theirs(model):
        return onnx.shape_inference.infer_shapes(model, data_prop=True)

    def symbolic(model):
        return SymbolicShapeInference.infer_shapes(model, auto_merge=True)

    def apart(tool):
        """In a process of its own, which may crash."""
        def run(model):
            path = scratch / "peer.onnx"
            path.unlink(missing_ok=True)
            child = os.fork()
            if not child:
                try:
                    onnx.save(tool(model), path)
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            return onnx.load(path)
        return run

    return {"cameo infer": lambda model: infer(cameo, model, scratch), "onnx.shape_inference": apart(theirs),
            "symbolic_shape_infer": apart(symbolic)}


def name_inputs(model):
    """Gives names to the open dimensions of inputs: the symbolic tool does not take them without."""
    fresh = 0
    for info in model.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value") and not dim.dim_param:
                dim.dim_param = f"open{fresh}"
                fresh += 1
    return {word for info in model.graph.input for dim in info.type.tensor_type.shape.dim
            for word in WORD.findall(dim.dim_param)}


def count(cameo, folders, scratch):
    import logging
    logging.disable(logging.CRITICAL)
    judges = tools(cameo, scratch)
    for folder in folders:
        totals = {name: numpy.zeros(4, int) for name in judges}
        failed = dict.fromkeys(judges, 0)
        models = 0
        for path in sorted(folder.rglob("*.onnx")):
            model = onnx.load(path)
            known = name_inputs(model)
            if not known or not model.graph.node:
                continue
            erase(model)
            models += 1
            for name, tool in judges.items():
                copy = onnx.ModelProto()
                copy.CopyFrom(model)
                try:
                    result = tool(copy)
                except Exception:
                    failed[name] += 1
                    result = model
                totals[name] += count_open(result or model, known)
        for name, (values, shapeless, dims, unknown) in totals.items():
            print(f"{folder.name:20} {models:4} models  {name:22} {values:6} values, {shapeless:5} without a shape, "
                  f"{unknown:5} unknown of {dims:6} dimensions, {failed[name]} models refused")


def main():
    flags = {argument for argument in sys.argv if argument.startswith("--")}
    cameo, *folders = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    passed = failed = compared = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if "--count" in flags:
            count(cameo, [pathlib.Path(folder) for folder in folders], scratch)
            return 0
        for folder in folders:
            for path in sorted(pathlib.Path(folder).rglob("model.onnx")):
                try:
                    compared += judge(cameo, path.parent, scratch, "--inside" in flags)
                    passed += 1
                except ValueError as error:
                    failed += 1
                    print(f"{path.parent.name}: {error}")
    print(f"{compared} shapes compared\n# counts: {passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
