#!/usr/bin/env python3
# Converts judged cases to the newest opset and back to their own, and runs what came of them.
# SPDX-License-Identifier: Apache-2.0
"""usage: CAMEO=COMMAND run_converted.py CASES REFUSED

CASES has case folders of old operator versions. Each is brought to the newest opset, which must work, and from there back to the
opset it had; the results of both must be those that were judged. Cases whose newest form the old opset cannot express are listed in
REFUSED, with the reason; a case that is refused and not listed fails, and so does one that is listed and works.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import onnx


def convert(command, direction, model, version, out):
    """None, or why it could not be written."""
    opset = ["--opset", version] if version else []
    done = subprocess.run([*command, direction, model, *opset, "--as-is", "-o", out], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True,
                          errors="replace", check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def opset_of(model):
    return next(str(entry.version) for entry in onnx.load(model).opset_import if entry.domain in ("", "ai.onnx"))


def link(case, folder):
    folder.mkdir()
    for item in case.iterdir():
        if item.name != "model.onnx":
            (folder / item.name).symlink_to(item)
    return folder / "model.onnx"


def there_and_back(command, case, scratch, listed):
    """Writes both models beside links to the case's data. What went wrong, or None."""
    newest = link(case, scratch / f"{case.name}@newest")
    why = convert(command, "upgrade", case / "model.onnx", None, newest)
    if why:
        return f"{case.name}: {why}"
    back = link(case, scratch / f"{case.name}@back")
    why = convert(command, "downgrade", newest, opset_of(case / "model.onnx"), back)
    if why and case.name not in listed:
        return f"{case.name}, on the way back: {why}"
    if not why and case.name in listed:
        return f"{case.name}: is listed as refused, and was written"
    return None


def main():
    command, cases = [os.environ["CAMEO"]], pathlib.Path(sys.argv[1]).resolve()
    with open(sys.argv[2], encoding="utf-8") as lines:
        listed = {line.split("#")[0].strip() for line in lines} - {""}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            told = pool.map(lambda case: there_and_back(command, case, scratch, listed), sorted(cases.iterdir()))
            failed = [what for what in told if what]
        folders = [str(folder) for folder in sorted(scratch.iterdir()) if (folder / "model.onnx").exists()]
        passed = 0
        for i in range(0, len(folders), 200):
            done = subprocess.run([*command, "test", *folders[i:i + 200]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", check=False).stdout
            failed += re.findall(r"^FAIL .*", done, re.MULTILINE)
            passed += int(re.search(r"(\d+) passed, \d+ failed\s*$", done).group(1))
    for line in failed:
        print(line)
    print(f"# counts: {passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
