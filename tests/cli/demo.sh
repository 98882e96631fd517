# What `make demo-files` shows.
# SPDX-License-Identifier: Apache-2.0
sh "$TESTS/../tools/demo.sh" "$CAMEO"
