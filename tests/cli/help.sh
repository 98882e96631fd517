# What a new user meets first: help everywhere, and one line when something is mistyped.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

try
try --help
try --version | grep -v ', /\|^without ' # which there are depends on the machine
try help
for command in check copy info print run test; do
    try help $command
    "$CAMEO" $command --help >one.txt
    "$CAMEO" help $command >two.txt
    cmp one.txt two.txt
done
