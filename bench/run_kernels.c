/* The kernels that compiled models call beside what the library runs, in turns: every product and
 * convolution of some networks, one thread, processor time, the best of many.
 *
 *     build/bench/run_kernels [NETWORK]
 *
 * The library's time is that of the node alone: its weights are constant and packed, its image may
 * have the layout that it likes best. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "exec/session.h"
#include "kernels/kernels.h"
#include "lower/lower.h"
#include "onnx/syntax.h"

#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7 };

static const double round_seconds = 6e-3;

/* `count` times in a network: a convolution of square images with square kernels, or a product of
 * rows x channels by channels x results. */
struct layer {
    const char *network;
    int count;
    int batch, channels, size, results, kernel, stride, pad, groups; /* kernel 0: a product */
    int rows;
    enum { CONSTANT, CONSTANT_TRANSPOSED, COMPUTED } weights;
};

#define CONV(network, count, ...)                                                                  \
    {                                                                                              \
        network, count, __VA_ARGS__, 0, CONSTANT                                                   \
    }
#define PRODUCT(network, count, rows, channels, results, weights)                                  \
    {                                                                                              \
        network, count, 1, channels, 1, results, 0, 1, 0, 1, rows, weights                         \
    }

/* clang-format off */
static const struct layer layers[] = {
    CONV("resnet50", 1, 1, 3, 224, 64, 7, 2, 3, 1),
    CONV("resnet50", 1, 1, 64, 56, 64, 1, 1, 0, 1),
    CONV("resnet50", 3, 1, 64, 56, 64, 3, 1, 1, 1),
    CONV("resnet50", 4, 1, 64, 56, 256, 1, 1, 0, 1),
    CONV("resnet50", 2, 1, 256, 56, 64, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 256, 56, 128, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 128, 56, 128, 3, 2, 1, 1),
    CONV("resnet50", 4, 1, 128, 28, 512, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 256, 56, 512, 1, 2, 0, 1),
    CONV("resnet50", 3, 1, 512, 28, 128, 1, 1, 0, 1),
    CONV("resnet50", 3, 1, 128, 28, 128, 3, 1, 1, 1),
    CONV("resnet50", 1, 1, 512, 28, 256, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 256, 28, 256, 3, 2, 1, 1),
    CONV("resnet50", 6, 1, 256, 14, 1024, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 512, 28, 1024, 1, 2, 0, 1),
    CONV("resnet50", 5, 1, 1024, 14, 256, 1, 1, 0, 1),
    CONV("resnet50", 5, 1, 256, 14, 256, 3, 1, 1, 1),
    CONV("resnet50", 1, 1, 1024, 14, 512, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 512, 14, 512, 3, 2, 1, 1),
    CONV("resnet50", 3, 1, 512, 7, 2048, 1, 1, 0, 1),
    CONV("resnet50", 1, 1, 1024, 14, 2048, 1, 2, 0, 1),
    CONV("resnet50", 2, 1, 2048, 7, 512, 1, 1, 0, 1),
    CONV("resnet50", 2, 1, 512, 7, 512, 3, 1, 1, 1),
    PRODUCT("resnet50", 1, 1, 2048, 1000, CONSTANT_TRANSPOSED),
    CONV("resnet18", 1, 1, 3, 224, 64, 7, 2, 3, 1),
    CONV("resnet18", 4, 1, 64, 56, 64, 3, 1, 1, 1),
    CONV("resnet18", 1, 1, 64, 56, 128, 3, 2, 1, 1),
    CONV("resnet18", 3, 1, 128, 28, 128, 3, 1, 1, 1),
    CONV("resnet18", 1, 1, 64, 56, 128, 1, 2, 0, 1),
    CONV("resnet18", 1, 1, 128, 28, 256, 3, 2, 1, 1),
    CONV("resnet18", 3, 1, 256, 14, 256, 3, 1, 1, 1),
    CONV("resnet18", 1, 1, 128, 28, 256, 1, 2, 0, 1),
    CONV("resnet18", 1, 1, 256, 14, 512, 3, 2, 1, 1),
    CONV("resnet18", 3, 1, 512, 7, 512, 3, 1, 1, 1),
    CONV("resnet18", 1, 1, 256, 14, 512, 1, 2, 0, 1),
    PRODUCT("resnet18", 1, 1, 512, 1000, CONSTANT_TRANSPOSED),
    CONV("vgg16", 1, 1, 3, 224, 64, 3, 1, 1, 1),
    CONV("vgg16", 1, 1, 64, 224, 64, 3, 1, 1, 1),
    CONV("vgg16", 1, 1, 64, 112, 128, 3, 1, 1, 1),
    CONV("vgg16", 1, 1, 128, 112, 128, 3, 1, 1, 1),
    CONV("vgg16", 1, 1, 128, 56, 256, 3, 1, 1, 1),
    CONV("vgg16", 2, 1, 256, 56, 256, 3, 1, 1, 1),
    CONV("vgg16", 1, 1, 256, 28, 512, 3, 1, 1, 1),
    CONV("vgg16", 2, 1, 512, 28, 512, 3, 1, 1, 1),
    CONV("vgg16", 3, 1, 512, 14, 512, 3, 1, 1, 1),
    PRODUCT("vgg16", 1, 1, 25088, 4096, CONSTANT_TRANSPOSED),
    PRODUCT("vgg16", 1, 1, 4096, 4096, CONSTANT_TRANSPOSED),
    PRODUCT("vgg16", 1, 1, 4096, 1000, CONSTANT_TRANSPOSED),
    CONV("mobilenet_v2", 1, 1, 3, 224, 32, 3, 2, 1, 1),
    CONV("mobilenet_v2", 1, 1, 32, 112, 32, 3, 1, 1, 32),
    CONV("mobilenet_v2", 1, 1, 32, 112, 16, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 16, 112, 96, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 96, 112, 96, 3, 2, 1, 96),
    CONV("mobilenet_v2", 1, 1, 96, 56, 24, 1, 1, 0, 1),
    CONV("mobilenet_v2", 2, 1, 24, 56, 144, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 144, 56, 144, 3, 1, 1, 144),
    CONV("mobilenet_v2", 1, 1, 144, 56, 24, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 144, 56, 144, 3, 2, 1, 144),
    CONV("mobilenet_v2", 1, 1, 144, 28, 32, 1, 1, 0, 1),
    CONV("mobilenet_v2", 3, 1, 32, 28, 192, 1, 1, 0, 1),
    CONV("mobilenet_v2", 2, 1, 192, 28, 192, 3, 1, 1, 192),
    CONV("mobilenet_v2", 2, 1, 192, 28, 32, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 192, 28, 192, 3, 2, 1, 192),
    CONV("mobilenet_v2", 1, 1, 192, 14, 64, 1, 1, 0, 1),
    CONV("mobilenet_v2", 4, 1, 64, 14, 384, 1, 1, 0, 1),
    CONV("mobilenet_v2", 4, 1, 384, 14, 384, 3, 1, 1, 384),
    CONV("mobilenet_v2", 3, 1, 384, 14, 64, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 384, 14, 96, 1, 1, 0, 1),
    CONV("mobilenet_v2", 3, 1, 96, 14, 576, 1, 1, 0, 1),
    CONV("mobilenet_v2", 2, 1, 576, 14, 576, 3, 1, 1, 576),
    CONV("mobilenet_v2", 2, 1, 576, 14, 96, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 576, 14, 576, 3, 2, 1, 576),
    CONV("mobilenet_v2", 1, 1, 576, 7, 160, 1, 1, 0, 1),
    CONV("mobilenet_v2", 3, 1, 160, 7, 960, 1, 1, 0, 1),
    CONV("mobilenet_v2", 3, 1, 960, 7, 960, 3, 1, 1, 960),
    CONV("mobilenet_v2", 2, 1, 960, 7, 160, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 960, 7, 320, 1, 1, 0, 1),
    CONV("mobilenet_v2", 1, 1, 320, 7, 1280, 1, 1, 0, 1),
    PRODUCT("mobilenet_v2", 1, 1, 1280, 1000, CONSTANT_TRANSPOSED),
    CONV("lenet", 1, 64, 1, 28, 32, 5, 1, 2, 1),
    CONV("lenet", 1, 64, 32, 14, 64, 5, 1, 2, 1),
    PRODUCT("lenet", 1, 64, 3136, 512, CONSTANT_TRANSPOSED),
    PRODUCT("lenet", 1, 64, 512, 10, CONSTANT_TRANSPOSED),
    PRODUCT("mlp", 1, 64, 784, 512, CONSTANT_TRANSPOSED),
    PRODUCT("mlp", 1, 64, 512, 512, CONSTANT_TRANSPOSED),
    PRODUCT("mlp", 1, 64, 512, 10, CONSTANT_TRANSPOSED),
    PRODUCT("bert_mini", 4, 128, 256, 768, CONSTANT),
    PRODUCT("bert_mini", 16, 128, 64, 128, COMPUTED),
    PRODUCT("bert_mini", 16, 128, 128, 64, COMPUTED),
    PRODUCT("bert_mini", 4, 128, 256, 256, CONSTANT),
    PRODUCT("bert_mini", 4, 128, 256, 1024, CONSTANT),
    PRODUCT("bert_mini", 4, 128, 1024, 256, CONSTANT),
    PRODUCT("gpt2_1", 12, 1, 768, 2304, CONSTANT),
    PRODUCT("gpt2_1", 12, 1, 768, 768, CONSTANT),
    PRODUCT("gpt2_1", 12, 1, 768, 3072, CONSTANT),
    PRODUCT("gpt2_1", 12, 1, 3072, 768, CONSTANT),
    PRODUCT("gpt2_256", 12, 256, 768, 2304, CONSTANT),
    PRODUCT("gpt2_256", 144, 256, 64, 256, COMPUTED),
    PRODUCT("gpt2_256", 144, 256, 256, 64, COMPUTED),
    PRODUCT("gpt2_256", 12, 256, 768, 768, CONSTANT),
    PRODUCT("gpt2_256", 12, 256, 768, 3072, CONSTANT),
    PRODUCT("gpt2_256", 12, 256, 3072, 768, CONSTANT),
};
/* clang-format on */

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int out_size(const struct layer *l)
{
    return (l->size + 2 * l->pad - l->kernel) / l->stride + 1;
}

static size_t weights_of(const struct layer *l)
{
    const int taps = l->kernel ? l->kernel * l->kernel : 1;
    return (size_t)l->results * (size_t)(l->channels / l->groups * taps);
}

/* ---- the library ---- */

static void model_text(const struct layer *l, char *text, size_t room)
{
    char weights[256] = "", result[64];
    if (l->weights != COMPUTED)
        snprintf(weights, sizeof weights,
                 "  shape = Constant<value_ints = [%d, %d%s]>()\n"
                 "  w = ConstantOfShape<value = float[1] {0.01}>(shape)\n",
                 l->weights == CONSTANT && !l->kernel ? l->channels : l->results,
                 l->weights == CONSTANT && !l->kernel ? l->results : l->channels / l->groups,
                 !l->kernel       ? ""
                 : l->kernel == 1 ? ", 1, 1"
                 : l->kernel == 3 ? ", 3, 3"
                 : l->kernel == 5 ? ", 5, 5"
                                  : ", 7, 7");
    if (l->kernel)
        snprintf(result, sizeof result, "float[%d, %d, %d, %d] y", l->batch, l->results,
                 out_size(l), out_size(l));
    else
        snprintf(result, sizeof result, "float[%d, %d] y", l->rows, l->results);
    if (l->kernel)
        snprintf(text, room,
                 "<ir_version: 10, opset_import: [\"\" : 22]>\nmain (float[%d, %d, %d, %d] x) => "
                 "(%s) {\n%s  y = Conv<strides = [%d, %d], pads = [%d, %d, %d, %d], group = "
                 "%d>(x, w)\n}\n",
                 l->batch, l->channels, l->size, l->size, result, weights, l->stride, l->stride,
                 l->pad, l->pad, l->pad, l->pad, l->groups);
    else if (l->weights == COMPUTED)
        snprintf(text, room,
                 "<ir_version: 10, opset_import: [\"\" : 22]>\nmain (float[%d, %d] x, float[%d, "
                 "%d] w) => (%s) {\n  y = MatMul(x, w)\n}\n",
                 l->rows, l->channels, l->channels, l->results, result);
    else
        snprintf(text, room,
                 "<ir_version: 10, opset_import: [\"\" : 22]>\nmain (float[%d, %d] x) => (%s) "
                 "{\n%s  y = Gemm<transB = %d>(x, w)\n}\n",
                 l->rows, l->channels, result, weights, l->weights == CONSTANT_TRANSPOSED);
}

static enum cm_status open_text(struct cm_arena *arena, const char *text, struct cm_session **out,
                                struct cm_graph **graph, struct cm_error *err)
{
    const struct cm_session_options options = {.threads = 1};
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    CM_TRY(cm_syntax_parse_model(cm_str(text), arena, model, err));
    CM_TRY(cm_lower_import(cm_module_new(arena, NULL), model, NULL, graph, err));
    CM_TRY(cm_lower_graph(*graph, NULL, err));
    return cm_session_new(*graph, &options, out, err);
}

static void drop(void *datum)
{
    cm_datum_drop(datum);
}

static enum cm_status make_input(struct cm_arena *arena, const struct cm_type *type,
                                 const struct cm_datum **out, struct cm_error *err)
{
    struct cm_datum *datum = CM_NEW(arena, struct cm_datum);
    struct cm_shape shape;
    cm_type_shape(type, &shape);
    CM_TRY(cm_tensor_new(type->dtype, &shape, &datum->tensor, err));
    datum->kind = CM_KIND_TENSOR;
    cm_arena_defer(arena, drop, datum);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] = (float)(0.5 + (double)(i % 1000) / 1000);
    *out = datum;
    return CM_OK;
}

/* The time of the product or convolution among the steps of a run. */
struct watch {
    double took;
    const char *kernel;
};

static void note_step(void *arg, const struct cm_step_report *report)
{
    struct watch *watch = arg;
    if (report->flops > 0) {
        watch->took += (double)(report->end_ns - report->begin_ns) * 1e-9;
        watch->kernel = report->kernel;
    }
}

/* ---- the kernel ---- */

struct operands {
    float *x, *w, *packed, *y, *scratch;
};

/* Which of two kernels takes a convolution: as data/mlir/lib/conv_is_direct.mlir has it. */
static bool is_direct(const struct layer *l)
{
    const int taps = l->kernel * l->kernel, places = out_size(l) * out_size(l);
    const bool in_place = taps == 1 && l->stride == 1;
    const int line = in_place ? places : out_size(l);
    const int copied = l->channels * l->kernel * (line * l->stride + l->kernel + 6);
    const bool is_deep = taps == 1 ? l->channels >= (places <= 49 ? 128 : 192) && places <= 196
                                   : l->channels * taps >= 128 || taps >= 25;
    return l->kernel && is_deep && line * 10 >= (line + 6) / 7 * 63 && l->results >= 16 &&
           l->results * 4 >= (l->results + 15) / 16 * 48 && (in_place || copied <= 60000);
}

static void run_kernel(const struct layer *l, const struct operands *o)
{
    const intptr_t x = (intptr_t)o->x, w = (intptr_t)o->w, packed = (intptr_t)o->packed;
    const intptr_t y = (intptr_t)o->y, scratch = (intptr_t)o->scratch;
    if (!l->kernel && l->weights == COMPUTED)
        cameo_product_f32(x, w, y, l->rows, l->results, l->channels, l->channels, 1, l->results, 1,
                          0, 0, 0, 0, 0, scratch, CAMEO_SCRATCH_BYTES);
    else if (!l->kernel)
        cameo_product_packed_f32(x, packed, y, l->rows, l->results, l->channels, l->channels, 1, 0,
                                 0, 0, 0, 0, scratch, CAMEO_SCRATCH_BYTES);
    else if (l->groups == 1)
        (is_direct(l) ? cameo_conv_direct_f32 : cameo_conv_packed_f32)(
            x, packed, y, l->batch, 1, l->channels, l->results, 1, l->size, l->size, 1, out_size(l),
            out_size(l), 1, l->kernel, l->kernel, 1, l->stride, l->stride, 1, 1, 1, 0, l->pad,
            l->pad, 0, 0, 0, 0, 0, scratch, CAMEO_SCRATCH_BYTES);
    else
        cameo_conv_f32(x, w, y, l->batch, l->groups, l->channels, l->results, 1, l->size, l->size,
                       1, out_size(l), out_size(l), 1, l->kernel, l->kernel, 1, l->stride,
                       l->stride, 1, 1, 1, 0, l->pad, l->pad, 0, 0, 0, 0, 0, scratch,
                       CAMEO_SCRATCH_BYTES);
}

static void pack(const struct layer *l, const struct operands *o)
{
    const intptr_t w = (intptr_t)o->w, packed = (intptr_t)o->packed;
    const intptr_t taps = l->kernel ? l->kernel * l->kernel : 1;
    const intptr_t k = l->channels / l->groups * taps, lines = l->results / l->groups;
    const bool are_rows = l->kernel || l->weights == CONSTANT_TRANSPOSED;
    cameo_pack_f32(w, packed, l->groups, lines, k, are_rows ? k : 1, are_rows ? 1 : l->results,
                   l->kernel && !is_direct(l) ? CAMEO_PANEL_ROWS : CAMEO_PANEL_COLUMNS);
}

static float *floats(size_t count)
{
    float *x = aligned_alloc(64, (count * sizeof *x + 63) / 64 * 64);
    for (size_t i = 0; x && i < count; i++)
        x[i] = (float)(0.5 + (double)(i % 1000) / 1000);
    return x;
}

static bool make_operands(const struct layer *l, struct operands *o)
{
    const size_t places = l->kernel ? (size_t)out_size(l) * (size_t)out_size(l) : 1;
    const size_t batch = (size_t)(l->kernel ? l->batch : l->rows);
    o->x = floats(batch * (size_t)l->channels * (size_t)l->size * (size_t)l->size);
    o->w = floats(weights_of(l));
    o->packed = floats(weights_of(l) * CAMEO_PANEL_COLUMNS + 4096);
    o->y = floats(batch * (size_t)l->results * places);
    o->scratch = floats(CAMEO_SCRATCH_BYTES / sizeof(float));
    return o->x && o->w && o->packed && o->y && o->scratch;
}

/* ---- side by side ---- */

struct total {
    double ours, library;
};

static enum cm_status compare(struct cm_arena *arena, const struct layer *l, struct total *total,
                              struct cm_error *err)
{
    char text[1024], name[80];
    struct cm_session *session = NULL;
    struct cm_graph *graph;
    const struct cm_datum *in[2];
    struct cm_datum out = {0};
    struct operands o = {0};
    double ours = 1e9, library = 1e9;
    struct watch watch = {0};
    const struct cm_run_options options = {.step = note_step, .step_arg = &watch};
    model_text(l, text, sizeof text);
    enum cm_status status = open_text(arena, text, &session, &graph, err);
    for (size_t i = 0; !status && i < graph->n_inputs; i++)
        status = make_input(arena, cm_value_get(graph->module, graph->inputs[i])->fact.type, &in[i],
                            err);
    if (!status && !make_operands(l, &o))
        status = cm_fail(err, CM_NO_MEMORY, "no memory");
    if (!status)
        pack(l, &o);
    for (int round = 0; round < ROUNDS && !status; round++) {
        for (double left = round_seconds; left > 0;) {
            const double began = seconds();
            run_kernel(l, &o);
            const double took = seconds() - began;
            ours = took < ours ? took : ours;
            left -= took;
        }
        for (double left = round_seconds; left > 0 && !status;) {
            watch.took = 0;
            status = cm_session_run(session, in, graph->n_inputs, &out, 1, &options, err);
            library = watch.took < library ? watch.took : library;
            left -= watch.took > 0 ? watch.took : round_seconds;
        }
    }
    if (!status) {
        const double places = l->kernel ? (double)out_size(l) * out_size(l) * l->batch : l->rows;
        const double work = 2 * (double)weights_of(l) * places;
        if (l->kernel)
            snprintf(name, sizeof name, "%d x %d x %d^2 * %d, %dx%d/%d%s", l->batch, l->channels,
                     l->size, l->results, l->kernel, l->kernel, l->stride,
                     l->groups > 1 ? " depthwise" : "");
        else
            snprintf(name, sizeof name, "%d x %d x %d%s", l->rows, l->results, l->channels,
                     l->weights == COMPUTED ? " computed" : "");
        printf("%-12s %3d of %-34s %9.1f us %6.1f GFLOP/s  %-9s %9.1f us  %.2f\n", l->network,
               l->count, name, ours * 1e6, work / ours * 1e-9, watch.kernel, library * 1e6,
               ours / library);
        fflush(stdout);
        total->ours += l->count * ours;
        total->library += l->count * library;
    }
    cm_datum_drop(&out);
    cm_session_free(session);
    free(o.x);
    free(o.w);
    free(o.packed);
    free(o.y);
    free(o.scratch);
    return status;
}

static const char *wanted = "";

static enum cm_status bench(struct cm_guard *guard, void *arg)
{
    struct cm_error *err = arg;
    enum cm_status status = CM_OK;
    struct total total = {0};
    for (size_t i = 0; i < CM_COUNT(layers) && !status; i++) {
        struct cm_arena arena;
        if (*wanted && strcmp(wanted, layers[i].network) != 0)
            continue;
        cm_arena_init(&arena, guard);
        status = compare(&arena, &layers[i], &total, err);
        cm_arena_release(&arena);
        const bool is_last =
            i + 1 == CM_COUNT(layers) || strcmp(layers[i].network, layers[i + 1].network) != 0;
        if (is_last && !status) {
            printf("%-12s all %9.1f us, library %9.1f us: %.2f\n", layers[i].network,
                   total.ours * 1e6, total.library * 1e6, total.ours / total.library);
            total = (struct total){0};
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    struct cm_error err = {0};
    if (argc > 1)
        wanted = argv[1];
    if (cm_guarded(0, &err, bench, &err) == CM_OK)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return 1;
}
