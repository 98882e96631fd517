"""The page on adding a pass: its examples apply to the tree, and a command that is built with them has both passes.

usage: check_pass_page.py ROOT BUILD

Each ```diff block of docs/adding-a-pass.md is applied to copies of the files that it changes. These are compiled as the
build compiled them, and linked with the objects of the command and the static library of BUILD.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ABS = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N] x) => (float[N] y) { a = Neg(x) y = Abs(a) }
"""
LINE = """<ir_version: 8, opset_import: ["" : 17]>
line (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul(x, w) }
"""


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{shlex.join(words)[:300]}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def apply(root, work, change):
    """The files of the tree, copied and changed."""
    files = re.findall(r"^\+\+\+ b/(\S+)", change, re.M)
    for name in files:
        os.makedirs(os.path.dirname(os.path.join(work, name)), exist_ok=True)
        if os.path.exists(os.path.join(root, name)) and not os.path.exists(os.path.join(work, name)):
            shutil.copy(os.path.join(root, name), os.path.join(work, name))
    run("git", "apply", "-", cwd=work, input=change)
    return files


def compile_file(root, build, work, name, commands):
    """The object of a changed file: with the flags of the file of its folder that the build knows."""
    path = os.path.join(root, name)
    like = commands.get(path) or next(words for known, words in commands.items()
                                      if os.path.dirname(known) == os.path.dirname(path))
    made, words = os.path.join(work, os.path.basename(name) + ".o"), shlex.split(like)
    words[words.index("-o") + 1] = made
    words[words.index("-c") + 1] = os.path.join(work, name)
    words.insert(words.index("-o"), "-I" + os.path.join(work, "src"))
    words = [word for word in words if word != "-I" + os.path.join(root, "src")] + ["-I" + os.path.join(root, "src")]
    run(*words, cwd=build)
    return made


def link(build, work, objects):
    lines = run("ninja", "-t", "commands", "cameo", cwd=build).splitlines()
    words = shlex.split(lines[-1].removeprefix(": && ").removesuffix(" && :"))
    out = words.index("-o")
    words[out + 1:out + 2] = [os.path.join(work, "cameo"), *objects]  # found before those of the library
    run(*words, cwd=build)
    return os.path.join(work, "cameo")


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
    with open(os.path.join(root, "docs/adding-a-pass.md"), encoding="utf-8") as file:
        changes = re.findall(r"```diff\n(.*?)```", file.read(), re.S)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {row["file"]: row["command"] for row in json.load(file)}
    assert len(changes) == 2, f"{len(changes)} changes are shown, expected 2"
    with tempfile.TemporaryDirectory(prefix="cameo-pass-") as work:
        files = [name for change in changes for name in apply(root, work, change)]
        objects = [compile_file(root, build, work, name, commands) for name in files if name.endswith(".c")]
        check(link(build, work, objects), work)
    print("# counts: 2 passed, 0 failed")


if __name__ == "__main__":
    main()
