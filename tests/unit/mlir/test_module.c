/* The module that compiles programs: from text to code that runs. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "mlir/compiled_program.h"

#include <stdio.h>
#include <string.h>

/* relu(x w) + x w, by a product of C, and three turns of a loop. */
static const struct program_case with_loop = {
    .private = "func.func private @cm_product(index, index, index)\n",
    .c = "void cm_product(I a, I b, I c) {\n"
         "  for (int i = 0; i < 4; i++)\n"
         "    for (int j = 0; j < 16; j++) {\n"
         "      float sum = 0;\n"
         "      for (int k = 0; k < 8; k++) sum += ((float *)a)[8 * i + k] * ((float *)b)[16 * k + "
         "j];\n"
         "      ((float *)c)[16 * i + j] = sum;\n"
         "    }\n"
         "}\n",
    .text = "%x: memref<4x8xf32>, %y: memref<4x16xf32>) {\n"
            "  %c0 = arith.constant 0 : index\n"
            "  %wv = memref.view %weights[%c0][] : memref<?xi8> to memref<8x16xf32>\n"
            "  %w = bufferization.to_tensor %wv restrict : memref<8x16xf32>\n"
            "  %tx = bufferization.to_tensor %x restrict : memref<4x8xf32>\n"
            "  %xm = bufferization.to_memref %tx read_only : memref<4x8xf32>\n"
            "  %wm = bufferization.to_memref %w read_only : memref<8x16xf32>\n"
            "  %m = memref.alloc() : memref<4x16xf32>\n"
            "  %xa = memref.extract_aligned_pointer_as_index %xm : memref<4x8xf32> -> index\n"
            "  %wa = memref.extract_aligned_pointer_as_index %wm : memref<8x16xf32> -> index\n"
            "  %ma = memref.extract_aligned_pointer_as_index %m : memref<4x16xf32> -> index\n"
            "  func.call @cm_product(%xa, %wa, %ma) : (index, index, index) -> ()\n"
            "  %p = bufferization.to_tensor %m restrict writable : memref<4x16xf32>\n"
            "  %e = tensor.empty() : tensor<4x16xf32>\n"
            "  %z = arith.constant 0.0 : f32\n"
            "  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>,\n"
            "       affine_map<(i,j)->(i,j)>], iterator_types = [\"parallel\",\"parallel\"]}\n"
            "       ins(%p : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) {\n"
            "    ^bb0(%a: f32, %o: f32):\n"
            "      %q = arith.maximumf %a, %z : f32\n"
            "      linalg.yield %q : f32\n"
            "  } -> tensor<4x16xf32>\n"
            "  %c1 = arith.constant 1 : index\n"
            "  %c3 = arith.constant 3 : index\n"
            "  %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %r) -> tensor<4x16xf32> {\n"
            "    %e2 = tensor.empty() : tensor<4x16xf32>\n"
            "    %t2 = linalg.add ins(%s, %s : tensor<4x16xf32>, tensor<4x16xf32>)\n"
            "          outs(%e2 : tensor<4x16xf32>) -> tensor<4x16xf32>\n"
            "    scf.yield %t2 : tensor<4x16xf32>\n"
            "  }\n"
            "  %out = linalg.add ins(%l, %p : tensor<4x16xf32>, tensor<4x16xf32>)\n"
            "         outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>\n"
            "  bufferization.materialize_in_destination %out in restrict writable %y\n"
            "    : (tensor<4x16xf32>, memref<4x16xf32>) -> ()\n"
            "  return\n"
            "}\n"};

void test_module__a_program_with_a_kernel_and_a_loop_runs(void)
{
    float x[4][8], w[8][16], y[4][16];
    const struct program_port ports[] = {{x, 2, {4, 8}}, {y, 2, {4, 16}}};
    struct program_case program = with_loop;
    struct cm_mlir_product product;
    struct program_run run;

    if (!program_has_module())
        return;
    for (int i = 0; i < 32; i++)
        x[i / 8][i % 8] = (float)(i % 7 - 3);
    for (int i = 0; i < 128; i++)
        w[i / 16][i % 16] = (float)(i % 5 - 2);
    program.weights = (const char *)w;
    program.n_weights = sizeof w;
    if (!program_run(&program, ports, 2, &product, &run))
        return;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 16; j++) {
            float sum = 0;
            for (int k = 0; k < 8; k++)
                sum += x[i][k] * w[k][j];
            CHECK(y[i][j] == (sum > 0 ? 9 * sum : sum));
        }
    program_module()->release(&product);
}
