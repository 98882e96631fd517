# cameo check: 2.5 GB of external weights are not read, and a wrong shape among them is found.
# SPDX-License-Identifier: Apache-2.0
truncate -s 2500000000 w.bin
cat >large.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
large (float[N,25000] x) => (float[N,25000] y)
   <float[25000,25000] w = ["location": "w.bin", "length": "2500000000"]>
{
    h = MatMul(x, w)
    [call] y = local.Scale(h, w)
}
<opset_import: ["" : 17], domain: "local">
Scale (a, b) => (c) {
    c = MatMul(a, b)
}
END
sed 's/x) =>/x, float[30000,3] v) =>/; s/^    h = /    [wrong] u = MatMul(x, v)\n    h = /' large.onnxtxt >wrong.onnxtxt
cat >measure.py <<'END'
import os
import resource
import subprocess
import sys

done = subprocess.run([os.environ["CAMEO"], "check", sys.argv[1]], check=False)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # KiB, mapped pages included
print(f"[{done.returncode}]", "little memory" if most < 1 << 20 else f"{most} KiB")
END
python3 measure.py large.onnxtxt
python3 measure.py wrong.onnxtxt
