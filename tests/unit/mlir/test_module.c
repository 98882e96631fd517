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
    CHECK(product.arena_is_fixed);
    CHECK_INT(run.n_allocated, 0);
    program_module()->release(&product);
}

/* y = x + x + 1 for any number of rows, given to cm_output. */
static const struct program_case dynamic_rows = {
    .private = "func.func private @cm_output(index, index, index, index, index) -> index\n",
    .text = "%x: memref<?x4xf32>) {\n"
            "  %c0 = arith.constant 0 : index\n"
            "  %c2 = arith.constant 2 : index\n"
            "  %rows = memref.dim %x, %c0 : memref<?x4xf32>\n"
            "  %most = arith.constant 100000 : index\n"
            "  %few = arith.cmpi ult, %rows, %most : index\n"
            "  cf.assert %few, \"there are too many rows\"\n"
            "  %tx = bufferization.to_tensor %x restrict : memref<?x4xf32>\n"
            "  %e = tensor.empty(%rows) : tensor<?x4xf32>\n"
            "  %one = arith.constant 1.0 : f32\n"
            "  %a = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>,\n"
            "       affine_map<(i,j)->(i,j)>], iterator_types = [\"parallel\",\"parallel\"]}\n"
            "       ins(%tx : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {\n"
            "    ^bb0(%v: f32, %o: f32):\n"
            "      %s = arith.addf %v, %v : f32\n"
            "      %t = arith.addf %s, %one : f32\n"
            "      linalg.yield %t : f32\n"
            "  } -> tensor<?x4xf32>\n"
            "  %m = bufferization.to_memref %a read_only : memref<?x4xf32>\n"
            "  %address = memref.extract_aligned_pointer_as_index %m : memref<?x4xf32> -> index\n"
            "  %shape = memref.alloc() : memref<2xi64>\n"
            "  %r64 = arith.index_cast %rows : index to i64\n"
            "  %four = arith.constant 4 : i64\n"
            "  %c1 = arith.constant 1 : index\n"
            "  memref.store %r64, %shape[%c0] : memref<2xi64>\n"
            "  memref.store %four, %shape[%c1] : memref<2xi64>\n"
            "  %sizes = memref.extract_aligned_pointer_as_index %shape : memref<2xi64> -> index\n"
            "  %ok = func.call @cm_output(%context, %c0, %address, %c2, %sizes)\n"
            "    : (index, index, index, index, index) -> index\n"
            "  return\n"
            "}\n"};

void test_module__sizes_that_come_with_the_inputs_are_allocated_and_released(void)
{
    float x[12];
    const struct program_port port = {x, 2, {3, 4}};
    struct cm_mlir_product product;
    struct program_run run;

    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    if (!program_has_module() || !program_run(&dynamic_rows, &port, 1, &product, &run))
        return;
    CHECK_INT(run.failed, 0);
    CHECK_INT(run.n_outputs, 1);
    CHECK_INT(run.output_dims[0], 3);
    CHECK_INT(run.output_dims[1], 4);
    for (int i = 0; i < 12; i++)
        CHECK(((float *)run.output)[i] == 2.0f * (float)i + 1.0f);
    CHECK(!product.arena_is_fixed);
    CHECK_INT(run.n_allocated, 1);
    CHECK_INT(run.held, 0);
    CHECK_INT(product.n_messages, 1);
    CHECK_STRING(product.messages[0], "there are too many rows");
    program_module()->release(&product);
}

void test_module__a_check_that_fails_ends_the_run_at_once(void)
{
    float x[4] = {0};
    const struct program_port port = {x, 2, {100000, 4}};
    struct program_run run;

    if (!program_has_module() || !program_run(&dynamic_rows, &port, 1, NULL, &run))
        return;
    CHECK_INT(run.failed, 1); /* check 0 */
    CHECK_INT(run.n_allocated, 0);
    CHECK_INT(run.n_outputs, 0);
}

void test_module__an_arena_that_is_too_small_ends_the_run_at_once(void)
{
    float x[4] = {0};
    const struct program_port port = {x, 2, {99999, 4}};
    struct program_run run;

    if (!program_has_module() || !program_run(&dynamic_rows, &port, 1, NULL, &run))
        return;
    CHECK_INT(run.failed, -1);
    CHECK_INT(run.n_outputs, 0);
}

/* A tensor that is one element longer after each turn, and in each turn a check. */
static const struct program_case growing = {
    .text =
        "%n: memref<i64>, %y: memref<i64>) {\n"
        "  %c0 = arith.constant 0 : index\n"
        "  %c1 = arith.constant 1 : index\n"
        "  %limit = memref.load %n[] : memref<i64>\n"
        "  %e = tensor.empty(%c0) : tensor<?xi64>\n"
        "  %zero = arith.constant 0 : i64\n"
        "  %one = arith.constant 1 : i64\n"
        "  %r:2 = scf.while (%i = %zero, %s = %e) : (i64, tensor<?xi64>) -> (i64, tensor<?xi64>) "
        "{\n"
        "    %go = arith.cmpi slt, %i, %limit : i64\n"
        "    scf.condition(%go) %i, %s : i64, tensor<?xi64>\n"
        "  } do {\n"
        "  ^bb0(%i: i64, %s: tensor<?xi64>):\n"
        "    %seven = arith.constant 70 : i64\n"
        "    %small = arith.cmpi slt, %i, %seven : i64\n"
        "    cf.assert %small, \"it is longer than 70\"\n"
        "    %d = tensor.dim %s, %c0 : tensor<?xi64>\n"
        "    %d1 = arith.addi %d, %c1 : index\n"
        "    %b = tensor.empty(%d1) : tensor<?xi64>\n"
        "    %g = tensor.insert_slice %s into %b[0] [%d] [1] : tensor<?xi64> into tensor<?xi64>\n"
        "    %h = tensor.insert %i into %g[%d] : tensor<?xi64>\n"
        "    %j = arith.addi %i, %one : i64\n"
        "    scf.yield %j, %h : i64, tensor<?xi64>\n"
        "  }\n"
        "  %d = tensor.dim %r#1, %c0 : tensor<?xi64>\n"
        "  %sum = scf.for %k = %c0 to %d step %c1 iter_args(%a = %zero) -> i64 {\n"
        "    %v = tensor.extract %r#1[%k] : tensor<?xi64>\n"
        "    %t = arith.addi %a, %v : i64\n"
        "    scf.yield %t : i64\n"
        "  }\n"
        "  memref.store %sum, %y[] : memref<i64>\n"
        "  return\n"
        "}\n"};

void test_module__what_grows_in_a_loop_is_released_turn_by_turn(void)
{
    int64_t n = 50, y = -1;
    const struct program_port ports[] = {{&n, 0, {0}}, {&y, 0, {0}}};
    struct program_run run;

    if (!program_has_module() || !program_run(&growing, ports, 2, NULL, &run))
        return;
    CHECK_INT(run.failed, 0);
    CHECK_INT(y, 49 * 50 / 2);
    CHECK_INT(run.held, 0);
    CHECK(run.most <= 3 * 50 * 8 + 128);
    n = 100;
    y = -1;
    CHECK(program_run(&growing, ports, 2, NULL, &run));
    CHECK_INT(run.failed, 1);
    CHECK_INT(y, -1);
}

/* ---- the arena, by programs whose buffers only C touches ---- */

/* v[k] = (3 v[i] + 5 v[j] + k) mod 1021, in buffers of different sizes; v[0] is the input. */
static void write_sums(char *text, size_t size, int count, const int *left, const int *right)
{
    size_t used = (size_t)snprintf(
        text, size,
        "%%x: memref<64xi32>, %%y: memref<64xi32>) {\n"
        "  %%a0 = memref.extract_aligned_pointer_as_index %%x : memref<64xi32> -> index\n"
        "  %%ay = memref.extract_aligned_pointer_as_index %%y : memref<64xi32> -> index\n");

    for (int k = 1; k < count; k++)
        used += (size_t)snprintf(
            text + used, size - used,
            "  %%m%d = memref.alloc() : memref<%dxi32>\n"
            "  %%a%d = memref.extract_aligned_pointer_as_index %%m%d : memref<%dxi32> -> index\n"
            "  %%k%d = arith.constant %d : index\n"
            "  func.call @cm_sum(%%a%d, %%a%d, %%a%d, %%k%d) : (index, index, index, index) -> "
            "()\n",
            k, 64 + k % 5 * 16, k, k, 64 + k % 5 * 16, k, k, left[k], right[k], k, k);
    snprintf(text + used, size - used,
             "  %%z = arith.constant 0 : index\n"
             "  func.call @cm_sum(%%a%d, %%a%d, %%ay, %%z) : (index, index, index, index) -> ()\n"
             "  return\n}\n",
             count - 1, count - 2);
}

void test_module__planned_buffers_keep_what_is_written_until_it_is_read(void)
{
    enum { COUNT = 40 };
    static char text[64 * 1024];
    struct program_case program = {
        .private = "func.func private @cm_sum(index, index, index, index)\n",
        .c = "__attribute__((noinline)) void cm_sum(I a, I b, I c, I k) {\n"
             "  for (int i = 0; i < 64; i++)\n"
             "    ((int *)c)[i] = (((int *)a)[i] * 3 + ((int *)b)[i] * 5 + (int)k) % 1021;\n"
             "}\n",
        .text = text};
    uint32_t state = 3;

    for (int round = 0; round < 3 && program_has_module(); round++) {
        int left[COUNT], right[COUNT];
        int32_t values[COUNT][64], x[64], y[64];
        const struct program_port ports[] = {{x, 1, {64}}, {y, 1, {64}}};
        struct cm_mlir_product product;
        struct program_run run;

        for (int i = 0; i < 64; i++)
            values[0][i] = x[i] = i;
        for (int k = 1; k < COUNT; k++) {
            state = state * 1664525u + 1013904223u;
            left[k] = (int)(state >> 8) % k;
            right[k] = k - 1 - (int)(state >> 20) % (k < 5 ? k : 5);
            for (int i = 0; i < 64; i++)
                values[k][i] = (values[left[k]][i] * 3 + values[right[k]][i] * 5 + k) % 1021;
        }
        write_sums(text, sizeof text, COUNT, left, right);
        if (!program_run(&program, ports, 2, &product, &run))
            return;
        for (int i = 0; i < 64; i++)
            CHECK_INT(y[i], (values[COUNT - 1][i] * 3 + values[COUNT - 2][i] * 5) % 1021);
        CHECK(product.arena_is_fixed);
        CHECK(product.arena_bytes < COUNT * 64 * 4);
        program_module()->release(&product);
    }
}
