#!/usr/bin/env python3
# Judges `cameo optimize` by ONNX Runtime: the optimized model must give what the original gives.
# SPDX-License-Identifier: Apache-2.0
"""usage: check_optimized.py [--functions] [--keep FOLDER] [--env VARIABLE] FOLDER..

Each FOLDER is a backend test folder (model.onnx, test_data_set_*), or holds such folders, or is a model; of one
that carries its training the step is taken. Single models are given random inputs and judged by what ONNX
Runtime makes of them.

The model is optimized with --portable, or with --functions as it is by default, by the command that CAMEO names.
ONNX Runtime runs the original and the optimized model on the inputs of each data set; what the optimized one gives
must be within the tolerance of data.json (rtol 1e-3 where there is none) of the outputs in the data set or, where
the original is not either, of what the original gives. `cameo test` is asked the same. The optimized model must
also pass ONNX's own checker, if the original does.

The last line is `N passed, N failed`. Models that ONNX Runtime cannot run as they come are judged by Cameo alone,
those that Cameo cannot run are left out; both are counted before it. --env names a variable that holds further
folders, separated by colons.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

CAMEO = os.environ.get("CAMEO", "build/cameo")


def find_folders(paths, work):
    for path in paths:
        path = Path(path)
        if path.is_file():
            yield make_folder(path, work / "made" / path.stem)
        elif (path / "model.onnx").is_file():
            yield path
        else:
            yield from sorted(p.parent for p in path.glob("**/model.onnx")
                              if any(p.parent.glob("test_data_set_*")))


def make_value(random, info):
    kind = info.type.tensor_type
    shape = [d.dim_value or 3 for d in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if dtype.kind == "f":
        return np.asarray(np.abs(random.standard_normal(shape)), dtype)
    return np.asarray(random.integers(0, 2, shape), dtype)


def make_folder(path, folder):
    """A backend test folder for a single model, or for the training step of one that carries it."""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    trains = path.suffix == ".onnx" and onnx.load(path).training_info
    command = ["step", str(path), "--portable"] if trains else ["copy", str(path)]
    subprocess.run([CAMEO, *command, "-o", str(folder / "model.onnx")], check=True,
                   capture_output=True)
    model = onnx.load(folder / "model.onnx")
    initial = {t.name for t in model.graph.initializer}
    random = np.random.default_rng(1)
    feeds = {}
    for i, info in enumerate(v for v in model.graph.input if v.name not in initial):
        feeds[info.name] = make_value(random, info)
        (data / f"input_{i}.pb").write_bytes(
            numpy_helper.from_array(feeds[info.name]).SerializeToString())
    for i, value in enumerate(session(folder / "model.onnx").run(None, feeds)):
        (data / f"output_{i}.pb").write_bytes(
            numpy_helper.from_array(np.asarray(value)).SerializeToString())
    return folder


def read_value(path, value_type):
    data = path.read_bytes()
    kind = value_type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "map_type":
        return numpy_helper.to_dict(onnx.MapProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def read_values(folder, what, infos):
    return [read_value(folder / f"{what}_{i}.pb", info.type) for i, info in enumerate(infos)
            if (folder / f"{what}_{i}.pb").is_file()]


def differs(got, wanted, rtol, atol):
    """What is wrong with a result, or None."""
    if isinstance(wanted, dict) or isinstance(got, dict):
        if set(got) != set(wanted):
            return "other keys"
        return next((d for k in wanted if (d := differs(got[k], wanted[k], rtol, atol))), None)
    if isinstance(wanted, list) or isinstance(got, list):
        if len(got) != len(wanted):
            return f"{len(got)} items, not {len(wanted)}"
        return next((d for g, w in zip(got, wanted) if (d := differs(g, w, rtol, atol))), None)
    if wanted is None or got is None:
        return None if wanted is got else "one is empty"
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    if got.dtype.kind in "OSU" or wanted.dtype.kind in "OSU":
        return None if np.array_equal(got.astype(str), wanted.astype(str)) else "other strings"
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    # The largest value counts, as in the tolerance that `cameo test --tolerance-scaled` has.
    finite = np.abs(wanted[np.isfinite(wanted)])
    bound = atol + rtol * (finite.max() if finite.size else 0)
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(got - wanted) <= bound) | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    if not wrong.any():
        return None
    at = np.unravel_index(np.argmax(wrong), wrong.shape) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} elements differ, first {got[at]} for {wanted[at]}"


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # What the graph says, not what another optimizer makes of it.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Case:
    def __init__(self, folder):
        self.folder = folder
        model = onnx.load(folder / "model.onnx", load_external_data=False)
        initial = {t.name for t in model.graph.initializer}
        self.inputs = [i for i in model.graph.input if i.name not in initial]
        self.outputs = list(model.graph.output)
        settings = folder / "data.json"
        told = json.loads(settings.read_text()) if settings.is_file() else {}
        self.told = bool(told)
        self.rtol = max(told.get("rtol", 1e-3), 1e-6)
        self.atol = told.get("atol", 1e-7)
        self.sets = sorted(folder.glob("test_data_set_*"))

    def run(self, runner, data):
        feeds = dict(zip((i.name for i in self.inputs), read_values(data, "input", self.inputs)))
        return runner.run([o.name for o in self.outputs], feeds)

    def judge(self, got, wanted):
        for info, g, w in zip(self.outputs, got, wanted):
            found = differs(g, w, self.rtol, self.atol)
            if found:
                return f"output '{info.name}': {found}"
        return None

    def compare(self, original, optimized):
        """What ONNX Runtime finds wrong with the optimized model, or None."""
        for data in self.sets:
            got = self.run(optimized, data)
            wanted = read_values(data, "output", self.outputs)
            found = self.judge(got, wanted)
            if found:
                reference = self.run(original, data)
                if not self.judge(reference, wanted) or self.judge(got, reference):
                    return found
        return None


def optimize(source, target, functions):
    command = [CAMEO, "optimize", str(source), "-o", str(target), "--as-is"] + ([] if functions else ["--portable"])
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return None if done.returncode == 0 else f"optimize: {done.stderr.strip()[:500]}"


def ask_cameo(folder, case):
    tolerance = ["--tolerance-scaled", str(case.rtol)] if case.told else []
    done = subprocess.run([CAMEO, "test", str(folder), *tolerance], capture_output=True, text=True,
                          errors="replace")
    lines = (done.stdout + done.stderr).strip().splitlines()
    return None if done.returncode == 0 else "cameo test: " + " ".join(lines)[:500]


def prepare_folder(case, work):
    """A folder like the case's, for the optimized model."""
    made = work / case.folder.name
    made.mkdir(parents=True)
    for data in case.sets:
        (made / data.name).symlink_to(data.resolve())
    return made


def is_legal(path):
    """What ONNX's checker finds, or None."""
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # pylint: disable=broad-except
        return f"checker: {str(error).strip()[:500]}"
    return None


def check(case, work, functions):
    """Returns (what is wrong or None, who can run the original: "both", "cameo", "ort")."""
    made = prepare_folder(case, work)
    found = optimize(case.folder / "model.onnx", made / "model.onnx", functions)
    if found:
        runs = subprocess.run([CAMEO, "run", str(case.folder / "model.onnx"), "--random-inputs"],
                              capture_output=True)
        return found, "both" if runs.returncode == 0 else "ort"
    found = is_legal(made / "model.onnx")
    if found and not is_legal(case.folder / "model.onnx"):
        return found, "both"
    try:
        original = session(case.folder / "model.onnx")
        for data in case.sets:
            case.run(original, data)
    except Exception:  # pylint: disable=broad-except
        return ask_cameo(made, case), "cameo"
    try:
        found = case.compare(original, session(made / "model.onnx"))
    except Exception as error:  # pylint: disable=broad-except
        found = f"{type(error).__name__}: {str(error).strip()[:500]}"
    if found:
        return found, "both"
    if ask_cameo(case.folder, case):
        return None, "both"  # Cameo does not meet this tolerance with the original either
    return ask_cameo(made, case), "both"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--env")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    more = os.environ.get(args.env, "") if args.env else ""
    folders = args.folders + [folder for folder in more.split(":") if folder]
    ort.set_default_logger_severity(4)
    passed = failed = unknown = alone = 0
    work = args.keep or Path(tempfile.mkdtemp())
    for number, folder in enumerate(find_folders(folders, work)):
        found, ran = check(Case(folder), work / str(number), args.functions)
        alone += ran == "cameo"
        if ran == "ort":
            unknown += 1
        elif found:
            failed += 1
            print(f"FAIL {folder}: {found}", flush=True)
        else:
            passed += 1
        if not args.keep:
            shutil.rmtree(work / str(number), ignore_errors=True)
    if not args.keep:
        shutil.rmtree(work, ignore_errors=True)
    if unknown:
        print(f"{unknown} left out: Cameo does not run them as they come")
    if alone:
        print(f"{alone} judged by Cameo alone: ONNX Runtime does not run them as they come")
    print(f"# counts: {passed} passed, {failed} failed" if os.environ.get("TESTS")
          else f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
