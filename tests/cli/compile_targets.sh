# What is told of objects for other processors, and their headers; the build leaves this out where nothing is compiled.
# SPDX-License-Identifier: Apache-2.0
cat >net.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[2,8] x, double[N] d) => (float[2,8] y, double[N] s)
<float[8,8] w>
{
    p = MatMul(x, w)
    y = Softmax(p)
    s = Mul(d, d)
}
END
sed -i "s/<float\[8,8\] w>/<float[8,8] w = {$(seq -s, 64)}>/" net.onnxtxt

for target in x86_64-linux-gnu aarch64-linux-gnu riscv64-linux-gnu wasm32 thumbv7em-none-eabi thumbv6m-none-eabi \
    armv7-linux-gnueabihf i686-linux-gnu riscv32-unknown-elf; do
    echo "-- $target"
    "$CAMEO" compile net.onnxtxt -o net.o --target $target >told.txt 2>&1 || cat told.txt
    # Besides memory, what the compiler's own library has on small processors, which changes with what is compiled.
    sed -n 's/^it calls //p' told.txt | tr -d ' ' | tr ',' '\n' | sed 's/^__.*/the library of the compiler/' | sort -u
    grep -c '^  code  *[1-9]' told.txt
    # A header is C of 1999 and C++ alike, and tensors have the layout that the object reads.
    printf '#include "net.h"\nstruct check { char c[sizeof(struct net_tensor) == 2 * sizeof(void *) + sizeof(size_t) ? 1 : -1]; };\n' >use.c
    cp use.c use.cpp
    clang-19 --target=$target -std=c99 -ffreestanding -pedantic -Wall -Wextra -Werror -c use.c -o use.o && echo 'C99'
    clang-19 --target=$target -std=c++98 -ffreestanding -Wall -Wextra -Werror -Wno-c++11-long-long -c use.cpp -o use.o && echo 'C++'
done

echo '-- the other byte order'
"$CAMEO" compile net.onnxtxt -o big.o --target s390x-linux-gnu
ls big.o 2>&1

echo '-- a training step and weights of the caller'
cat >trained.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}>
{ y = Add(x, w) }
training {
  algorithm: step (float[3] t) => (float[3] out, float[3] w_new)
  { d = Add(w, t) w_new = Add(d, d) out = Add(d, t) },
  update_binding: ["w": "w_new"]
}
END
"$CAMEO" compile trained.onnxtxt -o line.o --name line --train-step --weights caller >/dev/null 2>&1
printf '#include "line.h"\nint main() { return LINE_OK; }\n' >use.c
cp use.c use.cpp
clang-19 -std=c99 -pedantic -Wall -Wextra -Werror -Wno-strict-prototypes -c use.c -o use.o && echo 'C99'
clang-19 -std=c++98 -Wall -Wextra -Werror -Wno-c++11-long-long -c use.cpp -o use.o && echo 'C++'
