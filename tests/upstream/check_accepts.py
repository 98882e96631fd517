#!/usr/bin/env python3
# Does `cameo check` accept every model of these folders?
# SPDX-License-Identifier: Apache-2.0
"""usage: check_accepts.py CAMEO COUNT FOLDER..

All .onnx files below the folders must be legal, and there must be COUNT of them; 0: any number.
"""

import json
import subprocess
import sys
from pathlib import Path

AT_ONCE = 200


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    cameo, count = [sys.argv[1]], int(sys.argv[2])
    models = sorted(path for folder in sys.argv[3:] for path in Path(folder).rglob("*.onnx"))
    refused = 0
    for at in range(0, len(models), AT_ONCE):
        done = subprocess.run([*cameo, "check", "--json", *map(str, models[at:at + AT_ONCE])],
                              capture_output=True, text=True, check=False)
        for entry in json.loads(done.stdout):
            wrong = [f"{row['rule']} {row['place']}: {row['reason']}"
                     for row in entry.get("findings", []) if row["severity"] == "violation"]
            if entry.get("error"):
                wrong.append(entry["error"])
            refused += bool(wrong)
            for reason in wrong:
                print(f"{entry['model']}: {reason}")
    if count and len(models) != count:
        print(f"there are {len(models)} models, not {count}")
        refused += 1
    print(f"# counts: {len(models) - refused} passed, {refused} failed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
