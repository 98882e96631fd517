#!/usr/bin/env python3
"""ONNX's node suite through SavedModels that `cameo export --to savedmodel` writes, judged by TensorFlow.

    savedmodel.py CAMEO FOLDER [--only REGEX] [--list]

Counts the expanded twins apart. A case that is refused or differs is listed with the reason.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

import tensorflow as tf  # noqa: E402

WIDER = {
    **{np.dtype(getattr(ml_dtypes, name)): np.float32 for name in (
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")},
    np.dtype(ml_dtypes.int4): np.int8, np.dtype(ml_dtypes.uint4): np.uint8,
    np.dtype(ml_dtypes.int2): np.int8, np.dtype(ml_dtypes.uint2): np.uint8,
}


class Refused(Exception):
    """The model was not exported."""


def read(path, type_proto):
    if type_proto.WhichOneof("value") != "tensor_type":
        raise Refused("sequences, optionals and maps")
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    array = numpy_helper.to_array(tensor)
    return array.astype(WIDER[array.dtype]) if array.dtype in WIDER else array


def feed(array):
    return tf.constant(array.astype(object) if array.dtype.kind in "OUS" else array)


def differs(got, wanted):
    got = np.asarray(got)
    if wanted.dtype.kind in "OUS":
        texts = [x.decode() if isinstance(x, bytes) else x for x in got.reshape(-1)]
        wanted_texts = [x.decode() if isinstance(x, bytes) else str(x) for x in wanted.reshape(-1)]
        return None if got.shape == wanted.shape and texts == wanted_texts else "texts differ"
    if got.shape != wanted.shape:
        return f"shape {got.shape}, expected {wanted.shape}"
    if got.dtype != wanted.dtype:
        return f"type {got.dtype}, expected {wanted.dtype}"
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    low = wanted.dtype.itemsize < 4 and wanted.dtype.kind in "fV"
    if np.allclose(got.astype(wide), wanted.astype(wide), rtol=2e-2 if low else 1e-3, atol=1e-5, equal_nan=True):
        return None
    return f"largest difference {np.nanmax(np.abs(got.astype(wide) - wanted.astype(wide))):.3g}"


def export(cameo, model, folder):
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run([cameo, "export", str(model), "--to", "savedmodel", "-o", str(folder)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr.strip()[:600])


def run_case(cameo, case, scratch):
    model = onnx.load(case / "model.onnx")
    initializers = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in initializers]
    sets = []
    for data in sorted(case.glob("test_data_set_*")):
        given = {v.name: read(data / f"input_{i}.pb", v.type) for i, v in enumerate(inputs)
                 if (data / f"input_{i}.pb").exists()}
        wanted = {v.name: read(data / f"output_{i}.pb", v.type) for i, v in enumerate(model.graph.output)}
        sets.append((given, wanted))
    export(cameo, case / "model.onnx", scratch)
    loaded = tf.saved_model.load(str(scratch))
    serve = loaded.signatures["serving_default"]
    for given, wanted in sets:
        results = serve(**{k: feed(v) for k, v in given.items()})
        for name, value in wanted.items():
            random = re.match(r"test_(bernoulli|dropout_default_mask_ratio_random)", case.name)
            why = differs(results[name].numpy(), value) if not random else None
            if why:
                return f"{name}: {why}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cameo")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="print every case")
    parser.add_argument("--part", default="0/1", help="K/N: every N-th case from K on")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    counts = collections.Counter()
    reasons = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate(sorted(options.folder.iterdir())):
            if not (case / "model.onnx").exists() or not re.search(options.only, case.name) or number % parts != part:
                continue
            kind = "expanded" if case.name.endswith("_expanded") else "plain"
            try:
                why = run_case(options.cameo, case, pathlib.Path(scratch) / "model")
                outcome = "failed" if why else "passed"
            except Refused as refusal:
                why, outcome = str(refusal), "refused"
            except Exception as error:  # pylint: disable=broad-except
                why, outcome = f"{type(error).__name__}: {error}"[:600], "failed"
            counts[kind, outcome] += 1
            if why:
                reasons.append(f"{outcome} {case.name}: {' '.join(why.split())}")
            if options.list and why:
                print(reasons[-1], flush=True)
    if not options.list:
        print("\n".join(reasons))
    for kind in ("plain", "expanded"):
        row = [counts[kind, outcome] for outcome in ("passed", "failed", "refused")]
        print(f"{kind}: {row[0]} passed, {row[1]} failed, {row[2]} refused")
    return 1 if any(outcome == "failed" and count for (_, outcome), count in counts.items()) else 0


if __name__ == "__main__":
    sys.exit(main())
