/* Steps as they run, told to the caller in public terms. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "exec/session.h"
#include "graph/eval.h"

/* Names of a node as public text: cut, and ending with NUL. */
struct names {
    char node[256], domain[128], op[128];
};

/* A group that one kernel computes is called by its operators: "Conv+Add+Relu". */
static void name_region(const struct cm_node *region, struct names *names, struct cameo_step *step)
{
    size_t used = 0;

    for (const struct cm_node *node = region->bodies[0].graph->first; node; node = node->next) {
        const size_t room = sizeof names->op - used;
        const int size =
            snprintf(names->op + used, room, "%s%.*s", used ? "+" : "", CM_STR_FMT(node->op_type));

        if (size < 0 || (size_t)size >= room) { /* the rest does not fit */
            memcpy(names->op + used, "", 1);
            break;
        }
        used += (size_t)size;
    }
    step->op = (struct cameo_text){names->op, used};
}

static void set_names(const struct cm_node *node, struct names *names, struct cameo_step *step)
{
    const struct {
        struct cm_str from;
        char *to;
        size_t room;
        struct cameo_text *text;
    } rows[] = {{node->name.size ? node->name : node->part_of, names->node, sizeof names->node,
                 &step->node},
                {node->domain, names->domain, sizeof names->domain, &step->domain},
                {node->op_type, names->op, sizeof names->op, &step->op}};

    for (size_t i = 0; i < CM_COUNT(rows); i++) {
        const size_t room = rows[i].room - 1;
        const size_t size = rows[i].from.size < room ? rows[i].from.size : room;

        if (size)
            memcpy(rows[i].to, rows[i].from.data, size);
        rows[i].to[size] = 0;
        *rows[i].text = (struct cameo_text){rows[i].to, size};
    }
    if (node->op && node->op->effects & CM_REGION)
        name_region(node, names, step);
}

static void hand_on(const struct cm_api_listener *to, const struct cameo_step *step)
{
    if (to->log)
        cm_api_log_step(to->log, step);
    if (to->step)
        to->step(to->arg, step);
}

void cm_api_tell_step(void *listener, const struct cm_step_report *report)
{
    const struct cm_api_listener *to = listener;
    struct names names;
    struct cameo_step step = {.kernel = report->kernel,
                              .declined = report->declined ? report->declined : "",
                              .depth = report->depth,
                              .begin_ns = report->begin_ns,
                              .end_ns = report->end_ns,
                              .live_bytes = report->live_bytes,
                              .flops = report->flops,
                              .id = (uintptr_t)report->node};

    set_names(report->node, &names, &step);
    if (cm_str_is(cm_str(step.domain.data), CM_API_COMPILED_DOMAIN))
        step.kernel = "compiled";
    hand_on(to, &step);
}

void cm_api_tell_node(void *listener, const struct cm_eval_report *report)
{
    const struct cm_api_listener *to = listener;
    struct names names;
    struct cameo_step step = {.kernel = report->by_body ? "function" : "reference",
                              .declined = "",
                              .depth = report->depth,
                              .begin_ns = report->begin_ns,
                              .end_ns = report->end_ns,
                              .live_bytes = report->live_bytes,
                              .id = (uintptr_t)report->node};

    set_names(report->node, &names, &step);
    hand_on(to, &step);
}
