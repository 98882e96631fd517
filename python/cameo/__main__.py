# The command cameo, as `python -m cameo` and as the script that pip makes.
# SPDX-License-Identifier: Apache-2.0
"""Becomes the command, which lies beside this file."""

import os
import sys


def main() -> None:
    """Runs the command with the arguments of this process, in its place."""
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cameo")
    if not os.path.exists(command):
        sys.exit("cameo: this build of the Python package does not have the command")
    os.execv(command, ["cameo", *sys.argv[1:]])


if __name__ == "__main__":
    main()
