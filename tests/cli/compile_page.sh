# Every command of docs/compiling.md runs and prints what is shown there; the build leaves this out where a part is missing.
# SPDX-License-Identifier: Apache-2.0
ln -s "$TESTS/../examples" examples
ln -s "$TESTS" tests
# What installs packages does not run. A cross compiler with a C library need not be there; the lines that it leaves out are
# not compared, only what fails in them.
WITHOUT=apt-get
command -v aarch64-linux-gnu-gcc >/dev/null || WITHOUT="$WITHOUT aarch64-linux-gnu-gcc"
export WITHOUT
python3 "$TESTS/cli/run_page.py" "$TESTS/../docs/compiling.md" | grep -v '^\(ran\|NOT RUN\): cameo compile .* aarch64-linux-gnu$'
