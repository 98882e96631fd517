# Pages of docs/ that are written from what a lister prints: the parts that their generators share.
# SPDX-License-Identifier: Apache-2.0
"""Reading a lister, reading the cases of tests/ops, and a main program that writes a page or checks it."""

import argparse
import pathlib
import re
import subprocess
import sys

import wrap_markdown

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/ops"
CASE_OPTION = re.compile(r"(tol|body|grad2?|unknown|rank|opset|seed) ")


def fail(code, text):
    print(f"{pathlib.Path(sys.argv[0]).stem}: {text}", file=sys.stderr)
    sys.exit(code)


def ask(program, hint=""):
    """What a lister prints."""
    if not program.exists():
        fail(2, f"{program} is not built; `make gen` does that")
    done = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        fail(3, f"{program} failed with {done.returncode}{hint}")
    return done.stdout


def case_lines(block):
    """The lines of a case, those that go on joined: a space in front, or a bracket left open."""
    lines, depth = [], 0
    for line in block.splitlines():
        if line.startswith("#"):
            continue
        if lines and (depth > 0 or line.startswith(" ")):
            lines[-1] += " " + line
        else:
            lines.append(line)
        plain = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        depth += sum(plain.count(c) for c in "([{") - sum(plain.count(c) for c in ")]}")
    return [line for line in lines if line.strip()]


def read_cases():
    """((domain, name), options, lines that are none) of each case that must give results"""
    for path in sorted(CASES.rglob("*.txt")):
        for block in re.split(r"\n[ \t]*\n", path.read_text()):
            all_lines = case_lines(block)
            options = [line for line in all_lines if CASE_OPTION.match(line)]
            lines = [line for line in all_lines if not CASE_OPTION.match(line)]
            if not lines or any(line.startswith("!") for line in lines):
                continue
            domain, _, name = re.match(r"[\w.]+", lines[0]).group(0).rpartition(".")
            yield (domain or "ai.onnx", name), options, lines


def main(page, lister, build, compare):
    """build(lister) gives the text and what is wrong; compare(text, path) says where the page differs."""
    name = pathlib.Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=f"write or check {page}")
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on a difference")
    parser.add_argument("--lister", type=pathlib.Path, default=ROOT / lister, help="the program to ask")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / page, help="the file to write")
    options = parser.parse_args()

    text, wrong = build(options.lister)
    text = wrap_markdown.wrap(text)
    if options.check and not wrong:
        wrong = compare(text, options.page)
    for line in wrong:
        print(f"{name}: {line}")
    if not wrong and not options.check:
        options.page.write_text(text)
    return 1 if wrong else 0
