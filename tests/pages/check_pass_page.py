"""The page on adding a pass: its examples apply to the tree, and a command that is built with them has both passes.

usage: check_pass_page.py ROOT BUILD

Each ```diff block of docs/adding-a-pass.md is applied to copies of the files that it changes. These are compiled as the
build compiled them, and linked with the objects of the command and the static library of BUILD.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import sys
import tempfile

from page_changes import apply, changes_of, commands_of, compile_file, link, run

ABS = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N] x) => (float[N] y) { a = Neg(x) y = Abs(a) }
"""
LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul(x, w) }
"""


def check(command, work):
    for name, text in ("abs", ABS), ("line", LINE):
        with open(os.path.join(work, name + ".onnxtxt"), "w", encoding="utf-8") as file:
            file.write(text)
    run(command, "optimize", "abs.onnxtxt", "--passes", "abs-of-neg", "-o", "out.onnx", cwd=work)
    assert "Neg" not in run(command, "print", "out.onnx", cwd=work), "abs-of-neg left a Neg"
    prepare = [command, "prepare", "line.onnxtxt", "--loss", "mse", "--optimizer", "sgd", "-o", "out.onnx"]
    assert "1 tensors are trained" in run(*prepare, cwd=work), "tell-size says nothing"
    assert "tensors are" not in run(*prepare, "--without", "tell-size", cwd=work), "tell-size is not left out"


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    changes, commands = changes_of(root, "adding-a-pass.md"), commands_of(build)
    assert len(changes) == 2, f"{len(changes)} changes are shown, expected 2"
    with tempfile.TemporaryDirectory(prefix="cameo-pass-") as work:
        files = [name for change in changes for name in apply(root, work, change)]
        objects = [compile_file(root, build, work, name, commands) for name in files if name.endswith(".c")]
        check(link(build, work, objects), work)
    print("# counts: 2 passed, 0 failed")


if __name__ == "__main__":
    main()
