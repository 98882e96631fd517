# cameo demo: a network from nothing. Times and losses are the machine's own; what they mean is not.
# SPDX-License-Identifier: Apache-2.0
"$CAMEO" demo --seed 1 --epochs 5 >out.txt 2>err.txt
echo "[$?]"
grep '^[0-9]  \|^\$' out.txt
ls cameo-demo
awk '/^epoch .* accuracy/ { epochs++; last = $(NF - 1); if (/so far/) last = $(NF - 5) }
     END { print epochs, "validations, the last", (last > 97 ? "above 97 %" : "only " last " %") }' \
    err.txt
awk '/^Done in/ { for (i = 2; i <= NF; i++) if ($i == "%") share = $(i - 1)
                  print "told at the end:", (share > 97 ? "above 97 %" : "only " share " %") }' out.txt
grep '^  It says' out.txt | sed 's/[0-9]/N/'
grep -q '</svg>' cameo-demo/curve.svg && echo "curve.svg is whole"
grep -c '"loss"' cameo-demo/log.jsonl
for model in trained net; do
    "$CAMEO" info cameo-demo/$model.onnx | grep '^training\|^operators' | sed "s/^/$model: /"
done

# the same again gives the same bytes, in a folder of its own
"$CAMEO" demo --seed 1 --epochs 5 >again.txt 2>&1
echo "[$?]"
diff -r cameo-demo cameo-demo-2 && echo "the same"

# nothing of the user's is written over
mkdir mine && echo mine >mine/file
"$CAMEO" demo --dir mine
echo "[$?]"
ls mine
"$CAMEO" demo --dir none/folder
echo "[$?]"
"$CAMEO" demo digits
echo "[$?]"

"$CAMEO" demo --dir piped 2>&1 | head -1

# another seed is another set, in a folder whose name needs care
"$CAMEO" demo --seed 2 --epochs 1 --dir "it's" >out.txt 2>/dev/null
echo "[$?]"
grep 'mkdir' out.txt
cmp -s cameo-demo/train.npz "it's/train.npz" || echo "other digits"

# what it says to try next works
cd cameo-demo
"$CAMEO" train trained.onnx --data train.npz --threads 1 -o better.onnx >out.txt 2>&1
echo "[$?]"
"$CAMEO" train net.onnx --data train.npz --loss cross-entropy --optimizer adamw --epochs 2 \
    --threads 1 -o tuned.onnx >out.txt 2>&1
echo "[$?]"
grep -v '^trained\|^step' out.txt | sed 's/loss 0\.0[0-9]*, accuracy 99\.[0-9]*/loss below 0.1, accuracy above 99/'
