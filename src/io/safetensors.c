/* .safetensors: a length, a JSON object that says what each tensor is and where, the bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "io/array_formats.h"

#include "base/map.h"
#include "base/number.h"
#include "bytes/byte_buffer.h"
#include "bytes/json_read.h"

enum { HEADER_MAX = 100000000 }; /* as the format's own reader has it */

static const struct {
    const char *name;
    enum cm_dtype type;
} dtypes[] = {
    {"BOOL", CM_BOOL},
    {"U8", CM_UINT8},
    {"I8", CM_INT8},
    {"U16", CM_UINT16},
    {"I16", CM_INT16},
    {"U32", CM_UINT32},
    {"I32", CM_INT32},
    {"U64", CM_UINT64},
    {"I64", CM_INT64},
    {"F16", CM_FLOAT16},
    {"BF16", CM_BFLOAT16},
    {"F32", CM_FLOAT},
    {"F64", CM_DOUBLE},
    {"C64", CM_COMPLEX64},
    {"F8_E4M3", CM_FLOAT8E4M3FN},
    {"F8_E4M3FNUZ", CM_FLOAT8E4M3FNUZ},
    {"F8_E5M2", CM_FLOAT8E5M2},
    {"F8_E5M2FNUZ", CM_FLOAT8E5M2FNUZ},
    {"F8_E8M0", CM_FLOAT8E8M0},
    {"F6_E2M3", CM_FLOAT6E2M3},
    {"F6_E3M2", CM_FLOAT6E3M2},
    {"F4", CM_FLOAT4E2M1},
};

/* One entry of the header. */
struct entry {
    struct cm_str name;
    enum cm_dtype type;
    struct cm_shape shape;
    uint64_t begin, end;
};

struct entries {
    CM_ARRAY(struct entry);
};

static enum cm_status read_dtype(struct cm_json *json, enum cm_dtype *out)
{
    struct cm_str name;

    CM_TRY(cm_json_string(json, &name));
    for (size_t i = 0; i < CM_COUNT(dtypes); i++) {
        if (cm_str_is(name, dtypes[i].name)) {
            *out = dtypes[i].type;
            return CM_OK;
        }
    }
    return cm_fail(json->err, CM_UNSUPPORTED, "its type '%.*s' has no counterpart in ONNX",
                   CM_STR_FMT(name));
}

static enum cm_status read_shape(struct cm_json *json, struct cm_shape *out)
{
    bool more;

    out->rank = 0;
    CM_TRY(cm_json_open(json, '['));
    CM_TRY(cm_json_more(json, ']', true, &more));
    while (more) {
        uint64_t dim;

        CM_TRY(cm_json_count(json, &dim));
        if (dim > INT64_MAX || !cm_shape_insert(out, out->rank, (int64_t)dim))
            return cm_fail(json->err, CM_BAD_MODEL, "its shape is not valid");
        CM_TRY(cm_json_more(json, ']', false, &more));
    }
    return CM_OK;
}

static enum cm_status read_offsets(struct cm_json *json, struct entry *entry)
{
    bool more;

    CM_TRY(cm_json_open(json, '['));
    CM_TRY(cm_json_count(json, &entry->begin));
    CM_TRY(cm_json_more(json, ']', false, &more));
    if (!more)
        return cm_fail(json->err, CM_BAD_MODEL, "its data_offsets lack the end");
    CM_TRY(cm_json_count(json, &entry->end));
    CM_TRY(cm_json_more(json, ']', false, &more));
    return more ? cm_fail(json->err, CM_BAD_MODEL, "its data_offsets are more than two") : CM_OK;
}

static enum cm_status read_entry(struct cm_json *json, struct entry *entry)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    unsigned seen = 0;
    bool more;

    CM_TRY(cm_json_open(json, '{'));
    CM_TRY(cm_json_more(json, '}', true, &more));
    while (more) {
        struct cm_str key;
        size_t which = 0;

        CM_TRY(cm_json_key(json, &key));
        while (which < CM_COUNT(keys) && !cm_str_is(key, keys[which]))
            which++;
        if (which == CM_COUNT(keys) || seen & 1u << which)
            return cm_fail(json->err, CM_BAD_MODEL, "its entry '%.*s' is %s", CM_STR_FMT(key),
                           which == CM_COUNT(keys) ? "unknown" : "listed twice");
        seen |= 1u << which;
        CM_TRY(which == 0   ? read_dtype(json, &entry->type)
               : which == 1 ? read_shape(json, &entry->shape)
                            : read_offsets(json, entry));
        CM_TRY(cm_json_more(json, '}', false, &more));
    }
    return seen == 7 ? CM_OK
                     : cm_fail(json->err, CM_BAD_MODEL, "it lacks dtype, shape or data_offsets");
}

/* "__metadata__" maps strings to strings; nothing in it concerns us. */
static enum cm_status skip_metadata(struct cm_json *json)
{
    struct cm_str text;
    bool more;

    CM_TRY(cm_json_open(json, '{'));
    CM_TRY(cm_json_more(json, '}', true, &more));
    while (more) {
        CM_TRY(cm_json_key(json, &text));
        CM_TRY(cm_json_string(json, &text));
        CM_TRY(cm_json_more(json, '}', false, &more));
    }
    return CM_OK;
}

static enum cm_status read_entries(struct cm_json *json, struct entries *out)
{
    struct cm_map names = {0};
    bool more, added;

    CM_TRY(cm_json_open(json, '{'));
    CM_TRY(cm_json_more(json, '}', true, &more));
    while (more) {
        struct cm_str name;

        CM_TRY(cm_json_key(json, &name));
        cm_map_insert(&names, json->arena, name, &added);
        if (!added)
            return cm_fail(json->err, CM_BAD_MODEL, "it has two tensors '%.*s'", CM_STR_FMT(name));
        if (cm_str_is(name, "__metadata__")) {
            CM_TRY(cm_error_context(json->err, skip_metadata(json), "__metadata__"));
        } else {
            struct entry *entry = CM_PUSH(json->arena, out);
            *entry = (struct entry){.name = name};
            CM_TRY(cm_error_context(json->err, read_entry(json, entry), "tensor '%.*s'",
                                    CM_STR_FMT(name)));
        }
        CM_TRY(cm_json_more(json, '}', false, &more));
    }
    return cm_json_end(json);
}

static int by_begin(const void *a, const void *b)
{
    const struct entry *const *x = a, *const *y = b;

    if ((*x)->begin != (*y)->begin)
        return (*x)->begin < (*y)->begin ? -1 : 1;
    return (*x)->end < (*y)->end ? -1 : (*x)->end > (*y)->end;
}

/* The format wants every byte to belong to exactly one tensor. */
static enum cm_status check_cover(struct cm_arena *arena, const struct entries *entries,
                                  uint64_t size, struct cm_error *err)
{
    const struct entry **sorted = CM_NEW_ARRAY(arena, const struct entry *, entries->count);
    uint64_t at = 0;

    for (size_t i = 0; i < entries->count; i++)
        sorted[i] = &entries->items[i];
    if (entries->count)
        qsort(sorted, entries->count, sizeof *sorted, by_begin);
    for (size_t i = 0; i < entries->count; i++) {
        if (sorted[i]->begin != at || sorted[i]->end < at)
            return cm_fail(err, CM_BAD_MODEL,
                           "tensor '%.*s' begins at byte %llu, the one before it ends at %llu",
                           CM_STR_FMT(sorted[i]->name), (unsigned long long)sorted[i]->begin,
                           (unsigned long long)at);
        at = sorted[i]->end;
    }
    return at == size ? CM_OK
                      : cm_fail(err, CM_BAD_MODEL, "it has %llu bytes of values, its tensors %llu",
                                (unsigned long long)size, (unsigned long long)at);
}

static enum cm_status check_size(const struct entry *entry, struct cm_error *err)
{
    const uint64_t there = entry->end - entry->begin;
    int64_t count;
    size_t needed;

    if (!cm_shape_count(&entry->shape, &count) || !cm_dtype_bytes(entry->type, count, &needed))
        return cm_fail(err, CM_BAD_MODEL, "the size of its shape overflows");
    return needed == there ? CM_OK
                           : cm_fail(err, CM_BAD_MODEL, "it has %llu bytes, its shape needs %zu",
                                     (unsigned long long)there, needed);
}

enum cm_status cm_safetensors_walk(struct cm_arena *arena, struct cm_str bytes,
                                   cm_safetensors_visit_fn *visit, void *arg, struct cm_error *err)
{
    struct entries entries = {0};
    uint64_t size = 0;

    if (bytes.size < 8)
        return cm_fail(err, CM_BAD_MODEL, "it is too short for a .safetensors file");
    memcpy(&size, bytes.data, 8);
    if (size > HEADER_MAX || size > bytes.size - 8)
        return cm_fail(err, CM_BAD_MODEL, "its header of %llu bytes is larger than %s",
                       (unsigned long long)size, size > HEADER_MAX ? "the format allows" : "it is");
    /* A copy: strings are looked at twice, and a mapped file may be changed by others meanwhile. */
    const struct cm_str header = cm_arena_str(arena, (struct cm_str){bytes.data + 8, (size_t)size});
    struct cm_json json;
    cm_json_init(&json, arena, header, err);
    CM_TRY(read_entries(&json, &entries));
    CM_TRY(check_cover(arena, &entries, bytes.size - 8 - size, err));
    for (size_t i = 0; i < entries.count; i++) {
        const struct entry *entry = &entries.items[i];
        const struct cm_safetensors_entry found = {
            entries.count,
            entry->name,
            entry->type,
            entry->shape,
            {bytes.data + 8 + size + entry->begin, (size_t)(entry->end - entry->begin)}};
        enum cm_status status = check_size(entry, err);

        if (status == CM_OK)
            status = visit(arg, &found, err);
        CM_TRY(cm_error_context(err, status, "tensor '%.*s'", CM_STR_FMT(entry->name)));
    }
    return CM_OK;
}

/* What parsing into memory needs to know at each tensor. */
struct parse {
    struct cm_arena *arena;
    const struct cm_arrays_options *options;
    struct cm_arrays *out;
};

static enum cm_status load_entry(void *arg, const struct cm_safetensors_entry *entry,
                                 struct cm_error *err)
{
    const size_t width = cm_dtype_size(entry->type) ? cm_dtype_size(entry->type) : 1;
    const uint8_t *from = (const uint8_t *)entry->bytes.data;
    const size_t size = entry->bytes.size;
    const struct parse *parse = arg;
    struct cm_tensor tensor;

    if (!cm_arrays_wants(parse->arena, parse->options, entry->name, entry->count, parse->out))
        return CM_OK;
    for (size_t i = 0; entry->type == CM_BOOL && i < size; i++)
        if (from[i] > 1)
            return cm_fail(err, CM_BAD_MODEL, "element %zu is %d, which is not a boolean", i,
                           from[i]);
    if (size && (uintptr_t)from % cm_min_size(width, 16) == 0) {
        tensor = cm_tensor_borrow(entry->type, &entry->shape, (void *)(uintptr_t)from);
    } else {
        CM_TRY(cm_arrays_tensor(parse->arena, entry->type, &entry->shape, &tensor, err));
        if (size)
            memcpy(tensor.data, from, size);
    }
    cm_arrays_add(parse->arena, parse->out, entry->name, &tensor);
    return CM_OK;
}

enum cm_status cm_safetensors_parse(struct cm_arena *arena, struct cm_str bytes,
                                    const struct cm_arrays_options *options, struct cm_arrays *out,
                                    struct cm_error *err)
{
    struct parse parse = {arena, options, out};

    return cm_safetensors_walk(arena, bytes, load_entry, &parse, err);
}

/* ---- writing ---- */

static enum cm_status add_entry(struct cm_arena *scratch, struct cm_bytes *text,
                                const struct cm_safetensors_entry *entry, uint64_t *offset,
                                struct cm_error *err)
{
    size_t row = 0, size;

    while (row < CM_COUNT(dtypes) && dtypes[row].type != entry->type)
        row++;
    if (row == CM_COUNT(dtypes))
        return cm_fail(err, CM_UNSUPPORTED, "'%.*s' is of type %s, which .safetensors cannot hold",
                       CM_STR_FMT(entry->name), cm_dtype_name(entry->type));
    if (!cm_str_is_utf8(entry->name))
        return cm_fail(err, CM_UNSUPPORTED, "the name '%.*s' is not UTF-8",
                       CM_STR_FMT(entry->name));
    if (!cm_dtype_bytes(entry->type, cm_shape_elements(&entry->shape), &size))
        return cm_fail(err, CM_LIMIT, "'%.*s' is too large", CM_STR_FMT(entry->name));
    cm_bytes_text(text, text->count > 9 ? CM_STR(",") : CM_STR_NONE);
    cm_bytes_text(text, cm_json_quote(scratch, entry->name));
    cm_bytes_text(text,
                  cm_arena_printf(scratch, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[row].name));
    for (int i = 0; i < entry->shape.rank; i++)
        cm_bytes_text(text, cm_arena_printf(scratch, "%s%lld", i ? "," : "",
                                            (long long)entry->shape.dims[i]));
    cm_bytes_text(text, cm_arena_printf(scratch, "],\"data_offsets\":[%llu,%llu]}",
                                        (unsigned long long)*offset,
                                        (unsigned long long)(*offset + size)));
    *offset += size;
    return CM_OK;
}

enum cm_status cm_safetensors_header(struct cm_arena *arena,
                                     const struct cm_safetensors_entry *entries, size_t count,
                                     const char *format, struct cm_str *out, struct cm_error *err)
{
    struct cm_bytes text = {.arena = arena};
    uint64_t offset = 0, size = 0;

    cm_bytes_text(&text, (struct cm_str){(const char *)&size, sizeof size});
    cm_bytes_text(&text, CM_STR("{"));
    if (format)
        cm_bytes_text(&text,
                      cm_arena_printf(arena, "\"__metadata__\":{\"format\":\"%s\"}", format));
    for (size_t i = 0; i < count; i++)
        CM_TRY(add_entry(arena, &text, &entries[i], &offset, err));
    cm_bytes_text(&text, CM_STR("}"));
    while (text.count % 8) /* values begin aligned */
        cm_bytes_text(&text, CM_STR(" "));
    size = text.count - sizeof size;
    memcpy(text.items, &size, sizeof size);
    *out = cm_bytes_str(&text);
    return CM_OK;
}

enum cm_status cm_safetensors_write(struct cm_arena *scratch, struct cm_save *save,
                                    const struct cm_array *items, size_t count,
                                    struct cm_error *err)
{
    struct cm_safetensors_entry *entries =
        CM_NEW_ARRAY(scratch, struct cm_safetensors_entry, count + 1);
    struct cm_str header;

    for (size_t i = 0; i < count; i++)
        entries[i] = (struct cm_safetensors_entry){.name = items[i].name,
                                                   .type = items[i].value.tensor.type,
                                                   .shape = items[i].value.tensor.shape};
    CM_TRY(cm_safetensors_header(scratch, entries, count, NULL, &header, err));
    CM_TRY(cm_save_write(save, header.data, header.size, err));
    for (size_t i = 0; i < count; i++)
        CM_TRY(cm_save_write(save, items[i].value.tensor.data,
                             cm_tensor_bytes(&items[i].value.tensor), err));
    return CM_OK;
}
