/* What follows a product element by element, as a function that its kernel in C calls for each part
 * of the result that it has finished, while that is near in the cache:
 *
 *     f(y, other, rows, step, columns)
 *
 * changes `columns` elements of `rows` rows of y in place; `step` is from a row to the next.
 * `other` is the address of the elements of another tensor of that shape that lie where y's do.
 * Functions that do the same are one.
 *
 * Followers are taken as long as nobody else reads what they read: x * sigmoid(x) is two, of which
 * both read the product. Where a region ends in a chain of them, those behind the region too. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "mlir/lowering/lowering_state.h"

enum { FOLLOWERS = 8 };

struct cm_mlir_finish {
    struct cm_str text; /* its parameters and body */
    struct cm_str symbol;
};

struct chain_value {
    cm_value value;
    int maker; /* which follower; -1: the product */
};

struct finish_chain {
    struct cm_mlir_lowering *l;
    struct cm_node *stop; /* what lies before it is there when the product is computed */
    struct chain_value values[2 * FOLLOWERS + 1]; /* a region gives one another name */
    int n_values;
    int open; /* the first of the values that may be read yet */
    const struct cm_node *followers[FOLLOWERS];
    int count;
    cm_value other;
};

static bool is_same_type(struct cm_mlir_lowering *l, cm_value a, cm_value b)
{
    const struct cm_type *x = cm_mlir_type(l, a), *y = cm_mlir_type(l, b);

    if (!x || !y || x->kind != CM_KIND_TENSOR || y->kind != CM_KIND_TENSOR ||
        x->dtype != y->dtype || x->rank != y->rank)
        return false;
    for (int i = 0; i < x->rank; i++)
        if (!cm_dim_same(x->dims[i], y->dims[i]))
            return false;
    return true;
}

/* Has a tensor of the same graph been computed before the chain's product? */
static bool is_there(const struct finish_chain *chain, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(chain->l->module, value);

    if (def->graph != chain->stop->graph)
        return false;
    if (!def->node)
        return true;
    for (const struct cm_node *node = chain->stop->prev; node; node = node->prev)
        if (node == def->node)
            return true;
    return false;
}

static void push_value(struct finish_chain *chain, cm_value value, int maker)
{
    chain->values[chain->n_values++] = (struct chain_value){value, maker};
}

static const struct chain_value *find_value(const struct finish_chain *chain, cm_value value)
{
    for (int i = 0; i < chain->n_values; i++)
        if (chain->values[i].value == value)
            return &chain->values[i];
    return NULL;
}

static bool is_taken(const struct finish_chain *chain, const struct cm_node *node)
{
    for (int f = 0; f < chain->count; f++)
        if (chain->followers[f] == node)
            return true;
    return false;
}

/* Where a region gives the chain's last value to the graph around it, it goes on there. */
static bool leave_region(struct finish_chain *chain)
{
    const struct chain_value last = chain->values[chain->n_values - 1];
    const struct cm_value_def *def = cm_value_get(chain->l->module, last.value);
    struct cm_node *owner = chain->stop->graph->owner;

    if (chain->n_values == CM_COUNT(chain->values) || def->n_uses != 1 || def->uses->node ||
        def->uses->graph != chain->stop->graph || !owner || !cm_mlir_is_region(owner) ||
        owner->n_outputs != 1 || !is_same_type(chain->l, last.value, owner->outputs[0]))
        return false;
    chain->stop = owner;
    chain->open = chain->n_values;
    push_value(chain, owner->outputs[0], last.maker);
    return true;
}

/* Can a node be computed from the chain's values, single numbers and one other tensor? */
static bool may_follow(const struct finish_chain *chain, const struct cm_node *node,
                       cm_value *other)
{
    struct cm_mlir_lowering *l = chain->l;
    const cm_value first = chain->values[0].value;

    *other = chain->other;
    if (node->n_outputs != 1 || cm_mlir_contents(l, node->outputs[0]) ||
        !cm_mlir_is_elementwise(l, node) || !is_same_type(l, first, node->outputs[0]))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = cm_node_input(node, i);
        if (!value || find_value(chain, value) || value == *other || cm_mlir_is_single(l, value))
            continue;
        if (*other || !is_same_type(l, first, value) || !is_there(chain, value))
            return false;
        *other = value;
    }
    return true;
}

static bool take_reader(struct finish_chain *chain)
{
    if (chain->count == FOLLOWERS || chain->n_values == CM_COUNT(chain->values))
        return false;
    for (int i = chain->open; i < chain->n_values; i++) {
        const struct cm_use *use = cm_value_get(chain->l->module, chain->values[i].value)->uses;
        for (; use; use = use->next) {
            cm_value other;
            if (!use->node || use->graph != chain->stop->graph || is_taken(chain, use->node) ||
                !may_follow(chain, use->node, &other))
                continue;
            chain->other = other;
            push_value(chain, use->node->outputs[0], chain->count);
            chain->followers[chain->count++] = use->node;
            return true;
        }
    }
    return false;
}

/* Is the chain's last value the only one that others read? */
static bool is_closed(const struct finish_chain *chain)
{
    for (int i = chain->open; i < chain->n_values - 1; i++) {
        const struct cm_use *use = cm_value_get(chain->l->module, chain->values[i].value)->uses;
        for (; use; use = use->next)
            if (!use->node || !is_taken(chain, use->node))
                return false;
    }
    return true;
}

/* As few readers as it takes for one value to be left; none where that cannot be. */
static bool take_readers(struct finish_chain *chain)
{
    struct finish_chain longer = *chain;

    do {
        if (!take_reader(&longer))
            return false;
    } while (!is_closed(&longer));
    longer.open = longer.n_values - 1;
    *chain = longer;
    return true;
}

/* ---- the function ---- */

/* to = element %at of the memory at an address. */
static void put_load(struct cm_mlir_lowering *l, const char *address, const char *type)
{
    cm_mlir_line(l,
                 "%%%s_now = llvm.getelementptr %%%s_memory[%%number] : (!llvm.ptr, i64) -> "
                 "!llvm.ptr, %s",
                 address, address, type);
    cm_mlir_line(l, "%%%s_element = llvm.load %%%s_now : !llvm.ptr -> %s", address, address, type);
}

static enum cm_status put_followers(struct finish_chain *chain, struct cm_str *last,
                                    struct cm_error *err)
{
    struct cm_mlir_lowering *l = chain->l;
    struct cm_str results[FOLLOWERS];

    for (int f = 0; f < chain->count; f++) {
        const struct cm_node *node = chain->followers[f];
        struct cm_str *scalars = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)node->n_inputs + 1);
        for (int i = 0; i < node->n_inputs; i++) {
            const cm_value value = cm_node_input(node, i);
            const struct chain_value *found = value ? find_value(chain, value) : NULL;
            if (found)
                scalars[i] = found->maker < 0 ? CM_STR("%y_element") : results[found->maker];
            else if (value && value == chain->other)
                scalars[i] = CM_STR("%other_element");
        }
        CM_TRY(cm_mlir_elements(l, node, scalars, &results[f], err));
    }
    *last = results[chain->count - 1];
    return CM_OK;
}

static enum cm_status put_function(struct finish_chain *chain, struct cm_error *err)
{
    struct cm_mlir_lowering *l = chain->l;
    const char *type = cm_mlir_scalar(cm_mlir_type(l, chain->values[0].value)->dtype);
    struct cm_str last;

    cm_mlir_line(l, "%%zero = arith.constant 0 : index");
    cm_mlir_line(l, "%%one = arith.constant 1 : index");
    for (int i = 0; i < (chain->other ? 2 : 1); i++) {
        const char *address = i ? "other" : "y";
        cm_mlir_line(l, "%%%s_number = arith.index_cast %%%s : index to i64", address, address);
        cm_mlir_line(l, "%%%s_memory = llvm.inttoptr %%%s_number : i64 to !llvm.ptr", address,
                     address);
    }
    cm_mlir_line(l, "scf.for %%row = %%zero to %%rows step %%one {");
    cm_mlir_line(l, "%%begin = arith.muli %%row, %%step : index");
    cm_mlir_line(l, "scf.for %%column = %%zero to %%columns step %%one {");
    cm_mlir_line(l, "%%at = arith.addi %%begin, %%column : index");
    cm_mlir_line(l, "%%number = arith.index_cast %%at : index to i64");
    put_load(l, "y", type);
    if (chain->other)
        put_load(l, "other", type);
    CM_TRY(put_followers(chain, &last, err));
    cm_mlir_line(l, "llvm.store %.*s, %%y_now : %s, !llvm.ptr", CM_STR_FMT(last), type);
    cm_mlir_line(l, "}");
    cm_mlir_line(l, "}");
    cm_mlir_line(l, "return");
    return CM_OK;
}

/* The symbol of the function with this text, which is put into the program if it is a new one. */
static struct cm_str symbol_of(struct cm_mlir_lowering *l, struct cm_str text)
{
    for (size_t i = 0; i < l->finishes.count; i++)
        if (cm_str_equal(l->finishes.items[i].text, text))
            return l->finishes.items[i].symbol;
    const struct cm_str symbol = cm_arena_printf(l->arena, "@cm_finish_%zu", l->finishes.count);
    *CM_PUSH(l->arena, &l->finishes) = (struct cm_mlir_finish){text, symbol};
    cm_mlir_put(l, &l->head,
                cm_arena_printf(l->arena,
                                "  func.func private %.*s(%%y: index, %%other: index, %%rows: "
                                "index, %%step: index, %%columns: index) {\n",
                                CM_STR_FMT(symbol)));
    cm_mlir_put(l, &l->head, text);
    cm_mlir_put(l, &l->head, CM_STR("  }\n"));
    return symbol;
}

/* Names in a function are its own, so that equal functions have equal texts. */
static bool write_function(struct finish_chain *chain, struct cm_str *text)
{
    struct cm_mlir_lowering *l = chain->l;
    const struct cm_mlir_text around = l->body;
    const size_t n_uses = l->n_uses;
    const int indent = l->indent;
    struct cm_error err = {0};

    l->body = (struct cm_mlir_text){0};
    l->n_uses = 0;
    l->indent = 2;
    const enum cm_status status = put_function(chain, &err);
    *text = (struct cm_str){l->body.items, l->body.count};
    l->body = around;
    l->n_uses = n_uses;
    l->indent = indent;
    return status == CM_OK;
}

struct cm_term cm_mlir_finish(struct cm_mlir_lowering *l, cm_value value)
{
    struct cm_node *product = cm_value_get(l->module, value)->node;
    struct finish_chain chain = {.l = l, .stop = product};
    struct cm_str text;

    if (!product)
        return CM_TERM_ABSENT;
    push_value(&chain, value, -1);
    while (take_readers(&chain) || leave_region(&chain))
        ;
    if (!chain.count || !write_function(&chain, &text))
        return CM_TERM_ABSENT; /* why a follower cannot be lowered is told where its turn comes */
    for (int f = 0; f < chain.count; f++) {
        const cm_value result = chain.followers[f]->outputs[0];
        l->names[result] = cm_mlir_name(l, value);
        l->is_finished[result] = true;
    }
    struct cm_term *items = CM_NEW_ARRAY(l->arena, struct cm_term, 2);
    items[0] = cm_term_text(symbol_of(l, text));
    items[1] = chain.other ? (struct cm_term){.kind = CM_TERM_VALUE,
                                              .i = chain.other,
                                              .text = cm_mlir_name(l, chain.other)}
                           : CM_TERM_ABSENT;
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = 2};
}
