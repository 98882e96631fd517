/* What the module writes for which machine, what it refuses, and what code it makes. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/folder.h"
#include "mlir/compiled_program.h"
#include "tensor/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of each kind of arithmetic, in a type that is filled in. */
static const char kinds[] =
    "%x: memref<64x$>, %d: memref<64xf64>, %i: memref<64xi32>, %y: memref<64x$>,\n"
    "    %z: memref<64xi64>) {\n"
    "  %tx = bufferization.to_tensor %x restrict : memref<64x$>\n"
    "  %td = bufferization.to_tensor %d restrict : memref<64xf64>\n"
    "  %ti = bufferization.to_tensor %i restrict : memref<64xi32>\n"
    "  %e = tensor.empty() : tensor<64x$>\n"
    "  %e2 = tensor.empty() : tensor<64xi64>\n"
    "  %r = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(i)>,\n"
    "       affine_map<(i)->(i)>, affine_map<(i)->(i)>], iterator_types = [\"parallel\"]}\n"
    "       ins(%tx, %td, %ti : tensor<64x$>, tensor<64xf64>, tensor<64xi32>)\n"
    "       outs(%e : tensor<64x$>) {\n"
    "    ^bb0(%a: $, %dd: f64, %ii: i32, %o: $):\n"
    "      %t = arith.truncf %dd : f64 to $\n"
    "      %u = arith.sitofp %ii : i32 to $\n"
    "      %q1 = math.exp %a : $\n"
    "      %q2 = arith.mulf %q1, %t : $\n"
    "      %q3 = arith.divf %q2, %u : $\n"
    "      %q4 = math.sqrt %q3 : $\n"
    "      %q5 = math.floor %q4 : $\n"
    "      %q6 = math.tanh %q5 : $\n"
    "      %c = arith.cmpf olt, %q6, %a : $\n"
    "      %q7 = arith.select %c, %q6, %t : $\n"
    "      %q8 = arith.maximumf %q7, %u : $\n"
    "      %q9 = math.absf %q8 : $\n"
    "      %w1 = math.erf %q9 : $\n"
    "      %w2 = math.powf %w1, %a : $\n"
    "      %w3 = math.roundeven %w2 : $\n"
    "      linalg.yield %w3 : $\n"
    "  } -> tensor<64x$>\n"
    "  %s = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->(63-i)>],\n"
    "       iterator_types = [\"parallel\"]} ins(%r : tensor<64x$>)\n"
    "       outs(%e2 : tensor<64xi64>) {\n"
    "    ^bb0(%a: $, %o: i64):\n"
    "      %t = arith.fptosi %a : $ to i64\n"
    "      linalg.yield %t : i64\n"
    "  } -> tensor<64xi64>\n"
    "  bufferization.materialize_in_destination %r in restrict writable %y\n"
    "    : (tensor<64x$>, memref<64x$>) -> ()\n"
    "  bufferization.materialize_in_destination %s in restrict writable %z\n"
    "    : (tensor<64xi64>, memref<64xi64>) -> ()\n"
    "  return\n"
    "}\n";

/* The text with the type in the place of each $. */
static void fill_in(char *to, size_t size, const char *type)
{
    size_t at = 0;

    for (const char *c = kinds; *c && at + 8 < size; c++)
        if (*c == '$')
            at += (size_t)snprintf(to + at, size - at, "%s", type);
        else
            to[at++] = *c;
    to[at] = '\0';
}

static const struct {
    const char *triple, *magic;
    size_t size;
    int machine; /* of ELF */
} targets[] = {{"x86_64-linux-gnu",
                "\x7f"
                "ELF\2\1",
                6, 62},
               {"aarch64-linux-gnu",
                "\x7f"
                "ELF\2\1",
                6, 183},
               {"riscv64-linux-gnu",
                "\x7f"
                "ELF\2\1",
                6, 243},
               {"wasm32", "\0asm", 4, 0}};
static const char *const types[] = {"f32", "f16", "bf16"};

/* Names that the object needs from others must be of math.h, or memcpy and memset. */
static void check_needed(const struct cm_mlir_product *product)
{
    static const char *const allowed[] = {
        "__linear_memory", "__stack_pointer", "memcpy", "memset", "expf", "erff", "floorf", "powf",
        "rintf",           "tanhf",           "sqrtf"};
    struct folder folder;
    char path[FOLDER_PATH_SIZE], command[FOLDER_PATH_SIZE + 64], name[256];

    folder_make(&folder);
    FILE *file = fopen(folder_path(&folder, "x.o", path), "wb");
    CHECK(file && fwrite(product->bytes, 1, product->size, file) == product->size);
    fclose(file);
    snprintf(command, sizeof command, "llvm-nm-19 -u -j '%s'", path);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL);
    while (fgets(name, sizeof name, pipe)) {
        bool found = false;

        name[strcspn(name, "\n")] = '\0';
        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
            found = found || strcmp(name, allowed[i]) == 0;
        if (!found)
            fail_msg("the object needs %s", name);
    }
    pclose(pipe);
    folder_remove(&folder);
}

void test_module__objects_for_four_machines_need_math_h_alone(void)
{
    char text[8192];
    int not_looked_at = 0;

    for (size_t i = 0; i < sizeof targets / sizeof targets[0] && program_has_module(); i++)
        for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
            struct cm_mlir_product product;

            fill_in(text, sizeof text, types[k]);
            if (!program_build(&(struct program_case){.text = text}, CM_MLIR_OBJECT,
                               targets[i].triple, &product))
                fail_msg("%s: %s", targets[i].triple, product.error);
            CHECK(product.size > 100 &&
                  memcmp(product.bytes, targets[i].magic, targets[i].size) == 0);
            if (targets[i].machine)
                CHECK_INT((unsigned char)product.bytes[18], targets[i].machine);
            if (program_has_tool("llvm-nm-19"))
                check_needed(&product);
            else
                not_looked_at++;
            program_module()->release(&product);
        }
    if (not_looked_at)
        print_message("%d objects were not looked into: llvm-nm-19 is missing\n", not_looked_at);
}

/* ---- conversions of narrow floats ---- */

/* The nearest to `exact` of a guess and its neighbours, ties to even. */
static uint16_t nearest(double exact, uint16_t guess, float to_float(uint16_t))
{
    uint16_t best = guess;

    for (int i = -1; i <= 1; i += 2) {
        const uint16_t other = (uint16_t)(guess + i);
        const double off = fabs(to_float(other) - exact), now = fabs(to_float(best) - exact);

        if ((guess & 0x7FFF) + i >= 0 && (off < now || (off == now && other % 2 == 0)))
            best = other;
    }
    return best;
}

void test_module__float16_is_converted_as_the_library_does(void)
{
    static const char text[] =
        "%h: memref<65536xf16>, %f: memref<65536xf32>, %x: memref<65536xf32>,\n"
        "  %d: memref<65536xf64>, %y: memref<65536xf16>, %b: memref<65536xbf16>,\n"
        "  %z: memref<65536xf16>) {\n"
        "  %c0 = arith.constant 0 : index\n"
        "  %c1 = arith.constant 1 : index\n"
        "  %n = arith.constant 65536 : index\n"
        "  scf.for %i = %c0 to %n step %c1 {\n"
        "    %a = memref.load %h[%i] : memref<65536xf16>\n"
        "    %w = arith.extf %a : f16 to f32\n"
        "    memref.store %w, %f[%i] : memref<65536xf32>\n"
        "    %v = memref.load %x[%i] : memref<65536xf32>\n"
        "    %t = arith.truncf %v : f32 to f16\n"
        "    memref.store %t, %y[%i] : memref<65536xf16>\n"
        "    %u = memref.load %d[%i] : memref<65536xf64>\n"
        "    %p = arith.truncf %u : f64 to bf16\n"
        "    memref.store %p, %b[%i] : memref<65536xbf16>\n"
        "    %q = arith.truncf %u : f64 to f16\n"
        "    memref.store %q, %z[%i] : memref<65536xf16>\n"
        "  }\n"
        "  return\n"
        "}\n";
    enum { N = 65536 };
    static uint16_t h[N], y[N], b[N], z[N];
    static float f[N], x[N];
    static double d[N];
    const struct program_port ports[] = {{h, 1, {N}}, {f, 1, {N}}, {x, 1, {N}}, {d, 1, {N}},
                                         {y, 1, {N}}, {b, 1, {N}}, {z, 1, {N}}};
    struct program_run run;
    uint32_t state = 5;

    for (int i = 0; i < N; i++) {
        h[i] = (uint16_t)i;
        state = state * 1664525u + 1013904223u;
        const uint32_t bits = (state & 0x80FFFFFFu) | ((90 + state % 60) << 23);
        memcpy(&x[i], &bits, 4);
        /* Half way between two, and a little beside it: rounding twice would see a tie. */
        d[i] = (double)x[i] * (i % 2 ? 1.0 : 1.0 + 1e-12);
        if (i % 3 == 0)
            d[i] = (1.0 + (2 * (i % 512) + 1) / 2048.0 + (i % 4 - 1) * 1e-13) * (i % 5 ? 1 : -1);
    }
    if (!program_has_module() ||
        !program_run(&(struct program_case){.text = text, .cpu = ""}, ports, 7, NULL, &run))
        return;
    for (int i = 0; i < N; i++) {
        const float wide = cm_half_to_float(h[i]);

        CHECK(memcmp(&wide, &f[i], 4) == 0 || (wide != wide && f[i] != f[i]));
        CHECK_INT(y[i], cm_half_from_float(x[i]));
        CHECK_INT(z[i], fabs(d[i]) >= 65520
                            ? (d[i] < 0 ? 0xFC00 : 0x7C00)
                            : nearest(d[i], cm_half_from_float((float)d[i]), cm_half_to_float));
        CHECK_INT(b[i], nearest(d[i], cm_bfloat_from_float((float)d[i]), cm_bfloat_to_float));
    }
}

/* ---- refusals ---- */

void test_module__wrong_text_is_refused_with_its_line(void)
{
    static const struct {
        const char *text, *private, *part;
    } cases[] = {
        {"%x: memref<4xf32>) {\n  return %x : memref<4xf32>\n}\n", NULL, "line 2"},
        {"%x: memref<4xf32>) {\n  %y = arith.nothing %x : memref<4xf32>\n  return\n}\n", NULL,
         "line 2, column 8: "},
        {"%x: memref<4xf32>) {\n  %y = arith.addf %x, %z : f32\n  return\n}\n", NULL, "line 2"},
        {"%x: memref<4xf32>) {\n", NULL, "reading the program: line 1"},
        {")", NULL, "line 1, column 1: "},
        {") { return }\n \"a\"\"b", NULL, "line 2"},
        {"%x: memref<4xf32>) {\n  gpu.barrier\n  return\n}\n", NULL, "generating code: "},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0] && program_has_module(); i++) {
        struct cm_mlir_product product;
        const struct program_case program = {.text = cases[i].text, .private = cases[i].private};

        if (program_build(&program, CM_MLIR_OBJECT, "", &product))
            fail_msg("case %zu was compiled", i);
        if (!strstr(product.error, cases[i].part))
            fail_msg("case %zu: expected '%s', got: %s", i, cases[i].part, product.error);
        CHECK(!product.bytes && !product.messages);
        program_module()->release(&product);
    }
}

void test_module__a_program_without_cm_main_and_unknown_machines_are_refused(void)
{
    static const char other[] = "func.func @main(%x: index) {\n  return\n}\n";
    struct cm_mlir_job job = {.text = {other, sizeof other - 1},
                              .form = CM_MLIR_OBJECT,
                              .triple = "",
                              .cpu = "",
                              .features = ""};
    struct cm_mlir_product product;

    if (!program_has_module())
        return;
    CHECK(!program_build_job(&job, &product));
    CHECK(strstr(product.error, "has no function cm_main"));
    program_module()->release(&product);
    job.triple = "pdp11-dec-unix";
    CHECK(!program_build_job(&job, &product));
    CHECK(strstr(product.error, "choosing the target: 'pdp11-dec-unix': "));
    program_module()->release(&product);
    job.triple = "";
    job.glue = (struct cm_mlir_bytes){"BC\xC0\xDE wrong", 10};
    static const char right[] =
        "func.func @cm_main(%c: index, %w: memref<?xi8>, %a: memref<?xi8>) {\n  return\n}\n";
    job.text = (struct cm_mlir_bytes){right, sizeof right - 1};
    CHECK(!program_build_job(&job, &product));
    CHECK(strstr(product.error, "generating code: "));
    program_module()->release(&product);
}

/* ---- vectors ---- */

static const char *const vectorized[] = {
    /* a chain of elementwise operations becomes one loop */
    "%x: memref<1000xf32>, %y: memref<1000xf32>) {\n"
    "  %t = bufferization.to_tensor %x restrict : memref<1000xf32>\n"
    "  %e = tensor.empty() : tensor<1000xf32>\n"
    "  %a = linalg.add ins(%t, %t : tensor<1000xf32>, tensor<1000xf32>)\n"
    "       outs(%e : tensor<1000xf32>) -> tensor<1000xf32>\n"
    "  %b = linalg.mul ins(%a, %t : tensor<1000xf32>, tensor<1000xf32>)\n"
    "       outs(%e : tensor<1000xf32>) -> tensor<1000xf32>\n"
    "  bufferization.materialize_in_destination %b in restrict writable %y\n"
    "    : (tensor<1000xf32>, memref<1000xf32>) -> ()\n"
    "  return\n"
    "}\n",
    /* a product, whose innermost loop would be a sum */
    "%x: memref<32x48xf32>, %w: memref<48x64xf32>, %y: memref<32x64xf32>) {\n"
    "  %a = bufferization.to_tensor %x restrict : memref<32x48xf32>\n"
    "  %b = bufferization.to_tensor %w restrict : memref<48x64xf32>\n"
    "  %z = arith.constant 0.0 : f32\n"
    "  %e = tensor.empty() : tensor<32x64xf32>\n"
    "  %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>\n"
    "  %p = linalg.matmul ins(%a, %b : tensor<32x48xf32>, tensor<48x64xf32>)\n"
    "       outs(%f : tensor<32x64xf32>) -> tensor<32x64xf32>\n"
    "  bufferization.materialize_in_destination %p in restrict writable %y\n"
    "    : (tensor<32x64xf32>, memref<32x64xf32>) -> ()\n"
    "  return\n"
    "}\n",
    /* a sum that says it may be reordered */
    "%x: memref<1000xf32>, %y: memref<f32>) {\n"
    "  %t = bufferization.to_tensor %x restrict : memref<1000xf32>\n"
    "  %z = arith.constant 0.0 : f32\n"
    "  %e = tensor.empty() : tensor<f32>\n"
    "  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>\n"
    "  %p = linalg.generic {indexing_maps = [affine_map<(i)->(i)>, affine_map<(i)->()>],\n"
    "       iterator_types = [\"reduction\"]} ins(%t : tensor<1000xf32>) outs(%f : tensor<f32>) {\n"
    "    ^bb0(%a: f32, %o: f32):\n"
    "      %s = arith.addf %a, %o fastmath<reassoc> : f32\n"
    "      linalg.yield %s : f32\n"
    "  } -> tensor<f32>\n"
    "  bufferization.materialize_in_destination %p in restrict writable %y\n"
    "    : (tensor<f32>, memref<f32>) -> ()\n"
    "  return\n"
    "}\n"};

void test_module__loops_become_vectors(void)
{
    for (size_t i = 0; i < sizeof vectorized / sizeof vectorized[0] && program_has_module(); i++) {
        struct cm_mlir_product product;

        CHECK(program_build(&(struct program_case){.text = vectorized[i]}, CM_MLIR_LLVM,
                            "x86_64-linux-gnu", &product));
        if (!strstr(product.bytes, " x float>"))
            fail_msg("program %zu has no vectors:\n%s", i, product.bytes);
        CHECK(!strstr(product.bytes, "vector.memcheck")); /* no questions whether memory overlaps */
        program_module()->release(&product);
    }
}

void test_module__every_form_is_text_of_its_kind(void)
{
    static const char *const holds[] = {"linalg.add", "memref<1000xf32>", "llvm.func @cm_main",
                                        "define void @cm_main", "cm_main:"};

    for (int form = CM_MLIR_LINALG; form <= CM_MLIR_ASSEMBLY && program_has_module(); form++) {
        struct cm_mlir_product product;

        CHECK(program_build(&(struct program_case){.text = vectorized[0]}, (enum cm_mlir_form)form,
                            "", &product));
        CHECK(strstr(product.bytes, holds[form]));
        program_module()->release(&product);
    }
}

void test_module__knows_its_version_and_targets(void)
{
    char version[32];

    if (!program_has_module())
        return;
    program_module()->version(version, sizeof version);
    CHECK(strncmp(version, "19.", 3) == 0);
    char *targets_text = program_module()->targets();
    CHECK(strstr(targets_text, "aarch64\n") && strstr(targets_text, "wasm32\n"));
    free(targets_text);
    program_tell_left_out();
}
