# The example of a web page, whose model Node runs; the build leaves this out where a part of it is missing.
# SPDX-License-Identifier: Apache-2.0
CAMEO=$CAMEO sh "$TESTS/../examples/web/run.sh" page 2>&1 | sed 's/ [0-9,]* bytes/ N bytes/'
ls page
# The page asks for files that are there.
for file in $(grep -o '\./model.mjs\|digits.wasm' page/index.html); do
    test -f "page/$file" && echo "$file is there"
done
