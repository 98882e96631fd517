/* Fast kernels beside reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "base/machine.h"

#include <math.h>

enum { MOST_INPUTS = 8, MOST_OUTPUTS = 4, MOST_TEXT = 256 };

static void note_kernel(void *arg, const struct cm_step_report *report)
{
    char *names = arg;
    const size_t used = strlen(names);
    snprintf(names + used, MOST_TEXT - used, "%s%s", used ? ", " : "", report->kernel);
}

static struct cm_datum *numbers(struct cm_arena *arena, const struct cm_type *type, uint32_t seed)
{
    struct cm_shape shape;
    CHECK(cm_type_shape(type, &shape));
    struct cm_datum *datum = exec_ramp(arena, &shape, 0);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)datum->tensor.data)[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return datum;
}

struct kernel_run {
    struct cm_datum out[MOST_OUTPUTS];
    size_t n_out;
    char kernels[MOST_TEXT];
};

static void drop_run(void *what)
{
    struct kernel_run *run = what;
    for (size_t o = 0; o < run->n_out; o++)
        cm_datum_drop(&run->out[o]);
}

static struct kernel_run *run_kernels(struct cm_arena *arena, const struct kernel_case *c,
                                      const char *backend, int threads)
{
    static const char head[] = "<ir_version: 10, opset_import: [\"\" : 28, \"ai.cameo\" : 1]>\n";
    const struct cm_str text = cm_arena_printf(arena, "%s%s", head, c->graph);
    struct cm_graph *graph = graph_of(arena, text.data, NULL);
    const struct cm_datum *in[MOST_INPUTS];
    struct kernel_run *run = CM_NEW(arena, struct kernel_run);
    const struct cm_run_options options = {.step = note_kernel, .step_arg = run->kernels};
    struct cm_error err = {0};
    CHECK(graph->n_inputs <= MOST_INPUTS && graph->n_outputs <= MOST_OUTPUTS);
    run->n_out = graph->n_outputs;
    cm_arena_defer(arena, drop_run, run);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct cm_type *type = cm_value_get(graph->module, graph->inputs[i])->fact.type;
        struct cm_datum *datum = numbers(arena, type, (uint32_t)i + 11);
        float *x = datum->tensor.data;
        for (int64_t k = 0; i == 0 && k < cm_tensor_count(&datum->tensor); k++)
            x[k] = c->odd != 0 && k % 29 == 3 ? c->odd : x[k] + (float)c->shift;
        in[i] = datum;
    }
    const struct cm_session_options how = {.threads = threads, .backend = backend};
    struct cm_session *session =
        c->passes ? exec_open_after(arena, graph, NULL, &how) : exec_open(arena, graph, &how);
    CHECK_OK(cm_session_run(session, in, graph->n_inputs, run->out, run->n_out, &options, &err),
             &err);
    return run;
}

static bool is_close(double a, double b, double room)
{
    return isnan(b) ? isnan(a) : a == b || fabs(a - b) <= room;
}

static void check_close(const struct kernel_case *c, const struct kernel_run *got,
                        const struct kernel_run *want)
{
    for (size_t o = 0; o < want->n_out; o++) {
        const struct cm_tensor *a = &got->out[o].tensor, *b = &want->out[o].tensor;
        double largest = 0;
        CHECK(cm_shape_equal(&a->shape, &b->shape));
        for (int64_t i = 0; i < cm_tensor_count(b); i++)
            if (isfinite(cm_tensor_real(b, i)))
                largest = fmax(largest, fabs(cm_tensor_real(b, i)));
        for (int64_t i = 0; i < cm_tensor_count(b); i++)
            if (!is_close(cm_tensor_real(a, i), cm_tensor_real(b, i), c->tolerance * largest))
                fail_msg("element %lld of result %zu is %.9g, expected %.9g, in %s", (long long)i,
                         o, cm_tensor_real(a, i), cm_tensor_real(b, i), c->graph);
    }
}

void check_kernels(struct cm_arena *arena, const struct kernel_case *c)
{
    const struct kernel_run *want = run_kernels(arena, c, "reference", 1);
    for (int machine = 0; machine < CM_MACHINES; machine++) {
        const struct kernel_run *before = NULL;
        cm_machine_limit((enum cm_machine)machine);
        for (int threads = 1; threads <= 3; threads++) {
            const struct kernel_run *got = run_kernels(arena, c, NULL, threads);
            const size_t all = strlen(got->kernels), last = strlen(c->kernels);
            CHECK_STRING(all > last ? got->kernels + all - last : got->kernels, c->kernels);
            check_close(c, got, want);
            for (size_t o = 0; before && !c->any_bits && o < got->n_out; o++)
                CHECK(exec_same(&got->out[o], &before->out[o]));
            before = got;
        }
    }
    cm_machine_limit(CM_MACHINES - 1);
}
