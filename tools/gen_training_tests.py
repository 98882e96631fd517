#!/usr/bin/env python3
# Writes python/cameo/backend/cases/*.json: tools/gen_training_tests.py, with an interpreter that has torch and onnx
# SPDX-License-Identifier: Apache-2.0
"""What the training conformance suite expects comes from PyTorch, in double precision; Cameo is not asked.

Networks are written twice, as ONNX text and with PyTorch's functions, losses and optimizers are PyTorch's own. The tolerance
of a case is ten times the distance between PyTorch's own results in single and in double precision (other kernels add up in
another order), and 1e-5 at least: functions such as Tanh are allowed to differ by several units in the last place. A case
whose tolerance would be above 1e-4, or that a learning rate wrong by 1 % would still pass, is refused.
"""

import importlib.util
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from training_cases import information, networks, options  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The module alone: the package would need a built extension.
spec = importlib.util.spec_from_file_location("cases", ROOT / "python" / "cameo" / "backend" / "_cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)

FLOOR, CEILING, MARGIN = 1e-5, 1e-4, 10


def tensors(arrays, dtype):
    return {name: torch.tensor(array, dtype=dtype) if array.dtype.kind == "f" else torch.tensor(array)
            for name, array in arrays.items()}


def results(file, row, compute, dtype, wrong=1.0):
    """(losses, evaluated, weights) of a case in one precision; wrong: a factor of the learning rate."""
    model = file["models"][row["model"]]
    case = cases.Case(file, {**row, "losses": [], "evaluated": 0, "weights": {}, "tolerance": 0})
    weights = tensors({name: cases.make(f"{file['file']}/{row['model']}/{name}", spec)
                       for name, spec in model["weights"].items()}, dtype)
    batches = [tensors(case.batch(step), dtype) for step in range(row["steps"] + 1)]
    return compute(weights, batches[:-1], batches[-1], wrong)


def distance(a, b):
    """The largest |x - y| / (1 + |y|)."""
    flat = [[*losses, evaluated, *(x for name in sorted(weights) for x in weights[name].reshape(-1).tolist())]
            for losses, evaluated, weights in (a, b)]
    return max(abs(x - y) / (1 + abs(y)) for x, y in zip(*flat, strict=True))


def short(number):
    return float(f"{number:.9g}")


def finish(file, row, compute):
    """The row with what is expected."""
    exact = results(file, row, compute, torch.float64)
    doubles = any(kind == "double" for kind, *_ in file["models"][row["model"]]["weights"].values())
    noise = 0 if doubles else distance(results(file, row, compute, torch.float32), exact)
    tolerance = max(FLOOR, float(f"{MARGIN * noise:.1e}"))
    moved = distance(results(file, row, compute, torch.float64, 1.01), exact)
    if tolerance > CEILING or moved < 2 * tolerance:
        raise SystemExit(f"{row['name']}: noise {noise:.1e}, a wrong rate shows as {moved:.1e}: choose other numbers")
    losses, evaluated, weights = exact
    row = {key: value for key, value in row.items() if key != "steps"}
    return {**row, "losses": [short(loss) for loss in losses], "evaluated": short(evaluated),
            "weights": {name: [short(x) for x in weights[name].reshape(-1).tolist()] for name in sorted(weights)},
            "tolerance": tolerance}


def text_of(file):
    """JSON, a case a line."""
    head = {key: value for key, value in file.items() if key != "cases"}
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in file["cases"])
    return json.dumps(head, indent=1)[:-2] + ',\n "cases": [\n' + lines + "\n]}\n"


def main():
    torch.set_num_threads(1)
    total = 0
    for file, rows in (*networks.files(), *options.files(), *information.files()):
        file = {"format": 1, **file, "cases": [finish(file, row, compute) for row, compute in rows]}
        path = cases.FOLDER / f"{file['file']}.json"
        path.write_text(text_of(file), encoding="utf-8")
        worst = max(row["tolerance"] for row in file["cases"])
        print(f"{path.name}: {len(file['cases'])} cases, {path.stat().st_size} bytes, tolerances up to {worst:.1e}")
        total += len(file["cases"])
    print(f"{total} cases")


if __name__ == "__main__":
    main()
