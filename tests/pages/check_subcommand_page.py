"""The page on adding a subcommand: its example applies to the tree, and a command that is built with it has the
subcommand, its help and its completions.

usage: check_subcommand_page.py ROOT BUILD
"""
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys
import tempfile

from page_changes import apply, changes_of, commands_of, compile_file, link, run

MODEL = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
net (float[N] x) => (float[N] y) { y = Abs(x) }
"""


def list_commands(root, build, work, files):
    """What the build makes of the lines that begin with CLI_COMMAND, the new one with them."""
    os.makedirs(os.path.join(work, "build/generated"), exist_ok=True)
    known = [os.path.join(root, "cli", name) for name in sorted(os.listdir(os.path.join(root, "cli")))
             if name.endswith(".c")]
    run(os.path.join(build, "tools/scan"), "commands", os.path.join(work, "build/generated/command_list.c"), *known,
        *(os.path.join(work, name) for name in files))
    return "build/generated/command_list.c"


def check(command, work):
    with open(os.path.join(work, "net.onnxtxt"), "w", encoding="utf-8") as file:
        file.write(MODEL)
    said = run(command, "opsets", "net.onnxtxt", cwd=work)
    assert said == "net.onnxtxt: ai.onnx 17\nnet.onnxtxt: com.microsoft 1\n", said
    said = run(command, "opsets", "--json", "net.onnxtxt", cwd=work)
    assert '"version": 17' in said, said
    assert "  opsets     list the operator sets of models" in run(command, "help", cwd=work), "no line in the help"
    assert "cameo opsets *.onnx" in run(command, "help", "opsets", cwd=work), "no examples"
    assert "opsets" in run(command, "--generate", "bash", cwd=work), "no completion"
    done = subprocess.run([command, "opsets", "none.onnx"], cwd=work, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "cameo: there is no file 'none.onnx'\n"), done


def main():
    root, build = map(os.path.abspath, sys.argv[1:3])
    changes, commands = changes_of(root, "adding-a-subcommand.md"), commands_of(build)
    assert len(changes) == 1, f"{len(changes)} changes are shown, expected 1"
    with tempfile.TemporaryDirectory(prefix="cameo-subcommand-") as work:
        files = apply(root, work, changes[0])
        files.append(list_commands(root, build, work, files))
        shutil.copytree(os.path.join(root, "cli"), os.path.join(work, "cli"), dirs_exist_ok=True)
        objects = [compile_file(root, build, work, name, commands) for name in files]
        check(link(build, work, objects), work)
    print("# counts: 1 passed, 0 failed")


if __name__ == "__main__":
    main()
