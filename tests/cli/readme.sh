# Every command that README shows runs, in its order, on a model like the one exported there.
# SPDX-License-Identifier: Apache-2.0
readme=$TESTS/../README.md
python3 - >net.onnxtxt <<'END'
import random
random.seed(0)
def tensor(name, dims, count, scale):
    values = ",".join(f"{random.uniform(-scale, scale):.6f}" for _ in range(count))
    return f"float[{dims}] {name} = {{{values}}}"
print("<ir_version: 10, opset_import: [\"\" : 20]>")
print("main_graph (float[batch,1,16,16] image) => (float[batch,10] scores) <")
print(",\n".join([tensor("conv_weight", "8,1,3,3", 72, 1 / 3), tensor("conv_bias", "8", 8, 1 / 3),
                  tensor("line_weight", "10,512", 5120, 512 ** -0.5), tensor("line_bias", "10", 10, 512 ** -0.5),
                  "int64[2] rows = {-1, 512}"]))
print("""> {
    c = Conv<pads: ints = [1, 1, 1, 1]>(image, conv_weight, conv_bias)
    r = Relu(c)
    p = MaxPool<kernel_shape: ints = [2, 2], strides: ints = [2, 2]>(r)
    f = Reshape(p, rows)
    scores = Gemm<transB: int = 1>(f, line_weight, line_bias)
}""")
END
"$CAMEO" copy net.onnxtxt -o net.onnx --external net.onnx.data --threshold 256 2>/dev/null
# "$ cameo ..." and the lines it is continued on; fewer steps than shown are enough here.
# shellcheck disable=SC2016
sed -n -e '/^\$ cameo/,/[^\\]$/p' "$readme" | grep -e '^\$ cameo' -e '^    --' |
    sed -e 's/^\$ cameo/"$CAMEO"/' -e 's/--epochs [0-9]*/--epochs 1/' -e 's/demo --dir/demo --epochs 1 --dir/' >commands.sh
grep -c CAMEO commands.sh
sh -e commands.sh >said.txt 2>&1 || cat said.txt
grep -e '^wrote' -e '^checked' said.txt
ls
# The file that is shipped needs no other.
mkdir elsewhere
cp final.onnx elsewhere
"$CAMEO" run elsewhere/final.onnx --input cameo-demo/unseen.npy | head -1
