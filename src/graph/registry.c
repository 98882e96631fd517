/* The registry: built-in tables plus the user's rows. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/registry.h"

#include "base/map.h"
#include "base/memory.h"
#include "graph/bodies.h"
#include "onnx/syntax.h"

#include <stdatomic.h>

/* The versions of one operator that a user registered, newest first. */
struct user_versions {
    const struct cm_schema *schema;
    struct user_versions *next;
};

struct cm_registry {
    struct cm_arena *arena;
    struct cm_map ops;     /* "domain\0name" to struct cm_op * */
    struct cm_map schemas; /* to struct user_versions *; built-in ones are looked up in schema/ */
    struct cm_map bodies;  /* to struct cm_function_proto * */
    bool frozen;
};

enum { KEY_MAX = 512 };

struct cm_str cm_domain_plain(struct cm_str domain)
{
    return cm_str_is(domain, "ai.onnx") ? CM_STR_NONE : domain;
}

struct cm_opset_proto *cm_opsets_find(const struct cm_opsets *imports, struct cm_str domain)
{
    domain = cm_domain_plain(domain);
    for (size_t i = 0; i < imports->count; i++)
        if (cm_str_equal(cm_domain_plain(imports->items[i].domain), domain))
            return &imports->items[i];
    return NULL;
}

int64_t cm_opsets_version(const struct cm_opsets *imports, struct cm_str domain)
{
    const struct cm_opset_proto *import = cm_opsets_find(imports, domain);
    return import ? import->version : 0;
}

/* Writes "domain\0name" into room; names too long for it are no operator's. */
static bool make_key(char room[KEY_MAX], struct cm_str domain, struct cm_str name,
                     struct cm_str *key)
{
    domain = cm_domain_plain(domain);
    if (domain.size + name.size + 1 > KEY_MAX)
        return false;
    if (domain.size)
        memcpy(room, domain.data, domain.size);
    room[domain.size] = 0;
    if (name.size)
        memcpy(room + domain.size + 1, name.data, name.size);
    *key = (struct cm_str){room, domain.size + 1 + name.size};
    return true;
}

static void *lookup(const struct cm_map *map, struct cm_str domain, struct cm_str name)
{
    char room[KEY_MAX];
    struct cm_str key;
    if (!make_key(room, domain, name, &key))
        return NULL;
    return (void *)(uintptr_t)cm_map_get(map, key, 0);
}

static bool put(struct cm_registry *registry, struct cm_map *map, struct cm_str domain,
                struct cm_str name, const void *what)
{
    char room[KEY_MAX];
    struct cm_str key;
    if (!make_key(room, domain, name, &key))
        return false;
    *cm_map_insert(map, registry->arena, cm_arena_str(registry->arena, key), NULL) =
        (uint64_t)(uintptr_t)what;
    return true;
}

static enum cm_status add_body(struct cm_registry *registry, struct cm_str text,
                               struct cm_function_proto *function, struct cm_error *err)
{
    CM_TRY(cm_syntax_parse_function(text, registry->arena, function, err));
    if (lookup(&registry->bodies, function->domain, function->name))
        return cm_fail(err, CM_BAD_ARGUMENT, "'%.*s' has a body already",
                       CM_STR_FMT(function->name));
    if (!put(registry, &registry->bodies, function->domain, function->name, function))
        return cm_fail(err, CM_LIMIT, "the name '%.*s' is too long", CM_STR_FMT(function->name));
    return CM_OK;
}

enum cm_status cm_registry_add_body(struct cm_registry *registry, struct cm_str text,
                                    struct cm_error *err)
{
    if (registry->frozen)
        return cm_fail(err, CM_BAD_ARGUMENT, "the registry is frozen");
    return add_body(registry, text, CM_NEW(registry->arena, struct cm_function_proto), err);
}

/* Our bodies use forms that mean the same from the opset they import up to the newest, so that what
 * we save needs no conversion; inside a module they are built at the newest, which is what kernels
 * know. */
static void use_newest(struct cm_function_proto *function)
{
    for (size_t i = 0; i < function->opset_import.count; i++) {
        struct cm_opset_proto *import = &function->opset_import.items[i];
        import->version = cm_schema_newest_opset(import->domain);
    }
}

struct cm_registry *cm_registry_new(struct cm_arena *arena)
{
    struct cm_registry *registry = CM_NEW(arena, struct cm_registry);
    registry->arena = arena;
    for (size_t i = 0; i < cm_op_count; i++)
        put(registry, &registry->ops, cm_str(cm_op_list[i]->domain), cm_str(cm_op_list[i]->name),
            cm_op_list[i]);
    for (size_t i = 0; i < cm_embedded_body_count; i++) {
        const struct cm_embedded_body *body = &cm_embedded_bodies[i];
        struct cm_function_proto *function = CM_NEW(arena, struct cm_function_proto);
        /* Our own texts: a unit test parses each, so a broken one never ships. */
        if (!add_body(registry, (struct cm_str){body->text, body->size}, function, NULL))
            use_newest(function);
    }
    return registry;
}

void cm_registry_freeze(struct cm_registry *registry)
{
    registry->frozen = true;
}

enum cm_status cm_registry_add(struct cm_registry *registry, const struct cm_schema *schema,
                               const struct cm_op *op, struct cm_error *err)
{
    if (registry->frozen)
        return cm_fail(err, CM_BAD_ARGUMENT, "the registry is frozen");
    const struct cm_str domain = cm_str(schema->domain), name = cm_str(schema->name);
    const struct cm_schema *known =
        cm_registry_schema(registry, domain, name, schema->since_version);
    if (known && known->since_version == schema->since_version)
        return cm_fail(err, CM_BAD_ARGUMENT, "%s version %d is registered already", schema->name,
                       schema->since_version);
    if (op && (!cm_str_is(name, op->name) || !cm_str_is(domain, op->domain)))
        return cm_fail(err, CM_BAD_ARGUMENT, "the operator is called '%s', its schema '%s'",
                       op->name, schema->name);
    struct user_versions *row = CM_NEW(registry->arena, struct user_versions);
    row->schema = schema;
    struct user_versions *head = lookup(&registry->schemas, domain, name);
    if (!head || head->schema->since_version < schema->since_version) {
        row->next = head;
        head = row;
    } else {
        struct user_versions *at = head;
        while (at->next && at->next->schema->since_version > schema->since_version)
            at = at->next;
        row->next = at->next;
        at->next = row;
    }
    if (!put(registry, &registry->schemas, domain, name, head))
        return cm_fail(err, CM_LIMIT, "the name '%s' is too long", schema->name);
    if (op)
        put(registry, &registry->ops, domain, name, op);
    return CM_OK;
}

const struct cm_schema *cm_registry_schema(const struct cm_registry *registry, struct cm_str domain,
                                           struct cm_str name, int64_t opset)
{
    const struct user_versions *row = lookup(&registry->schemas, domain, name);
    for (; row; row = row->next)
        if (opset == 0 || row->schema->since_version <= opset)
            return row->schema;
    return opset ? cm_schema_find(domain, name, opset) : cm_schema_newest(domain, name);
}

const struct cm_op *cm_registry_op(const struct cm_registry *registry, struct cm_str domain,
                                   struct cm_str name)
{
    return lookup(&registry->ops, domain, name);
}

const struct cm_function_proto *cm_registry_body(const struct cm_registry *registry,
                                                 struct cm_str domain, struct cm_str name)
{
    return lookup(&registry->bodies, domain, name);
}

/* The built-in registry is made once; a thread that loses the race frees its own. */
struct builtin {
    struct cm_arena arena;
    struct cm_registry *registry;
};

static enum cm_status make_builtin(struct cm_guard *guard, void *arg)
{
    struct builtin *builtin = arg;
    cm_arena_init(&builtin->arena, guard);
    builtin->registry = cm_registry_new(&builtin->arena);
    cm_registry_freeze(builtin->registry);
    return CM_OK;
}

const struct cm_registry *cm_registry_builtin(void)
{
    static struct builtin *_Atomic shared;
    struct builtin *builtin = atomic_load_explicit(&shared, memory_order_acquire);
    if (builtin)
        return builtin->registry;
    builtin = cm_calloc(1, sizeof *builtin);
    if (!builtin)
        return NULL;
    if (cm_guarded(0, NULL, make_builtin, builtin)) {
        cm_free(builtin);
        return NULL;
    }
    struct builtin *first = NULL;
    if (!atomic_compare_exchange_strong(&shared, &first, builtin)) {
        cm_arena_release(&builtin->arena);
        cm_free(builtin);
        builtin = first;
    }
    return builtin->registry;
}

static const struct cm_op *find_listed(struct cm_str domain, struct cm_str name)
{
    for (size_t i = 0; i < cm_op_count; i++)
        if (cm_str_is(name, cm_op_list[i]->name) && cm_str_is(domain, cm_op_list[i]->domain))
            return cm_op_list[i];
    return NULL;
}

const struct cm_op *cm_builtin_op(const struct cm_node_proto *node)
{
    static const struct cm_op nothing_known;
    const struct cm_registry *registry = cm_registry_builtin();
    /* Without the memory for a registry the answer is slow, but the same. */
    const struct cm_op *op = registry ? cm_registry_op(registry, node->domain, node->op_type)
                                      : find_listed(cm_domain_plain(node->domain), node->op_type);
    return op ? op : &nothing_known;
}
