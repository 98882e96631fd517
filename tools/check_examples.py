#!/usr/bin/env python3
# Runs the examples of docs/check-rules.md: the page shows what `cameo check` prints.
# SPDX-License-Identifier: Apache-2.0
"""usage: check_examples.py CAMEO [--update]

Every rule has a section `### ID` with an example. A diff has the broken model in the lines with - and
the mended one in those with +. Where ONNX's text form cannot say what is wrong, a block `onnx` has the
mended model and a block `python` breaks it: `model` is its ModelProto. The block `text` is what `cameo
check` prints of the broken one, which breaks that rule and no other (but one of which the section says
`comes with ID`); of the mended one it finds nothing. Beside the models lies w.bin, 8 bytes.
--update writes the blocks `text` anew. Needs the package onnx.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

PAGE = Path(__file__).resolve().parent.parent / "docs" / "check-rules.md"
RULES = Path(__file__).resolve().parent.parent / "src" / "check" / "check_rules.h"
SECTION = re.compile(r"^### ([A-Z]+\d+)\n(.*?)(?=^##|\Z)", re.M | re.S)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.M | re.S)


def side(diff, sign):
    return "".join(line[1:] + "\n" for line in diff.splitlines() if line[:1] in (" ", sign))


class Folder:
    def __init__(self, cameo, path):
        self.cameo, self.path = cameo, Path(path)
        (self.path / "w.bin").write_bytes(bytes(8))

    def run(self, *args):
        return subprocess.run([*self.cameo, *args], cwd=self.path, capture_output=True, text=True,
                              check=False)

    def check(self, text, edit=None):
        """What is printed of a model."""
        name = "model.onnxtxt"
        (self.path / name).write_text(text)
        if edit:
            (self.path / "model.onnx").unlink(missing_ok=True)
            done = self.run("copy", name, "-o", "model.onnx")
            if done.returncode:
                return done.stderr
            name = "model.onnx"
            model = onnx.load(self.path / name, load_external_data=False)
            exec(edit, {"model": model})  # of our own page
            (self.path / name).write_bytes(model.SerializeToString())
        done = self.run("check", name)
        return done.stdout + done.stderr


def judge(folder, rule, body):
    """What the broken model gives, and what is wrong with the example."""
    blocks = dict(BLOCK.findall(body))
    if "diff" in blocks:
        mended = side(blocks["diff"], "+")
        said = folder.check(side(blocks["diff"], "-"))
    else:
        mended = blocks["onnx"]
        said = folder.check(mended, blocks["python"])
    wrong = []
    clean = folder.check(mended)
    if not clean.startswith("0 violations, 0 warnings"):
        wrong.append(f"{rule}: the mended model gives: {clean}")
    found = set(re.findall(r"^model\.onnx\w*: (\w+): ", said, re.M))
    if found - set(re.findall(r"comes with (\w+)", body)) != {rule}:
        wrong.append(f"{rule}: the broken model gives: {said}")
    return said, wrong


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    update = "--update" in sys.argv
    page = PAGE.read_text()
    rules = re.findall(r"^    ROW\((\w+),", RULES.read_text(), re.M)
    wrong, seen = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Folder([str(Path(sys.argv[1]).resolve())], scratch)

        def visit(match):
            rule, body = match.groups()
            said, problems = judge(folder, rule, body)
            shown = dict(BLOCK.findall(body)).get("text", "")
            if shown != said and not update:
                problems.append(f"{rule}: the page says\n{shown}and the command\n{said}")
            seen.append(rule)
            wrong.extend(problems)
            return match.group(0).replace(f"```text\n{shown}```", f"```text\n{said}```")

        written = SECTION.sub(visit, page)
    if seen != rules:
        wrong.append(f"the page has other rules than check_rules.h, or another order: "
                     f"{sorted(set(seen) ^ set(rules))}")
    if update:
        PAGE.write_text(written)
    print("\n".join(wrong))
    print(f"# counts: {max(len(rules) - len(wrong), 0)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
