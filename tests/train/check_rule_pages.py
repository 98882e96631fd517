"""The pages on adding losses and optimizers: the files that they show are those of the tree, and their examples work.

usage: check_rule_pages.py GENERATOR ROOT

GENERATOR is the built tools/gen_training. The text of a committed file on a page must be that file; an example that is no
file of the tree is given to the generator together with all files, and its function is computed by onnx's reference evaluator.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx.helper
import onnx.parser
from onnx.reference import ReferenceEvaluator

PAGES = {"adding-a-loss.md": "losses", "adding-an-optimizer.md": "optimizers"}
# name of an example: operands, and what its first result is
COMPUTED = {
    "log-cosh": ({"x": [[0.5, -1.0]], "y": [[0.0, 1.0]]}, np.mean(np.log(np.cosh([0.5, -2.0])))),
    "sign": ({"g": [0.5, -2.0, 0.0], "lr": 0.1}, [0.1, -0.1, 0.0]),
}


def shown(page):
    """(file, text) of each fenced block after a sentence that names a file of data/training/."""
    folder = ""
    for match in re.finditer(r"`(data/training/\w+/)?([\w-]+\.txt)`[\w\s]*:\n+```\n(.*?)```", page, re.S):
        folder = match.group(1) or folder
        yield folder + match.group(2), match.group(3)


def generate(generator, root, path, text):
    """The tables with one more file; an answer in words where the generator refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(root, "data/training"), os.path.join(folder, "data/training"))
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)
        files = [os.path.relpath(os.path.join(place, name), folder)
                 for place, _, names in os.walk(os.path.join(folder, "data/training")) for name in names]
        tables = ["table.c", "names.h", "rules.h"]
        done = subprocess.run([generator, *tables, *sorted(files)], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            return "", done.stderr.strip()
        return "".join(open(os.path.join(folder, table), encoding="utf-8").read() for table in tables), ""


def compute(text, operands):
    function = onnx.parser.parse_function('<domain: "rules", opset_import: ["" : 17]>\n' + text[text.index("\n\n") + 2:])
    feeds = {name: np.float32(operands[name]) for name in function.input}
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape) for name, value in feeds.items()]
    outputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in function.output]
    graph = onnx.helper.make_graph(function.node, "rule", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=function.opset_import, ir_version=8)
    return ReferenceEvaluator(model).run(None, feeds)[0]


def main():
    generator, root = os.path.abspath(sys.argv[1]), sys.argv[2]
    passed = failed = 0

    def check(what, good, why=""):
        nonlocal passed, failed
        passed, failed = passed + bool(good), failed + (not good)
        print(f"{'ok' if good else 'FAIL':4} {what}{'' if good else ': ' + str(why)}")

    for page, kind in PAGES.items():
        with open(os.path.join(root, "docs", page), encoding="utf-8") as file:
            blocks = dict(shown(file.read()))
        check(f"{page}: shows a file of the tree and an example", len(blocks) == 2, sorted(blocks))
        for path, text in blocks.items():
            name = os.path.basename(path)[:-4]
            if name not in COMPUTED:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    check(f"{page}: {path} is as shown", file.read() == text, "the page or the file changed")
                continue
            tables, why = generate(generator, root, path, text)
            check(f"{page}: the generator takes {path}", f'"{name}"' in tables and path.split("/")[2] == kind, why)
            operands, wanted = COMPUTED[name]
            got = compute(text, operands)
            check(f"{page}: the function of {name}", np.allclose(got, wanted, rtol=1e-5), got)
    print(f"# counts: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
