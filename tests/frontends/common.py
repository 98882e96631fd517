"""What the tests of front ends share: running a model in both runtimes, comparing, training, reporting.

A file of rows ends with `common.main(rows)`. A row is one model of one converter; it exports the model, then calls
check() and, for networks, train(). The file lists its rows and runs those whose names it reads, one a line; it writes
JSON, a line for the list, for each row that begins and for each result. All run in one thread: the models are small.
"""
# SPDX-License-Identifier: Apache-2.0
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
import traceback

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import cameo

STEPS = 10
# Relative tolerance and part of the largest magnitude, by type. What is whole, true or text must be equal. Floats differ
# by the order in which sums are added up: float has 24 bits, a sum of some thousand terms loses four to six of them;
# double has 53; what is stored as float16 or bfloat16 is rounded after each operator, to 11 and 8 bits.
TOLERANCES = {"float64": (1e-9, 1e-10), "float32": (1e-4, 1e-5), "float16": (1e-2, 4e-3), "bfloat16": (6e-2, 3e-2)}
# Ten steps repeat these differences, each on the weights that the one before left.
LOSS_TOLERANCE = 1e-4
# How far weights may be from the framework's, as a part of how far the framework moved them.
WEIGHT_TOLERANCE = 1e-2


class Stopped(Exception):
    """A row cannot go on. kind says where: converter, onnxruntime, cameo, or training."""

    def __init__(self, kind, reason):
        super().__init__(reason)
        self.kind = kind


class Row:
    """One test: run(folder) gives {"opset": .., "trained": ..}."""

    def __init__(self, converter, name, run):
        self.id, self.run = f"{converter}/{name}", run


def one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def convert(function, *arguments, **named):
    """Calls a converter; what it raises is its own failure."""
    try:
        return function(*arguments, **named)
    except Exception as error:  # pylint: disable=broad-except
        first = error
        while first.__cause__:
            first = first.__cause__
        raise Stopped("converter", f"{type(first).__name__}: {one_line(first)}") from error


# ---- comparing ----


def difference(got, wanted, loosen=1.0):
    """None where two results are equal, otherwise a sentence."""
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return f"a sequence of {len(wanted)} was expected, not {got!r:.80}"
        return next((f"element {i}: {d}" for i, d in enumerate(map(difference, got, wanted)) if d), None)
    if isinstance(wanted, dict):
        if not isinstance(got, dict) or set(got) != set(wanted):
            return f"a map with the keys {list(wanted)} was expected, not {got!r:.80}"
        return next((f"key {k!r}: {d}" for k in wanted if (d := difference(got[k], wanted[k], loosen))), None)
    if wanted is None or got is None:
        return None if got is wanted else f"{got!r:.80} instead of {wanted!r:.80}"
    # Numbers of maps are Python's, and were floats of 32 bits.
    got, wanted = (np.asarray(value, np.float32 if isinstance(value, float) else None) for value in (got, wanted))
    if got.shape != wanted.shape:
        return f"shape {list(got.shape)} instead of {list(wanted.shape)}"
    if wanted.dtype.kind in "OUS":
        wrong = int((got.astype(str) != wanted.astype(str)).sum())
        return f"{wrong} of {wanted.size} texts differ" if wrong else None
    if got.dtype != wanted.dtype:
        return f"type {got.dtype} instead of {wanted.dtype}"
    if wanted.dtype.name not in TOLERANCES:
        wrong = int((got != wanted).sum())
        return f"{wrong} of {wanted.size} values differ" if wrong else None
    relative, part = (loosen * t for t in TOLERANCES[wanted.dtype.name])
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    near = np.isclose(a, b, rtol=relative, atol=part * (finite.max() if finite.size else 0) + 1e-30, equal_nan=True)
    if near.all():
        return None
    with np.errstate(invalid="ignore"):
        worst = np.nanmax(np.abs(a - b)[~near]) if np.isfinite(a - b)[~near].any() else float("nan")
    return (f"{int((~near).sum())} of {near.size} values differ, by up to {worst:.3g} "
            f"(largest magnitude {finite.max(initial=0):.3g})")


def flat(results):
    """One list of arrays, as exporters write nested results."""
    if isinstance(results, (list, tuple)):
        return [array for part in results for array in flat(part)]
    return [np.asarray(results)]


def first_difference(got, wanted, names, loosen=1.0):
    found = ((name, difference(g, w, loosen)) for name, g, w in zip(names, got, wanted))
    return next((f"output '{name}': {d}" for name, d in found if d), None)


def alike(own, path):
    """Results of a framework in the types and shapes of the model's outputs: converters write float for double and [N, 1]
    for [N]."""
    shaped = []
    for value, output in zip(own, onnx.load(path).graph.output):
        if output.type.HasField("tensor_type"):
            value, tensor = np.asarray(value), output.type.tensor_type
            if value.dtype.kind not in "OUS":
                value = value.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
            if len(tensor.shape.dim) == 2 and value.ndim == 1:
                value = value.reshape(-1, 1)
        shaped.append(value)
    return shaped


# ---- running ----


def opset_of(path):
    model = onnx.load(path, load_external_data=False)
    return ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in sorted(model.opset_import, key=lambda o: o.domain)
                     if o.domain in ("", "ai.onnx", "ai.onnx.ml"))


def run_onnxruntime(path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as error:  # pylint: disable=broad-except
        raise Stopped("onnxruntime", one_line(error)) from error


def run_cameo(path, feeds):
    try:
        model = cameo.load(path)
        findings = [f for f in model.check() if f.severity == "violation"]
        names = [output.name for output in model.outputs]
        results = cameo.Session(model, threads=1).run(None, feeds)
    except Exception as error:  # pylint: disable=broad-except
        raise Stopped("cameo", f"{type(error).__name__}: {one_line(error)}".replace(path, "model.onnx")) from error
    return names, results, findings


def contradicts(value, result):
    """Does an output have another type or shape than the file declares?"""
    result = np.asarray(result)
    if value.dtype != result.dtype or value.shape is None or len(value.shape) != result.ndim:
        return True
    return any(isinstance(declared, int) and declared != size for declared, size in zip(value.shape, result.shape))


def wrong_declarations(path, results, findings):
    """How many outputs the file declares otherwise than both runtimes compute them: ONNX Runtime only warns of it. Any
    other finding of the checker, or one that the results do not confirm, is a failure of Cameo's."""
    wrong = [value.name for value, result in zip(cameo.load(path).outputs, results)
             if not isinstance(result, (list, dict)) and contradicts(value, result)]
    for finding in findings:
        if finding.rule != "TY3" or not any(f"output '{name}'" in finding.place for name in wrong):
            raise Stopped("cameo", f"the checker objects: {finding!r}")
    return len(findings)


def feeds_for(path, arrays):
    """Arrays by the names of the model's inputs, in their order."""
    names = [value.name for value in cameo.load(path).inputs if not value.has_default]
    if len(names) != len(arrays):
        raise Stopped("converter", f"the model has {len(names)} inputs, the network {len(arrays)}")
    return dict(zip(names, arrays))


def check(path, feeds, own=None, loosen=1.0, own_loosen=4.0):
    """Cameo's results are ONNX Runtime's, and the framework's own where they are given.

    The framework computes other operators in another order than both runtimes: four times the tolerance.
    """
    try:
        names, got, findings = run_cameo(path, feeds)
    except Stopped as stopped:
        try:
            run_onnxruntime(path, feeds)
        except Stopped as peer:
            raise Stopped("converter", f"no runtime takes the file; Cameo: {stopped}; ONNX Runtime: {peer}") from peer
        raise
    declared = wrong_declarations(path, got, findings)
    differs = own is not None and first_difference(got, own, names, own_loosen)
    try:
        peer = run_onnxruntime(path, feeds)
    except Stopped as stopped:
        if declared:
            raise Stopped("converter", f"ONNX Runtime refuses what the file declares: {stopped}") from stopped
        if own is None or differs:
            raise Stopped("cameo", f"{differs or 'nothing to compare with'}; ONNX Runtime: {stopped}") from stopped
        raise
    peer_differs = first_difference(got, peer, names, loosen)
    if peer_differs:
        if own is not None and not differs:
            raise Stopped("onnxruntime", f"it differs from the framework, Cameo does not: {peer_differs}")
        raise Stopped("cameo", f"not ONNX Runtime's result: {peer_differs}")
    if differs:
        raise Stopped("converter", f"both runtimes agree, the framework does not: {differs}")
    return {"opset": opset_of(path), "declared_wrongly": declared}


# ---- training ----


def initializers(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def axes_orders(array):
    """Every order of the axes, the given one first: exporters transpose kernels."""
    return itertools.permutations(range(array.ndim)) if array.ndim <= 4 else [tuple(range(array.ndim))]


def find_weight(name, value, tensors):
    """(tensor, order of axes) that holds a weight of the framework: by name, else by its values."""
    if name in tensors and tensors[name].shape == value.shape and np.array_equal(tensors[name], value):
        return name, tuple(range(value.ndim))
    for tensor, held in tensors.items():
        if held.size != value.size or held.dtype != value.dtype:
            continue
        for order in axes_orders(value):
            turned = value.transpose(order)
            if np.array_equal(turned.ravel(), held.ravel()):
                return tensor, order
    return None


def train(path, batches, framework, *, loss, optimizer, options, folder, tolerance=1.0, evaluate=None):
    """Ten steps of Cameo against ten steps of the framework.

    batches: (arrays, target) of each step; framework(): (losses, weights before, weights after) by name;
    evaluate: (arrays, results of the trained network), where weights alone do not tell.
    """
    losses, before, after = framework()
    try:
        model = cameo.load(path)
        names = [value.name for value in model.inputs if not value.has_default]
        if len(model.outputs) > 1:
            options = {**options, "output": model.outputs[0].name}
        model.prepare(loss=loss, optimizer=optimizer, **options)
        trainer = cameo.Trainer(model, threads=1)
        got = [trainer.step({**dict(zip(names, arrays)), "target": target}) for arrays, target in batches]
        trained = os.path.join(folder, "trained.onnx")
        trainer.save(trained)
    except Exception as error:  # pylint: disable=broad-except
        raise Stopped("training", f"{type(error).__name__}: {one_line(error)}") from error
    worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(got, losses))
    if not worst <= LOSS_TOLERANCE * tolerance:
        raise Stopped("training", f"losses differ by {worst:.2g}: {got} instead of {losses}")
    start, end = initializers(path), initializers(trained)
    compared, missing, wrong = 0, [], []
    for name, value in before.items():
        found = find_weight(name, value, start)
        if not found:
            missing.append(name)
            continue
        tensor, order = found
        moved = np.linalg.norm(after[name].astype(np.float64) - value)
        # The last bit of each weight is rounding, however little it moved.
        noise = 2.0 ** -23 * np.linalg.norm(value)
        away = np.linalg.norm(end[tensor].ravel().astype(np.float64) - after[name].transpose(order).ravel())
        if not away <= WEIGHT_TOLERANCE * tolerance * moved + noise:
            wrong.append(f"{name} is {away:.2g} away, moved by {moved:.2g}")
        compared += 1
    if wrong:
        raise Stopped("training", f"{len(wrong)} of {len(before)} weights differ: {'; '.join(wrong[:3])}")
    if not compared and evaluate is None:
        raise Stopped("training", f"no weight of the network is in the file: {missing[:3]}")
    if evaluate:
        arrays, wanted = evaluate
        _, results, _ = run_cameo(trained, dict(zip(names, arrays)))
        differs = difference(results[0], wanted, 20.0 * tolerance)
        if differs:
            raise Stopped("training", f"the trained network gives other results: {differs}")
    return {"trained": True, "weights": compared, "weights_missing": len(missing)}


# ---- running rows ----


def run_row(row, report):
    folder = tempfile.mkdtemp(prefix="frontends-")
    if os.environ.get("KEEP"):
        print(f"{row.id}: {folder}", file=sys.stderr)
    result = {"row": row.id, "kind": "passed", "reason": ""}
    began = time.time()
    try:
        result.update(row.run(folder) or {})
    except Stopped as stopped:
        result.update(kind=stopped.kind, reason=str(stopped))
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        result.update(kind="test", reason=f"{type(error).__name__}: {one_line(error)}")
    finally:
        if not os.environ.get("KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
    result["seconds"] = round(time.time() - began, 1)
    print(json.dumps(result), file=report, flush=True)


def main(rows, versions):
    """versions: packages by name, for the page."""
    # Frameworks print what they like; results go where only they go.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    versions = {**versions, "onnxruntime": onnxruntime.__version__}
    print(json.dumps({"rows": [row.id for row in rows], "versions": versions}), file=report, flush=True)
    wanted = sys.stdin.read().split()
    for row in rows:
        if row.id in wanted:
            print(json.dumps({"begin": row.id}), file=report, flush=True)
            run_row(row, report)
