#!/usr/bin/env python3
# Writes a case folder for every old version of every operator, judged by ONNX Runtime, ONNX's reference evaluator or by hand.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_upgrade_cases.py FOLDER

Writes FOLDER/{shaped,unshaped}/OPERATOR_VERSION[_NAME]/{model.onnx,judge.txt,test_data_set_0/*.pb} for the rows of upgrade_cases.py
and leaves FOLDER/stamp with the counts; in the unshaped half the models do not tell the ranks of their inputs. Every case is judged by the first of these that can: ONNX Runtime; the reference evaluator, where it has a class
for just that version; values worked out by hand. Where ONNX Runtime and the hand both speak they must agree.
An operator version without a case is an error unless it is listed as such.
"""

import hashlib
import os
import pathlib
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.defs import get_all_schemas_with_history

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import upgrade_cases  # noqa: E402
import upgrade_cases_nn  # noqa: E402  its rows join those of upgrade_cases

NEWEST_RUN = 25  # the newest opset that ONNX Runtime knows
HERE = pathlib.Path(__file__).resolve().parent
# Old versions that no case shows, and why.
UNSHOWN = upgrade_cases_nn.UNSHOWN


def old_versions():
    """(operator, version) to the last opset that version is in force in, for every version that is not the newest."""
    versions = {}
    for schema in get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema.since_version)
    last = {}
    for name, numbers in versions.items():
        numbers.sort()
        for number, following in zip(numbers, numbers[1:]):
            last[name, number] = following - 1
    return last


def element_type(name):
    return getattr(TensorProto, name.upper())


def value_of(given, version):
    return given(version) if callable(given) else given


def as_attribute(key, value):
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value, key)
    return helper.make_attribute(key, value)


def build(case, version, opset):
    """The model of a case, and what to feed it."""
    arrays = [a if a is None else np.asarray(a) for a in value_of(case.inputs, version)]
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(arrays)]
    outputs = [f"y{i}" for i in range(case.outputs)] if isinstance(case.outputs, int) else case.outputs
    node = helper.make_node(case.op, names, outputs)
    nodes = [node]
    if case.before:
        nodes.insert(0, helper.make_node(case.before, names[:1], ["before"]))
        node.input[0] = "before"
    if case.after:
        nodes.append(helper.make_node(case.after, ["after"], outputs[:1]))
        node.output[0] = "after"
    for key, value in (value_of(case.attributes, version) or {}).items():
        node.attribute.append(as_attribute(key, value))
    feeds = {n: a for n, a in zip(names, arrays) if a is not None}
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    types = case.types or [None] * len(outputs)
    first = next(iter(feeds.values())).dtype if feeds else np.dtype(np.float32)
    named = [(n, types[i] if i < len(types) else None) for i, n in enumerate(outputs) if n]
    infos = []
    for name, kind in named:
        if isinstance(kind, onnx.TypeProto):
            infos.append(helper.make_value_info(name, kind))
        else:
            infos.append(helper.make_tensor_value_info(name, element_type(kind) if kind else helper.np_dtype_to_tensor_dtype(first), None))
    model = helper.make_model(
        helper.make_graph(nodes, "case", inputs, infos), opset_imports=[helper.make_opsetid("", opset)],
        producer_name="cameo", ir_version=max(3, helper.find_min_ir_version_for([helper.make_opsetid("", opset)], ignore_unknown=True)),
    )
    if not case.types:
        settle_types(model)
    return model, feeds


def settle_types(model):
    """Takes the element types of the outputs from ONNX's inference, where it has any."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for info in bare.graph.output:
        info.ClearField("type")
    try:
        inferred = onnx.shape_inference.infer_shapes(bare).graph.output
    except Exception:  # no rule in that version: the type of the first input stands
        return
    for info, known in zip(model.graph.output, inferred):
        if known.type.WhichOneof("value") == "tensor_type" and known.type.tensor_type.elem_type:
            info.type.tensor_type.elem_type = known.type.tensor_type.elem_type
        elif known.type.WhichOneof("value") not in (None, "tensor_type"):
            info.type.CopyFrom(known.type)


def by_runtime(case, version, model, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception:  # it has no kernel, or refuses the opset
        return None


def by_reference(case, version, model, feeds):
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops import _op_list

    if not hasattr(_op_list, f"{case.op}_{version}"):
        return None
    try:
        return ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        return None


def by_hand(case, version, feeds, model):
    if not case.hand:
        return None
    results = case.hand(*feeds.values())
    results = results if isinstance(results, list) else [results]
    made = []
    for result, info in zip(results, model.graph.output):
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        made.append(np.asarray(result).astype(kind))
    return made


def agree(a, b):
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and np.allclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=True) for x, y in zip(a, b)
    )


def judge(case, version, last):
    """The judge's name, the model, what to feed it and the outputs. The model's opset is one that the judge knows and this version of
    the operator is in force in."""
    model, feeds = build(case, version, last)
    hand = by_hand(case, version, feeds, model)
    if case.judge == "hand":
        return "hand", model, feeds, hand
    opsets = sorted({last, min(last, NEWEST_RUN), version}, reverse=True)
    for name, run in (("onnxruntime", by_runtime), ("reference", by_reference)):
        for opset in opsets:
            model, feeds = build(case, version, opset)
            results = run(case, version, model, feeds)
            if results is None:
                continue
            if hand is not None and not agree(results, hand):
                raise SystemExit(f"{case.op} {version} {case.name}: {name} says\n{results}\nby hand\n{hand}")
            return name, model, feeds, results
    if hand is None:
        raise SystemExit(f"{case.op} {version} {case.name}: nobody can judge it")
    return "hand", model, feeds, hand


def as_proto(value, info):
    if isinstance(value, list):
        return numpy_helper.from_list([np.asarray(v) for v in value], info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(folder, model, feeds, results, who):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "judge.txt").write_text(who + "\n")
    for i, array in enumerate(feeds.values()):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array), f"x{i}").SerializeToString())
    for i, (value, info) in enumerate(zip(results, model.graph.output)):
        (data / f"output_{i}.pb").write_bytes(as_proto(value, info).SerializeToString())


def write_all(folder):
    last, shown, judges = old_versions(), set(), {}
    for case in upgrade_cases.CASES:
        for (op, version), opset in sorted(last.items()):
            if op != case.op or not case.versions[0] <= version <= case.versions[1]:
                continue
            who, model, feeds, results = judge(case, version, opset)
            name = f"{op}_{version}" + (f"_{case.name}" if case.name else "")
            write(folder / "shaped" / name, model, feeds, results, who)
            for info in model.graph.input:
                info.type.tensor_type.ClearField("shape")
            write(folder / "unshaped" / name, model, feeds, results, who)
            judges[who] = judges.get(who, 0) + 1
            shown.add((op, version))
    missing = sorted(set(last) - shown - set(UNSHOWN))
    if missing:
        raise SystemExit("no case for " + ", ".join(f"{op} {version}" for op, version in missing))
    needless = sorted(set(UNSHOWN) & shown) + sorted(set(UNSHOWN) - set(last))
    if needless:
        raise SystemExit("listed as not shown for no reason: " + ", ".join(f"{op} {version}" for op, version in needless))
    return judges, len(shown), len(last)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1])
    source = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(HERE.glob("*upgrade_cases*.py")))).hexdigest()[:16]
    wanted = f"onnx {onnx.__version__} cases {source}"
    stamp = folder / "stamp"
    if stamp.exists() and stamp.read_text().startswith(wanted + "\n"):
        return
    print(f"writing cases for old operator versions into {folder}", file=sys.stderr)
    # A folder half written must not be taken for a whole one: it gets its name last.
    fresh = folder.with_name(folder.name + f".{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        judges, shown, total = write_all(fresh)
        counts = ", ".join(f"{n} by {who}" for who, n in sorted(judges.items()))
        text = f"{sum(judges.values())} cases ({counts}) for {shown} of {total} old versions, each with and without ranks"
        (fresh / "stamp").write_text(f"{wanted}\n{text}\n")
        print(text, file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


if __name__ == "__main__":
    main()
