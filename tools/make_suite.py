#!/usr/bin/env python3
# Writes ONNX's backend test cases as folders: those the onnx package carries are copied, the node cases are made by its code.
# SPDX-License-Identifier: Apache-2.0
"""usage: make_suite.py FOLDER

Writes FOLDER/{node,simple,light,pytorch-operator,pytorch-converted}/CASE/{model.onnx,test_data_set_0/*.pb} and leaves FOLDER/stamp
with the version and the number of models. Does nothing when the stamp is that of the installed onnx.
"""

import json
import os
import pathlib
import shutil
import sys
import warnings

FORMAT = 1  # of what this script writes; part of the stamp
COPIED = ("simple", "light", "pytorch-operator", "pytorch-converted")


def as_proto(value, info):
    """A test value as the message that ONNX's case folders use for its type."""
    from onnx import TensorProto, numpy_helper

    kind = info.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        return value
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(value, info.name)


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    # What the judge of the case may overlook; absent where it is the default.
    if (case.rtol, case.atol) != (1e-3, 1e-7):
        (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir()
        for side, values, infos in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for j, value in enumerate(values):
                proto = as_proto(value, infos[j])
                (data / f"{side}_{j}.pb").write_bytes(proto.SerializeToString())


def write_node_cases(folder):
    from onnx.backend.test.loader import load_model_tests

    # The cases compute edge values on purpose: overflow, division by zero.
    warnings.simplefilter("ignore")
    cases = load_model_tests(kind="node")
    for case in cases:
        write_case(case, folder / case.name)


def light_input(info):
    """What ONNX's runner feeds to the light models: a ramp from 0 to 1, unknown dimensions taken as 1."""
    import numpy as np
    from onnx import numpy_helper

    shape = [d.dim_value if d.HasField("dim_value") else 1 for d in info.type.tensor_type.shape.dim]
    n = int(np.prod(shape))
    return numpy_helper.from_array(
        (np.arange(n).reshape(shape) / n).astype(np.float32), info.name
    )


def copy_light(source, folder):
    """The light models lie flat and without inputs; here each gets a folder like all others."""
    import onnx

    settings = {}
    for path in source.parent.glob("real/*/data.json"):
        data = json.loads(path.read_text())
        settings[pathlib.Path(data["url"]).stem] = {k: data[k] for k in ("rtol", "atol")}
    for path in sorted(source.glob("*.onnx")):
        case = folder / path.stem
        data = case / "test_data_set_0"
        data.mkdir(parents=True)
        shutil.copyfile(path, case / "model.onnx")
        shutil.copyfile(source / f"{path.stem}_output_0.pb", data / "output_0.pb")
        if path.stem in settings:
            (case / "data.json").write_text(json.dumps(settings[path.stem]))
        graph = onnx.load(path).graph
        weights = {t.name for t in graph.initializer}
        for j, info in enumerate(i for i in graph.input if i.name not in weights):
            (data / f"input_{j}.pb").write_bytes(light_input(info).SerializeToString())


def write_suite(folder):
    from onnx.backend.test.loader import DATA_DIR

    for kind in COPIED:
        source = pathlib.Path(DATA_DIR) / kind
        if kind == "light":
            copy_light(source, folder / kind)
        else:
            shutil.copytree(source, folder / kind)
    write_node_cases(folder / "node")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    import importlib.metadata

    folder = pathlib.Path(sys.argv[1])
    version = importlib.metadata.version("onnx")
    stamp = folder / "stamp"
    wanted = f"onnx {version} format {FORMAT}"
    if stamp.exists() and stamp.read_text().startswith(wanted + "\n"):
        return
    print(f"writing the test suite of onnx {version} into {folder}", file=sys.stderr)
    # A folder half written must not be taken for a whole one: it gets its name last.
    fresh = folder.with_name(folder.name + f".{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    write_suite(fresh)
    models = sum(1 for _ in fresh.rglob("*.onnx"))
    (fresh / "stamp").write_text(f"{wanted}\n{models} models\n")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)


if __name__ == "__main__":
    main()
