# Every command that writes a file, where no file can grow: one sentence, exit 3, the old file as it was.
# SPDX-License-Identifier: Apache-2.0
python3 "$TESTS/cli/full_disk_outputs.py"
