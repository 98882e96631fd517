/* Forests of decision trees, compiled; those of a session are compiled once for all who use them.
 */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ml/forest_form.h"
#include "base/memory.h"

#include <pthread.h>

/* Forests of all prepared nodes of a session. */
struct cm_forests {
    pthread_mutex_t lock;
    struct cm_forest *in_use;
};

static void init_forests(void *state)
{
    struct cm_forests *forests = state;
    pthread_mutex_init(&forests->lock, NULL);
}

static void release_forests(void *state)
{
    struct cm_forests *forests = state;
    pthread_mutex_destroy(&forests->lock);
}

static const struct cm_session_state session_forests = {
    .size = sizeof(struct cm_forests), .init = init_forests, .release = release_forests};

/* The forest that was compiled for the same, with one more user; NULL if there is none. */
static struct cm_forest *find_shared(const struct cm_forest *like)
{
    pthread_mutex_lock(&like->home->lock);
    struct cm_forest *f = like->home->in_use;
    while (f && (f->node != like->node || f->features != like->features || f->type != like->type))
        f = f->next;
    if (f)
        f->users++;
    pthread_mutex_unlock(&like->home->lock);
    return f;
}

static void share(struct cm_forest *forest)
{
    pthread_mutex_lock(&forest->home->lock);
    forest->users = 1;
    forest->next = forest->home->in_use;
    forest->home->in_use = forest;
    pthread_mutex_unlock(&forest->home->lock);
}

static void drop_forest(void *what)
{
    struct cm_forest *forest = *(struct cm_forest **)what;
    if (!forest)
        return;
    struct cm_forests *forests = forest->home;
    struct cm_forest **at = &forests->in_use;
    pthread_mutex_lock(&forests->lock);
    const bool unused = --forest->users == 0;
    while (unused && *at != forest)
        at = &(*at)->next;
    if (unused)
        *at = forest->next;
    pthread_mutex_unlock(&forests->lock);
    if (unused)
        cm_forest_free(forest);
}

static enum cm_status make_forest(struct cm_call *call, cm_trees_read_fn *read, const void *arg,
                                  const struct cm_forest *like, struct cm_forest **out)
{
    struct cm_trees trees = {0};
    struct cm_forest *forest = cm_malloc(sizeof *forest);
    if (!forest)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for a forest");
    *forest = *like;
    enum cm_status status = read(call, arg, &trees);
    if (!status)
        status = cm_forest_compile(call, &trees, forest);
    cm_trees_release(&trees);
    if (status) {
        cm_forest_free(forest);
        return status;
    }
    share(forest);
    *out = forest;
    return CM_OK;
}

enum cm_status cm_forest_prepare(struct cm_call *call, cm_trees_read_fn *read, const void *arg,
                                 struct cm_forest **out)
{
    const struct cm_shape *x = &call->in[0]->shape;
    const struct cm_forest like = {.home = cm_call_session_state(call, &session_forests),
                                   .node = call->node,
                                   .features = x->rank ? x->dims[x->rank - 1] : 1,
                                   .type = call->in[0]->type};
    if (!like.home)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for the forests of the session");
    *out = NULL;
    cm_call_defer(call, drop_forest, out);
    *out = find_shared(&like);
    if (!*out)
        CM_TRY(make_forest(call, read, arg, &like, out));
    const size_t bytes = cm_forest_scratch(*out, x->rank > 1 ? x->dims[0] : 1);
    if (bytes == SIZE_MAX)
        return cm_call_fail(call, CM_LIMIT, "the scores of a row take too much memory");
    cm_call_scratch(call, bytes);
    return CM_OK;
}
