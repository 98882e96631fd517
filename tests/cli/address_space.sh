# Without a limit of its own a run may hold what the machine has, here what `ulimit -v` leaves. A
# sanitizer wants all addresses for itself: not for its builds.
# SPDX-License-Identifier: Apache-2.0
cat >grow.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1048576] x) => (float[] y) <int64 n = {60}, bool go = {1}>
{
    y = Loop (n, go, x) <body = b (int64 i, bool c, float[] s) => (bool d, float[] t) {
        d = Identity(c) t = Concat <axis = 0> (s, s) }>
}
END
ulimit -v 3000000
"$CAMEO" run grow.onnxtxt --random-inputs --threads 1 2>&1 | sed 's/[0-9][0-9]*/N/g'
