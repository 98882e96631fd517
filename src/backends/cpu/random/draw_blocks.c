/* Random numbers, rounded, scaled and shifted by blocks of the type they are stored in. */
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "graph/backend.h"
#include "tensor/half.h"
#include "tensor/line.h"

enum { BLOCK = 256 };

/* A distribution: what is drawn, times scale, plus shift. */
struct draws {
    double (*draw)(struct cm_random *random);
    double scale, shift;
};

/* A round trip through the type. */
static void round_block(enum cm_dtype type, int64_t count, float *block)
{
    uint16_t stored[BLOCK];
    cm_narrow_store(type, stored, 0, count, block);
    cm_narrow_load(type, stored, 0, count, block);
}

static void fill_narrow(const struct draws *draws, struct cm_random *random, enum cm_dtype type,
                        void *to, int64_t first, int64_t count)
{
    float constants[2] = {(float)draws->scale, (float)draws->shift};
    round_block(type, 2, constants);
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float block[BLOCK];
        for (int64_t i = 0; i < n; i++)
            block[i] = (float)draws->draw(random);
        round_block(type, n, block);
        for (int64_t i = 0; i < n; i++)
            block[i] *= constants[0];
        round_block(type, n, block);
        for (int64_t i = 0; i < n; i++)
            block[i] += constants[1];
        cm_narrow_store(type, to, first + at, n, block);
    }
}

static void fill(const struct draws *draws, struct cm_random *random, enum cm_dtype type, void *to,
                 int64_t first, int64_t count)
{
    if (type == CM_DOUBLE) {
        double *ys = (double *)to + first;
        for (int64_t i = 0; i < count; i++)
            ys[i] = draws->draw(random) * draws->scale + draws->shift;
    } else if (type == CM_FLOAT) {
        float *ys = (float *)to + first;
        const float scale = (float)draws->scale, shift = (float)draws->shift;
        for (int64_t i = 0; i < count; i++) {
            const float scaled = (float)draws->draw(random) * scale;
            ys[i] = scaled + shift;
        }
    } else {
        fill_narrow(draws, random, type, to, first, count);
    }
}

/* ---- RandomNormal, RandomUniform and their kin ---- */

static const bool normal = true, uniform = false;

static bool accepts(struct cm_call *call)
{
    return cm_tensor_count(call->out[0]) > 0 || cm_call_decline_empty(call, call->out[0]);
}

static enum cm_status run(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    struct cm_tensor *y = call->out[0];
    struct draws draws = {.draw = cm_random_normal};
    if (*(const bool *)call->arg) {
        draws.scale = (double)cm_node_float(node, "scale");
        draws.shift = (double)cm_node_float(node, "mean");
    } else {
        draws.draw = cm_random_uniform;
        draws.shift = (double)cm_node_float(node, "low");
        draws.scale = (double)cm_node_float(node, "high") - draws.shift;
    }
    fill(&draws, cm_call_random(call), y->type, y->data, 0, cm_tensor_count(y));
    return CM_OK;
}

#define DRAWS .label = "blocks of draws", .accepts = accepts, .run = run

CM_KERNEL(cpu, RandomNormal, DRAWS, .arg = &normal);
CM_KERNEL(cpu, RandomNormalLike, DRAWS, .arg = &normal);
CM_KERNEL(cpu, RandomUniform, DRAWS, .arg = &uniform);
CM_KERNEL(cpu, RandomUniformLike, DRAWS, .arg = &uniform);

/* ---- Bernoulli ---- */

static enum cm_status draw_outcomes(struct cm_call *call)
{
    static const struct draws draws = {cm_random_uniform, 1, 0};
    const struct cm_tensor *x = call->in[0], *y = call->out[0];
    const int64_t count = cm_tensor_count(x);
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        double stored[BLOCK], drawn[BLOCK], p[BLOCK];
        fill(&draws, cm_call_random(call), x->type, stored, 0, n);
        cm_line_load((struct cm_line){x->type, stored, 0}, 1, n, CM_DOUBLE, drawn);
        cm_line_load(cm_line_at(x, at), 1, n, CM_DOUBLE, p);
        for (int64_t i = 0; i < n; i++)
            p[i] = drawn[i] < p[i];
        if (cm_dtype_is_float(y->type))
            cm_line_save(cm_line_at(y, at), 1, n, CM_DOUBLE, p);
        else
            for (int64_t i = 0; i < n; i++)
                cm_tensor_set_real(y, at + i, p[i]);
    }
    return CM_OK;
}

CM_KERNEL(cpu, Bernoulli, .label = "blocks of draws", .accepts = accepts, .run = draw_outcomes);
