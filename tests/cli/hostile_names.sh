# Names can hold anything: terminals see no control characters, JSON stays JSON.
# SPDX-License-Identifier: Apache-2.0
printf '\010\010\022\006\033[31m\377\032\005a"\\\n\303\072\006\022\004\302\233\t\177' >names.onnx
"$CAMEO" info names.onnx | od -An -c | tr -s ' ' | head -12
"$CAMEO" info --json names.onnx | grep -E '"(producer|graph)'
"$CAMEO" info --json names.onnx | python3 -m json.tool >parsed.txt && echo 'valid JSON'
