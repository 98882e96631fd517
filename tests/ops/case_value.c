/* Values of operator cases: numbers, strings, sequences, optionals, maps, and generated contents.
 */
// SPDX-License-Identifier: Apache-2.0
#include "case_value.h"
#include "base/array.h"

#include "base/memory.h"
#include "base/random.h"
#include "tensor/half.h"

#include <math.h>

/* What is left of a value's text. */
struct text {
    struct cm_str rest;
    struct cm_arena *arena;
    struct cm_error *err;
    int depth;
};

enum { DEPTH_MAX = 8, COUNT_MAX = 1 << 24 };

static const struct {
    const char *name;
    enum cm_dtype type;
} short_names[] = {
    {"f16", CM_FLOAT16},
    {"bf16", CM_BFLOAT16},
    {"f32", CM_FLOAT},
    {"f64", CM_DOUBLE},
    {"i2", CM_INT2},
    {"i4", CM_INT4},
    {"i8", CM_INT8},
    {"i16", CM_INT16},
    {"i32", CM_INT32},
    {"i64", CM_INT64},
    {"u2", CM_UINT2},
    {"u4", CM_UINT4},
    {"u8", CM_UINT8},
    {"u16", CM_UINT16},
    {"u32", CM_UINT32},
    {"u64", CM_UINT64},
    {"str", CM_STRING},
    {"c64", CM_COMPLEX64},
    {"c128", CM_COMPLEX128},
    {"f4e2m1", CM_FLOAT4E2M1},
    {"f6e2m3", CM_FLOAT6E2M3},
    {"f6e3m2", CM_FLOAT6E3M2},
    {"f8e5m2", CM_FLOAT8E5M2},
    {"f8e5m2fnuz", CM_FLOAT8E5M2FNUZ},
    {"f8e4m3fn", CM_FLOAT8E4M3FN},
    {"f8e8m0", CM_FLOAT8E8M0},
    {"f8e4m3fnuz", CM_FLOAT8E4M3FNUZ},
};

bool case_dtype(struct cm_str name, enum cm_dtype *out)
{
    for (size_t i = 0; i < CM_COUNT(short_names); i++) {
        if (cm_str_is(name, short_names[i].name)) {
            *out = short_names[i].type;
            return true;
        }
    }
    return cm_dtype_parse(name, out) && *out != CM_UNDEFINED;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct cm_str case_trim(struct cm_str text)
{
    while (text.size && is_space(text.data[0]))
        text = (struct cm_str){text.data + 1, text.size - 1};
    while (text.size && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

static void skip(struct text *in, size_t count)
{
    in->rest = (struct cm_str){in->rest.data + count, in->rest.size - count};
}

static void skip_spaces(struct text *in)
{
    while (in->rest.size && is_space(in->rest.data[0]))
        skip(in, 1);
}

static bool accept(struct text *in, const char *what)
{
    skip_spaces(in);
    if (!cm_str_starts(in->rest, what))
        return false;
    skip(in, strlen(what));
    return true;
}

static enum cm_status expect(struct text *in, const char *what)
{
    if (accept(in, what))
        return CM_OK;
    return cm_fail(in->err, CM_BAD_ARGUMENT, "expected '%s' at '%.*s'", what, CM_STR_FMT(in->rest));
}

/* Letters, digits and underscores. */
static struct cm_str take_word(struct text *in)
{
    skip_spaces(in);
    size_t n = 0;
    while (n < in->rest.size &&
           (in->rest.data[n] == '_' || (in->rest.data[n] >= '0' && in->rest.data[n] <= '9') ||
            ((in->rest.data[n] | 32) >= 'a' && (in->rest.data[n] | 32) <= 'z')))
        n++;
    const struct cm_str word = {in->rest.data, n};
    skip(in, n);
    return word;
}

/* One element: up to a space, a comma, or what ends the value; "(1,2)" is one. */
static struct cm_str take_element(struct text *in)
{
    while (in->rest.size && (is_space(in->rest.data[0]) || in->rest.data[0] == ','))
        skip(in, 1);
    size_t n = 0;
    if (in->rest.size && in->rest.data[0] == '(') {
        while (n < in->rest.size && in->rest.data[n] != ')')
            n++;
        n += n < in->rest.size;
    } else {
        while (n < in->rest.size && !is_space(in->rest.data[n]) && !strchr(",;)", in->rest.data[n]))
            n++;
    }
    const struct cm_str element = {in->rest.data, n};
    skip(in, n);
    return element;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c | 32) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* "..." with \n, \t, \\, \" and \xNN. */
static enum cm_status take_string(struct text *in, struct cm_str *out)
{
    CM_TRY(expect(in, "\""));
    char *room = cm_arena_alloc(in->arena, in->rest.size + 1);
    size_t n = 0;
    while (in->rest.size && in->rest.data[0] != '"') {
        char c = in->rest.data[0];
        size_t used = 1;
        if (c == '\\' && in->rest.size > 1) {
            used = 2;
            c = in->rest.data[1];
            const char *names = "nt", *means = "\n\t", *found = strchr(names, c);
            if (c == 'x' && in->rest.size > 3) {
                const int high = hex_digit(in->rest.data[2]), low = hex_digit(in->rest.data[3]);
                if (high < 0 || low < 0)
                    return cm_fail(in->err, CM_BAD_ARGUMENT, "\\x needs two hexadecimal digits");
                c = (char)(high * 16 + low);
                used = 4;
            } else if (found && c) {
                c = means[found - names];
            }
        }
        room[n++] = c;
        skip(in, used);
    }
    *out = (struct cm_str){room, n};
    return expect(in, "\"");
}

static bool parse_real(struct cm_str text, double *out)
{
    if (cm_str_is(text, "nan")) {
        *out = NAN;
    } else if (cm_str_is(text, "inf") || cm_str_is(text, "-inf")) {
        *out = text.data[0] == '-' ? -INFINITY : INFINITY;
    } else {
        return cm_str_to_double(text, out);
    }
    return true;
}

static bool parse_integer(struct cm_str text, enum cm_dtype type, int64_t *out)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    if (cm_str_is(text, "true") || cm_str_is(text, "false")) {
        *out = text.data[0] == 't';
        return type == CM_BOOL;
    }
    if (type == CM_UINT64 && text.size && text.data[0] != '-' && text.size < 24) {
        char copy[24] = {0}, *end;
        memcpy(copy, text.data, text.size);
        *out = (int64_t)strtoull(copy, &end, 10);
        return end == copy + text.size;
    }
    if (!cm_str_to_int64(text, out))
        return false;
    const int bits = type == CM_BOOL ? 1 : info->bits;
    const bool is_signed = info->kind == CM_CLASS_SIGNED;
    if (bits == 64)
        return true;
    const int64_t limit = INT64_C(1) << (is_signed ? bits - 1 : bits);
    return *out < limit && *out >= (is_signed ? -limit : 0);
}

/* The low bytes of a little-endian number are the narrower number. */
static void store_integer(struct cm_tensor *to, int64_t i, int64_t value)
{
    const size_t size = cm_dtype_size(to->type);
    if (size) {
        memcpy((char *)to->data + (size_t)i * size, &value, size);
    } else {
        const float number = (float)value;
        cm_narrow_store(to->type, to->data, i, 1, &number);
    }
}

static void store_real(struct cm_tensor *to, int64_t i, double value)
{
    const float number = (float)value;
    if (to->type == CM_DOUBLE)
        ((double *)to->data)[i] = value;
    else if (to->type == CM_FLOAT)
        ((float *)to->data)[i] = number;
    else
        cm_narrow_store(to->type, to->data, i, 1, &number);
}

static enum cm_status bad_element(struct text *in, struct cm_str element,
                                  const struct cm_tensor *to, int64_t i)
{
    if (element.size == 0)
        return cm_fail(in->err, CM_BAD_ARGUMENT, "%lld of %lld elements are given", (long long)i,
                       (long long)cm_tensor_count(to));
    return cm_fail(in->err, CM_BAD_ARGUMENT, "'%.*s' is no %s", CM_STR_FMT(element),
                   cm_dtype_name(to->type));
}

static bool store_complex(struct cm_str element, struct cm_tensor *to, int64_t i)
{
    const char *comma = element.size ? memchr(element.data, ',', element.size) : NULL;
    double parts[2];
    if (!comma || element.size < 5)
        return false;
    const size_t first = (size_t)(comma - element.data);
    if (!parse_real(case_trim((struct cm_str){element.data + 1, first - 1}), &parts[0]) ||
        !parse_real(case_trim((struct cm_str){comma + 1, element.size - first - 2}), &parts[1]))
        return false;
    for (int part = 0; part < 2; part++) {
        if (to->type == CM_COMPLEX64)
            ((float *)to->data)[2 * i + part] = (float)parts[part];
        else
            ((double *)to->data)[2 * i + part] = parts[part];
    }
    return true;
}

static enum cm_status read_element(struct text *in, struct cm_tensor *to, int64_t i)
{
    const enum cm_dtype_class kind = cm_dtype_info(to->type)->kind;
    double real;
    int64_t integer;

    if (to->type == CM_STRING)
        return take_string(in, &((struct cm_str *)to->data)[i]);
    const struct cm_str element = take_element(in);
    if (kind == CM_CLASS_COMPLEX) {
        if (!store_complex(element, to, i))
            return bad_element(in, element, to, i);
    } else if (kind == CM_CLASS_FLOAT) {
        if (!parse_real(element, &real))
            return bad_element(in, element, to, i);
        store_real(to, i, real);
    } else {
        if (!parse_integer(element, to->type, &integer))
            return bad_element(in, element, to, i);
        store_integer(to, i, integer);
    }
    return CM_OK;
}

/* Contents by rule, for tensors nobody wants to write out. */
enum generator { GENERATE_RANGE, GENERATE_RANDOM, GENERATE_FILL, GENERATE_COUNT };

static const struct {
    const char *name;
    size_t min_args, max_args;
} generators[] = {
    [GENERATE_RANGE] = {"range", 2, 2},
    [GENERATE_RANDOM] = {"random", 1, 3},
    [GENERATE_FILL] = {"fill", 1, 1},
    [GENERATE_COUNT] = {"count", 2, 2},
};

static void generate(enum generator which, const double *args, size_t n_args, struct cm_tensor *to)
{
    const int64_t count = cm_tensor_count(to);
    const enum cm_dtype_class kind = cm_dtype_info(to->type)->kind;
    const double low = n_args > 1 ? args[1] : -1, high = n_args > 2 ? args[2] : 1;
    struct cm_random random;

    cm_random_seed_philox(&random, which == GENERATE_RANDOM ? (uint64_t)args[0] : 0, 0);
    for (int64_t i = 0; i < count; i++) {
        double value = args[0];
        if (which == GENERATE_RANGE && count > 1)
            value += (args[1] - args[0]) * (double)i / (double)(count - 1);
        else if (which == GENERATE_COUNT)
            value += args[1] * (double)i;
        else if (which == GENERATE_RANDOM)
            value = low + (high - low) * cm_random_uniform(&random);
        if (kind == CM_CLASS_FLOAT)
            store_real(to, i, value);
        else
            store_integer(to, i, to->type == CM_BOOL ? value > 0 : (int64_t)floor(value));
    }
}

static enum cm_status read_generated(struct text *in, enum generator which, struct cm_tensor *to)
{
    double args[3] = {0};
    size_t n = 0;

    if (to->type == CM_STRING || cm_dtype_info(to->type)->kind == CM_CLASS_COMPLEX)
        return cm_fail(in->err, CM_BAD_ARGUMENT, "%s cannot be generated", cm_dtype_name(to->type));
    CM_TRY(expect(in, "("));
    while (n < CM_COUNT(args) && !accept(in, ")")) {
        const struct cm_str element = take_element(in);
        if (!parse_real(element, &args[n++]) || !(fabs(args[n - 1]) < 1e15))
            return cm_fail(in->err, CM_BAD_ARGUMENT, "'%.*s' is no number", CM_STR_FMT(element));
        if (n == CM_COUNT(args))
            CM_TRY(expect(in, ")"));
    }
    if (n < generators[which].min_args || n > generators[which].max_args ||
        (which == GENERATE_RANDOM && (n == 2 || args[0] < 0)))
        return cm_fail(in->err, CM_BAD_ARGUMENT, "%s has the wrong arguments",
                       generators[which].name);
    generate(which, args, n, to);
    return CM_OK;
}

static enum cm_status read_shape(struct text *in, struct cm_shape *out, bool *given)
{
    *out = CM_SCALAR;
    *given = accept(in, "[");
    if (!*given || accept(in, "]"))
        return CM_OK;
    do {
        const struct cm_str word = take_word(in);
        int64_t dim;
        if (!cm_str_to_int64(word, &dim) || out->rank == CM_MAX_RANK)
            return cm_fail(in->err, CM_BAD_ARGUMENT, "'%.*s' is no dimension", CM_STR_FMT(word));
        out->dims[out->rank++] = dim;
    } while (accept(in, ","));
    int64_t count;
    if (!cm_shape_count(out, &count) || count > COUNT_MAX)
        return cm_fail(in->err, CM_BAD_ARGUMENT, "more than %d elements", COUNT_MAX);
    return expect(in, "]");
}

static enum cm_status read_contents(struct text *in, struct cm_tensor *to)
{
    for (size_t g = 0; g < CM_COUNT(generators); g++)
        if (accept(in, generators[g].name))
            return read_generated(in, (enum generator)g, to);
    const int64_t count = cm_tensor_count(to);
    for (int64_t i = 0; i < count; i++)
        CM_TRY(read_element(in, to, i));
    return CM_OK;
}

static void drop_datum(void *what)
{
    cm_datum_drop(what);
}

/* "f32[2] = 1 2" or, where no value is needed, "f32". */
static enum cm_status read_tensor(struct text *in, struct cm_str word, struct case_value *out)
{
    enum cm_dtype type;
    struct cm_shape shape;
    bool given;

    if (!case_dtype(word, &type))
        return cm_fail(in->err, CM_BAD_ARGUMENT, "'%.*s' is no element type", CM_STR_FMT(word));
    CM_TRY(read_shape(in, &shape, &given));
    if (!accept(in, "=")) {
        out->demand = DEMAND_TYPE;
        out->type = cm_type_tensor(in->arena, type, CM_RANK_UNKNOWN, NULL);
        return CM_OK;
    }
    out->demand = accept(in, "?") ? DEMAND_TYPE : DEMAND_ALL;
    CM_TRY(cm_tensor_new(type, &shape, &out->datum.tensor, in->err));
    out->datum.kind = CM_KIND_TENSOR;
    out->type = cm_type_of_tensor(in->arena, &out->datum.tensor);
    if (out->demand == DEMAND_TYPE)
        return CM_OK;
    return read_contents(in, &out->datum.tensor);
}

static enum cm_status read_value(struct text *in, struct case_value *out);

/* Items move to memory of the sequence's own; they are dropped with it. */
static enum cm_status add_item(struct text *in, struct case_value *to, struct case_value *item)
{
    struct cm_datum *grown =
        cm_realloc(to->datum.items, (to->datum.n_items + 1) * sizeof *to->datum.items);
    if (!grown)
        return cm_fail(in->err, CM_NO_MEMORY, "no memory for an item");
    to->datum.items = grown;
    grown[to->datum.n_items++] = item->datum;
    item->datum = (struct cm_datum){0};
    return CM_OK;
}

static enum cm_status new_value(struct text *in, struct case_value **out)
{
    *out = CM_NEW(in->arena, struct case_value);
    cm_arena_defer(in->arena, drop_datum, &(*out)->datum);
    return read_value(in, *out);
}

/* After "seq(": values between semicolons, or only a type when there is none. */
static enum cm_status read_sequence(struct text *in, struct case_value *out)
{
    const struct cm_type *elem = NULL;
    out->datum.kind = CM_KIND_SEQUENCE;
    do {
        struct case_value *item;
        CM_TRY(new_value(in, &item));
        elem = elem ? cm_type_join(in->arena, elem, item->type) : item->type;
        if (!elem)
            return cm_fail(in->err, CM_BAD_ARGUMENT, "items of a sequence differ in type");
        if (item->demand == DEMAND_ALL)
            CM_TRY(add_item(in, out, item));
    } while (accept(in, ";"));
    out->type = cm_type_wrap(in->arena, CM_KIND_SEQUENCE, elem);
    return expect(in, ")");
}

static enum cm_status read_optional(struct text *in, struct case_value *out)
{
    struct case_value *item;
    CM_TRY(new_value(in, &item));
    if (item->demand == DEMAND_ALL) {
        out->datum = item->datum;
        item->datum = (struct cm_datum){0};
    }
    out->type = cm_type_wrap(in->arena, CM_KIND_OPTIONAL, item->type);
    return expect(in, ")");
}

/* After "map(": the type of keys, then "; key: value" for each, or "; : type" when there is none.
 */
static enum cm_status read_map(struct text *in, struct case_value *out)
{
    const struct cm_str word = take_word(in);
    const struct cm_type *elem = NULL;
    enum cm_dtype key_type;
    struct {
        CM_ARRAY(struct cm_str);
    } keys = {0};

    if (!case_dtype(word, &key_type))
        return cm_fail(in->err, CM_BAD_ARGUMENT, "'%.*s' is no type of keys", CM_STR_FMT(word));
    out->datum.kind = CM_KIND_MAP;
    while (accept(in, ";")) {
        struct case_value *item;
        skip_spaces(in);
        const struct cm_str start = in->rest;
        while (in->rest.size && in->rest.data[0] != ':')
            skip(in, 1);
        const struct cm_str key =
            case_trim((struct cm_str){start.data, (size_t)(in->rest.data - start.data)});
        CM_TRY(expect(in, ":"));
        CM_TRY(new_value(in, &item));
        elem = elem ? cm_type_join(in->arena, elem, item->type) : item->type;
        if (key.size) {
            *CM_PUSH(in->arena, &keys) = key;
            CM_TRY(add_item(in, out, item));
        }
    }
    CM_TRY(expect(in, ")"));
    if (!elem)
        return cm_fail(in->err, CM_BAD_ARGUMENT, "a map needs a type of values");
    CM_TRY(cm_tensor_new(key_type, &CM_SHAPE((int64_t)keys.count), &out->datum.tensor, in->err));
    for (size_t i = 0; i < keys.count; i++) {
        struct text one = {.rest = keys.items[i], .arena = in->arena, .err = in->err};
        CM_TRY(read_element(&one, &out->datum.tensor, (int64_t)i));
    }
    struct cm_type *type = CM_NEW(in->arena, struct cm_type);
    *type = (struct cm_type){.kind = CM_KIND_MAP, .dtype = key_type, .elem = elem};
    out->type = type;
    return CM_OK;
}

static enum cm_status read_value(struct text *in, struct case_value *out)
{
    if (++in->depth > DEPTH_MAX)
        return cm_fail(in->err, CM_LIMIT, "values nest deeper than %d", DEPTH_MAX);
    const struct cm_str word = take_word(in);
    enum cm_status status;
    if (cm_str_is(word, "seq") && accept(in, "("))
        status = read_sequence(in, out);
    else if (cm_str_is(word, "opt") && accept(in, "("))
        status = read_optional(in, out);
    else if (cm_str_is(word, "map") && accept(in, "("))
        status = read_map(in, out);
    else
        status = read_tensor(in, word, out);
    in->depth--;
    return status;
}

enum cm_status case_value_read(struct cm_str text, struct cm_arena *arena, struct case_value *out,
                               struct cm_error *err)
{
    struct case_value *value = CM_NEW(arena, struct case_value);
    struct text in = {.rest = text, .arena = arena, .err = err};

    cm_arena_defer(arena, drop_datum, &value->datum);
    if (accept(&in, "?"))
        value->demand = DEMAND_NOTHING;
    else
        CM_TRY(read_value(&in, value));
    skip_spaces(&in);
    if (in.rest.size)
        return cm_fail(err, CM_BAD_ARGUMENT, "'%.*s' is left over", CM_STR_FMT(in.rest));
    *out = *value; /* the one in the arena is dropped; a value is never changed after this */
    return CM_OK;
}
