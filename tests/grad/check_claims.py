#!/usr/bin/env python3
# Computes what data/gradients/ claims of gradients at kinks and compares.
# SPDX-License-Identifier: Apache-2.0
"""usage: check_claims.py CAMEO FOLDER

Each line `at X=0, slope=0.25: dX=1` of an operator in FOLDER/ai.onnx.txt becomes a model, which `CAMEO grad`
differentiates, all gradients of results being 1, and `CAMEO run` computes. Names that are no operands are
attributes. Every claim must hold to the last bit that the text gives.
"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx.defs


def split(text, mark):
    """At marks outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def assignments(text):
    return dict(part.split("=", 1) for part in split(text, ","))


def number(text):
    return np.array(eval(text, {"inf": math.inf, "nan": math.nan}), dtype=np.float64)


def read_claims(folder):
    for path in sorted(folder.glob("*.txt")):
        for block in re.split(r"\n\s*\n", path.read_text()):
            names, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
            for line in lines:
                if line.startswith("at "):
                    for name in names.split():
                        yield path.stem, name, line[3:]


def gradient_name(name):
    return ("d" if name[0].isupper() else "d_") + name


def tensor_text(name, value, element):
    shape = f"[{','.join(map(str, value.shape))}]" if value.shape else ""
    return f"{element}{shape} {name} = {{{', '.join(f'{x:g}' for x in value.ravel())}}}"


def model_text(op, given):
    """The operator with its operands as initializers; the names of those that are floats; its first result."""
    schema = onnx.defs.get_schema(op)
    single = schema.inputs[:-1] if schema.inputs[-1].option.name == "Variadic" else schema.inputs
    names = [param.name for param in single]
    types = {param.name: param.types for param in schema.inputs}
    if len(single) < len(schema.inputs):  # operands of a variadic one are numbered
        stem = schema.inputs[-1].name.removesuffix("_0")
        more = sorted(name for name in given if re.fullmatch(re.escape(stem) + r"_\d+", name))
        types.update({name: schema.inputs[-1].types for name in more})
        names += more
    operands = [name if name in given else '""' for name in names]
    while operands[-1] == '""':
        operands.pop()
    element = {name: "float" if "tensor(float)" in types[name] else "int64" for name in operands if name != '""'}
    attributes = ", ".join(f"{name} = {text}" for name, text in given.items() if name not in element)
    result = schema.outputs[0].name
    tensors = ", ".join(tensor_text(name, number(given[name]), element[name]) for name in element)
    text = (f'<ir_version: 10, opset_import: ["": {onnx.defs.onnx_opset_version()}]> g () => ({result}) <{tensors}> '
            f"{{{result} = {op} {f'<{attributes}>' if attributes else ''} ({', '.join(operands)})}}")
    return text, [name for name in element if element[name] == "float"], result


def call(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout.strip()}")


def check(cameo, domain, op, claim, folder):
    """None, or what is wrong."""
    if domain != "ai.onnx":
        return "claims are about operators of ai.onnx"
    point, _, wanted = claim.rpartition(": ")
    text, floats, result = model_text(op, assignments(point))
    model, made = folder / "model.onnxtxt", folder / "made.onnx"
    model.write_text(text)
    call(cameo, "grad", model, "--of", result, "--wrt", ",".join(floats), "-o", made)
    call(cameo, "run", made, "-o", folder / "out")
    by_gradient = {gradient_name(name): name for name in floats}
    for name, value in assignments(wanted).items():
        if name not in by_gradient:
            return f"{name} is the gradient of no operand"
        got = np.load(folder / "out" / f"gradient.{by_gradient[name]}.npy")
        if got.shape != number(value).shape or not np.array_equal(got, number(value).astype(got.dtype), equal_nan=True):
            return f"{name} is {got.tolist()}"
    return None


def main():
    cameo, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    passed, failed = 0, 0
    for domain, op, claim in read_claims(folder):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                wrong = check(cameo, domain, op, claim, pathlib.Path(scratch))
            except RuntimeError as error:
                wrong = str(error)
        if wrong:
            print(f"{domain}: {op}: at {claim}: {wrong}")
        failed += bool(wrong)
        passed += not wrong
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
