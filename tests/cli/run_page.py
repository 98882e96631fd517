"""Runs the commands of a page of documentation, and looks for what it says they print.

usage: run_page.py PAGE

Blocks marked sh are run one after the other, where `cameo` is $CAMEO; a block marked c is written to main.c. A block
without a mark shows what the last commands print: each of its lines must be a line of that. Numbers may be others,
since they change with the code that is generated, but for those with a percent sign; what `..` stands for, and blanks,
are not compared. Prints a line for each block.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def form(line):
    """What is compared of a line."""
    if "%" in line and re.fullmatch(r"\d+, [\d.]+ %", line):
        return line
    return re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*", "N", line)).strip()


def missing(shown, printed):
    """The lines that were not printed."""
    lines = [form(line) for line in printed.splitlines()]
    wanted = []
    for line in shown.splitlines():
        parts = [form(part) for part in line.split("..")] if ".." in line else [form(line)]
        pattern = re.compile(".*".join(map(re.escape, parts)))
        if parts[0] and not any(pattern.fullmatch(other) for other in lines):
            wanted.append(line)
    return wanted


def run(text, folder):
    """What the commands print, and the folder they end in."""
    script = f'cameo() {{ "$CAMEO" "$@"; }}\nset -e\n{text}\npwd >"$PLACE"\n'
    place = Path(os.environ["PLACE"])
    done = subprocess.run(["sh", "-c", script], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        print(done.stdout[-2000:])
        return done.stdout, None
    return done.stdout, place.read_text().strip()


def main(page):
    folder, printed, skipped = os.getcwd(), "", False
    os.environ["PLACE"] = os.path.join(folder, "place.txt")
    without = os.environ.get("WITHOUT", "").split()
    for mark, text in BLOCK.findall(Path(page).read_text()):
        first = text.strip().splitlines()[0]
        if mark == "sh":
            skipped = any(re.search(rf"(^|\n){re.escape(name)}", text) for name in without)
            if skipped:
                print(f"NOT RUN: {first}")
                continue
            printed, after = run(text, folder)
            print(f"{'ran' if after else 'FAILED'}: {first}")
            folder = after or folder
        elif mark == "c":
            Path(folder, "main.c").write_text(text)
        elif mark == "" and not skipped:
            for line in missing(text, printed):
                print(f"NOT PRINTED: {line}")


if __name__ == "__main__":
    main(sys.argv[1])
