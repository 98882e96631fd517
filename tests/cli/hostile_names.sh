# Names can hold anything: terminals see no control characters, JSON stays JSON.
# SPDX-License-Identifier: Apache-2.0
printf '\010\010\022\006\033[31m\377\032\005a"\\\n\303\072\006\022\004\302\233\t\177' >names.onnx
"$CAMEO" info names.onnx | od -An -c | tr -s ' ' | head -12
"$CAMEO" info --json names.onnx | grep -E '"(producer|graph)'
"$CAMEO" info --json names.onnx | python3 -m json.tool >parsed.txt && echo 'valid JSON'

# A name goes to standard error in pieces, not in a write for each character.
long=$(printf '%01000d' 0)
if command -v strace >/dev/null; then
    strace -f -e trace=write -o writes.txt "$CAMEO" info "$long" 2>/dev/null
    [ ! -s writes.txt ] || [ "$(grep -c '^[0-9]* *write(2' writes.txt)" -lt 20 ] || echo "$(wc -l <writes.txt) writes"
fi
