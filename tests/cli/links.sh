# Links in folders that a stranger packed: they are not followed unless the user says so, and never in a circle.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    timeout 60 "$CAMEO" "$@" >said.txt 2>&1
    code=$?
    head -n 3 said.txt
    echo "[$code]"
}

echo '-- a checkpoint with 40 links to itself'
cp -r "$TESTS/checkpoints/deepspeed-zero2" round
chmod -R u+w round
for i in $(seq 40); do
    ln -s . "round/$i"
done
try checkpoint info round
try checkpoint info round --allow-links

echo '-- files that are links, as in the cache of Hugging Face'
mkdir blobs snapshot hard
cp "$TESTS"/checkpoints/ort-mlp-adamw/* blobs
for name in blobs/*; do
    ln -s "../$name" "snapshot/${name#blobs/}"
    ln "$name" "hard/${name#blobs/}"
done
try checkpoint info snapshot
try checkpoint info snapshot --allow-links
try checkpoint info hard
try checkpoint info hard --allow-links
try import "$TESTS/models/train/mlp/model.onnx" snapshot --weights-only --list | sed "s|$TESTS|TESTS|"

echo '-- a file that the user names may be a link'
ln -s "$TESTS/checkpoints/keras-adamw.weights.h5" named.h5
try checkpoint info named.h5

echo '-- a folder of data'
mkdir data
printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }" >x.npy
printf '\000\000\200\077\000\000\000\100' >>x.npy
ln -s ../x.npy data/x.npy
cat >m.onnxtxt <<'TEXT'
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,1] x) => (float[N,1] y) { y = Add (x, x) }
TEXT
try predict m.onnxtxt --data data -o y.npz
try predict m.onnxtxt --data data -o y.npz --allow-links

echo '-- a link in a folder of results does not choose the file that is written'
mkdir results values index dumped
echo precious >kept.txt
ln -s ../kept.txt results/y.npy
ln -s ../kept.txt values/00000_y.npy
ln -s ../kept.txt index/index.json
try run m.onnxtxt --input x.npy -o results
try run m.onnxtxt --input x.npy --dump values
try run m.onnxtxt --input x.npy --dump index
"$CAMEO" checkpoint info named.h5 --dump dumped
name=$(ls dumped | head -n 1)
ln -sf ../kept.txt "dumped/$name"
try checkpoint info named.h5 --dump dumped
cat kept.txt

echo '-- nor one in a folder of checkpoints; its .lock is a lock or left alone'
net=$TESTS/models/train/mlp
learn() {
    timeout 60 "$CAMEO" train "$net/model.onnx" --data "$net/data.npz" --loss cross-entropy --optimizer sgd \
        --checkpoint-every 1 -o trained.onnx "$@" >said.txt 2>&1
    code=$?
    grep -E 'lock|symbolic' said.txt | head -n 1
    echo "[$code]"
}
learn --steps 3 --checkpoint states --keep 1
mv states/step-0000000003.safetensors states/step-0000000009.safetensors
ln -s ../kept.txt states/step-0000000004.safetensors
learn --steps 5 --checkpoint states --resume
mkdir locked
ln kept.txt locked/.lock
learn --steps 1 --checkpoint locked
cat kept.txt

echo '-- nor a folder of external data'
mkdir model elsewhere
cp "$net/model.onnx" model/m.onnx
"$CAMEO" copy model/m.onnx -o model/large.onnx --external weights.data --threshold 1 >said.txt 2>&1 || cat said.txt
mkdir model/sub
mv model/weights.data model/sub/abc.data
LC_ALL=C sed 's/weights.data/sub\/abc.data/g' <model/large.onnx >model/moved.onnx
mkdir copied
ln -s ../elsewhere copied/sub
try copy model/moved.onnx -o copied/moved.onnx
ls copied elsewhere

echo '-- a pipe in a folder of results is not waited for'
mkdir piped
mkfifo piped/index.json
try run m.onnxtxt --input x.npy --dump piped
