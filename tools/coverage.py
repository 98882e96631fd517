#!/usr/bin/env python3
# Says which share of the library's lines the tests ran, by folder; lists the least covered files.
# SPDX-License-Identifier: Apache-2.0
"""usage: coverage.py BUILD, after a test run of a build with CAMEO_COVERAGE."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lines_run(build):
    """{source below ROOT: {line: times run}}, joined over all programs."""
    found = defaultdict(lambda: defaultdict(int))
    # By .gcno, not .gcda: what no program ever linked counts as never run.
    for data in sorted(build.rglob("*.gcno")):
        done = subprocess.run(["gcov", "--json-format", "--stdout", str(data.resolve())],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for report in done.stdout.splitlines():
            for entry in json.loads(report)["files"]:
                path = Path(entry["file"])
                path = path if path.is_absolute() else ROOT / path
                if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "build"):
                    continue
                for line in entry["lines"]:
                    found[path.relative_to(ROOT)][line["line_number"]] += line["count"]
    return found


def show(name, run, total):
    print(f"{100 * run / max(total, 1):6.1f} %  {run:6} of {total:6}  {name}")


def main():
    found = lines_run(Path(sys.argv[1]))
    files = [(sum(1 for n in lines.values() if n), len(lines), path)
             for path, lines in found.items() if path.parts[0] in ("src", "cli")]
    if not files:
        print("coverage: no data; run the tests of this build first", file=sys.stderr)
        return 1
    folders = defaultdict(lambda: [0, 0])
    for run, total, path in files:
        folder = "/".join(path.parts[:2]) if path.parts[0] == "src" else path.parts[0]
        folders[folder][0] += run
        folders[folder][1] += total
    print("least covered files")
    for run, total, path in sorted(files, key=lambda f: f[0] / max(f[1], 1))[:15]:
        show(path, run, total)
    print("by folder")
    for folder, (run, total) in sorted(folders.items()):
        show(folder, run, total)
    show("all", sum(f[0] for f in files), sum(f[1] for f in files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
