/* @let: one line of arithmetic as operations of arith and math.
 *
 *     @let f32 %y = 1 / (1 + exp(-%x))
 *     @let index %at = %row * ${width} + index(i64 %column)
 *     @let i1(f32) %inside = %x >= 0 && %x < %limit
 *
 * All operands have the type of the result, but for conversions, TYPE(TYPE OPERAND), which name
 * both. A truth (i1) names the type of what it compares in parentheses; in CONDITION ? A : B that
 * is the type of the result. Types are those of MLIR, and u8, u16, u32 and u64 for integers that
 * are to be taken as unsigned. "reassoc" before the type lets sums and products of floats be taken
 * in any order, so that a loop that adds up can be made of vectors. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/let.h"

#include "template/template_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum number_class { CLASS_FLOAT, CLASS_SIGNED, CLASS_UNSIGNED, CLASS_TRUTH };

struct let_type {
    const char *name, *mlir;
    enum number_class kind;
    int bits; /* 0: as wide as a pointer */
};

static const struct let_type let_types[] = {
    {"f16", "f16", CLASS_FLOAT, 16},    {"bf16", "bf16", CLASS_FLOAT, 16},
    {"f32", "f32", CLASS_FLOAT, 32},    {"f64", "f64", CLASS_FLOAT, 64},
    {"i1", "i1", CLASS_TRUTH, 1},       {"i8", "i8", CLASS_SIGNED, 8},
    {"i16", "i16", CLASS_SIGNED, 16},   {"i32", "i32", CLASS_SIGNED, 32},
    {"i64", "i64", CLASS_SIGNED, 64},   {"u8", "i8", CLASS_UNSIGNED, 8},
    {"u16", "i16", CLASS_UNSIGNED, 16}, {"u32", "i32", CLASS_UNSIGNED, 32},
    {"u64", "i64", CLASS_UNSIGNED, 64}, {"index", "index", CLASS_SIGNED, 0},
};

struct let_reader {
    struct cm_template_run *run;
    struct cm_str text;
    size_t at;
    const struct let_type *type;    /* of what is read */
    const struct let_type *compare; /* of what is compared */
    int depth;
    bool any_order; /* sums and products may be taken in any order */
    /* The last operation, not emitted yet: it may be the one that gives the line's own name. */
    struct cm_str name, operation;
};

static struct cm_str read_choice(struct let_reader *l);

static void wrong(struct let_reader *l, const char *what)
{
    cm_template_wrong(l->run, "%s in '@let %.*s'", what, CM_STR_FMT(l->text));
    l->at = l->text.size;
}

static void skip_space(struct let_reader *l)
{
    while (l->at < l->text.size && l->text.data[l->at] == ' ')
        l->at++;
}

static bool accept(struct let_reader *l, const char *token)
{
    const size_t size = strlen(token);

    skip_space(l);
    if (l->text.size - l->at < size || memcmp(l->text.data + l->at, token, size) != 0)
        return false;
    l->at += size;
    return true;
}

static void expect(struct let_reader *l, const char *token)
{
    char what[40];

    if (accept(l, token))
        return;
    snprintf(what, sizeof what, "'%s' is missing", token);
    wrong(l, what);
}

static struct cm_str word(struct let_reader *l)
{
    skip_space(l);
    const size_t begin = l->at;
    while (l->at < l->text.size && cm_template_is_name(l->text.data[l->at]))
        l->at++;
    return (struct cm_str){l->text.data + begin, l->at - begin};
}

static const struct let_type *find_type(struct cm_str name)
{
    for (size_t i = 0; i < sizeof let_types / sizeof *let_types; i++)
        if (cm_str_is(name, let_types[i].name))
            return &let_types[i];
    return NULL;
}

/* ---- operations ---- */

static void flush(struct let_reader *l)
{
    if (l->name.size)
        cm_template_emitf(l->run, "%.*s = %.*s", CM_STR_FMT(l->name), (int)l->operation.size,
                          l->operation.data);
    l->name = CM_STR_NONE;
}

/* Holds an operation back under a new name, which is returned; emits the one before it. */
static struct cm_str hold(struct let_reader *l, struct cm_str operation)
{
    flush(l);
    l->name = cm_template_fresh(l->run, "v");
    l->operation = operation;
    return l->name;
}

static struct cm_str emit(struct let_reader *l, const char *op, const char *type,
                          const struct cm_str *args, size_t count)
{
    char list[1024];
    size_t at = 0;

    for (size_t i = 0; i < count && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%.*s", i ? ", " : "",
                               CM_STR_FMT(args[i]));
    const bool any_order = l->any_order && (!strcmp(op, "arith.addf") || !strcmp(op, "arith.mulf"));
    return hold(l, cm_arena_printf(l->run->use->arena, "%s %s%s : %s", op, list,
                                   any_order ? " fastmath<reassoc>" : "", type));
}

/* A constant's text: 1 becomes "1.0" for floats, infinities and NaN become bits. */
static struct cm_str literal(struct cm_template_run *run, double value, int64_t integer,
                             bool is_integer, struct cm_str type)
{
    struct cm_arena *arena = run->use->arena;
    const bool is_float = type.size && (type.data[0] == 'f' || type.data[0] == 'b');

    if (!is_float)
        return cm_arena_printf(arena, "%" PRId64, is_integer ? integer : cm_template_whole(value));
    if (!isfinite(value)) {
        /* Bits: sign and exponent all ones, and the top of the fraction for NaN. */
        const int kind = isnan(value) ? 2 : value < 0 ? 1 : 0;
        static const char *const bits[][3] = {
            {"0x7C00", "0xFC00", "0x7E00"},
            {"0x7F80", "0xFF80", "0x7FC0"},
            {"0x7F800000", "0xFF800000", "0x7FC00000"},
            {"0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"}};
        const int row = cm_str_is(type, "f16")    ? 0
                        : cm_str_is(type, "bf16") ? 1
                        : cm_str_is(type, "f32")  ? 2
                                                  : 3;
        return cm_str(bits[row][kind]);
    }
    char text[64];
    cm_format(text, sizeof text, "%.17g", value);
    /* MLIR wants a point in every float: 1e30 is 1.0e30. */
    if (!strpbrk(text, ".")) {
        char *exponent = strchr(text, 'e');
        return exponent ? cm_arena_printf(arena, "%.*s.0%s", (int)(exponent - text), text, exponent)
                        : cm_arena_printf(arena, "%s.0", text);
    }
    return cm_arena_printf(arena, "%s", text);
}

static struct cm_str constant(struct let_reader *l, double value, int64_t integer, bool is_integer)
{
    const struct cm_str text = literal(l->run, value, integer, is_integer, cm_str(l->type->mlir));

    return hold(l, cm_arena_printf(l->run->use->arena, "arith.constant %.*s : %s", CM_STR_FMT(text),
                                   l->type->mlir));
}

/* The operations of one name for each class of numbers; NULL: it has none. */
struct let_operation {
    const char *name;
    const char *of[4];
    int args;
};

static const struct let_operation operations[] = {
    {"+", {"arith.addf", "arith.addi", "arith.addi", "arith.ori"}, 2},
    {"-", {"arith.subf", "arith.subi", "arith.subi", NULL}, 2},
    {"*", {"arith.mulf", "arith.muli", "arith.muli", "arith.andi"}, 2},
    {"/", {"arith.divf", "arith.divsi", "arith.divui", NULL}, 2},
    {"rem", {"arith.remf", "arith.remsi", "arith.remui", NULL}, 2},
    {"floordiv", {NULL, "arith.floordivsi", "arith.divui", NULL}, 2},
    {"ceildiv", {NULL, "arith.ceildivsi", "arith.ceildivui", NULL}, 2},
    {"min", {"arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"}, 2},
    {"max", {"arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"}, 2},
    {"and", {NULL, "arith.andi", "arith.andi", "arith.andi"}, 2},
    {"or", {NULL, "arith.ori", "arith.ori", "arith.ori"}, 2},
    {"xor", {NULL, "arith.xori", "arith.xori", "arith.xori"}, 2},
    {"shl", {NULL, "arith.shli", "arith.shli", NULL}, 2},
    {"shr", {NULL, "arith.shrsi", "arith.shrui", NULL}, 2},
    {"abs", {"math.absf", "math.absi", NULL, NULL}, 1},
    {"floor", {"math.floor", NULL, NULL, NULL}, 1},
    {"ceil", {"math.ceil", NULL, NULL, NULL}, 1},
    {"round", {"math.roundeven", NULL, NULL, NULL}, 1},
    {"trunc", {"math.trunc", NULL, NULL, NULL}, 1},
    {"sqrt", {"math.sqrt", NULL, NULL, NULL}, 1},
    {"exp", {"math.exp", NULL, NULL, NULL}, 1},
    {"exp2", {"math.exp2", NULL, NULL, NULL}, 1},
    {"log", {"math.log", NULL, NULL, NULL}, 1},
    {"log2", {"math.log2", NULL, NULL, NULL}, 1},
    {"sin", {"math.sin", NULL, NULL, NULL}, 1},
    {"cos", {"math.cos", NULL, NULL, NULL}, 1},
    {"tan", {"math.tan", NULL, NULL, NULL}, 1},
    {"asin", {"math.asin", NULL, NULL, NULL}, 1},
    {"acos", {"math.acos", NULL, NULL, NULL}, 1},
    {"atan", {"math.atan", NULL, NULL, NULL}, 1},
    {"sinh", {"math.sinh", NULL, NULL, NULL}, 1},
    {"cosh", {"math.cosh", NULL, NULL, NULL}, 1},
    {"tanh", {"math.tanh", NULL, NULL, NULL}, 1},
    {"asinh", {"math.asinh", NULL, NULL, NULL}, 1},
    {"acosh", {"math.acosh", NULL, NULL, NULL}, 1},
    {"atanh", {"math.atanh", NULL, NULL, NULL}, 1},
    {"erf", {"math.erf", NULL, NULL, NULL}, 1},
    {"pow", {"math.powf", NULL, NULL, NULL}, 2},
    {"copysign", {"math.copysign", NULL, NULL, NULL}, 2},
    {"fma", {"math.fma", NULL, NULL, NULL}, 3},
};

/* a * b + c in one rounding where the machine has that, in two elsewhere: never by a function. */
static struct cm_str multiply_add(struct let_reader *l, const struct cm_str *args)
{
    struct cm_arena *arena = l->run->use->arena;
    const char *type = l->type->mlir;
    const struct cm_str product =
        hold(l, cm_arena_printf(arena, "arith.mulf %.*s, %.*s fastmath<contract> : %s",
                                CM_STR_FMT(args[0]), CM_STR_FMT(args[1]), type));

    return hold(l, cm_arena_printf(arena, "arith.addf %.*s, %.*s fastmath<contract> : %s",
                                   CM_STR_FMT(product), CM_STR_FMT(args[2]), type));
}

static struct cm_str operate(struct let_reader *l, struct cm_str name, const struct cm_str *args,
                             size_t count)
{
    if (cm_str_is(name, "muladd") && count == 3 && l->type->kind == CLASS_FLOAT)
        return multiply_add(l, args);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const struct let_operation *op = &operations[i];
        if (!cm_str_is(name, op->name) || (size_t)op->args != count || !op->of[l->type->kind])
            continue;
        return emit(l, op->of[l->type->kind], l->type->mlir, args, count);
    }
    char what[120];
    snprintf(what, sizeof what, "'%.*s' of %zu operands is not an operation on %s",
             CM_STR_FMT(name), count, l->type->name);
    wrong(l, what);
    return CM_STR_NONE;
}

static struct cm_str operate2(struct let_reader *l, const char *op, struct cm_str a,
                              struct cm_str b)
{
    return operate(l, cm_str(op), (struct cm_str[]){a, b}, 2);
}

/* The operation that turns one type into another; NULL: none is needed. */
static const char *conversion(const struct let_type *from, const struct let_type *to)
{
    const bool is_unsigned = from->kind == CLASS_UNSIGNED || from->kind == CLASS_TRUTH;

    if (!strcmp(from->mlir, to->mlir))
        return NULL;
    if (from->kind == CLASS_FLOAT && to->kind == CLASS_FLOAT)
        return from->bits < to->bits ? "arith.extf" : "arith.truncf";
    if (from->kind == CLASS_FLOAT)
        return to->kind == CLASS_UNSIGNED ? "arith.fptoui" : "arith.fptosi";
    if (to->kind == CLASS_FLOAT)
        return is_unsigned ? "arith.uitofp" : "arith.sitofp";
    if (!from->bits || !to->bits)
        return is_unsigned ? "arith.index_castui" : "arith.index_cast";
    if (from->bits < to->bits)
        return is_unsigned ? "arith.extui" : "arith.extsi";
    return "arith.trunci";
}

static struct cm_str convert_step(struct let_reader *l, struct cm_str value,
                                  const struct let_type *from, const struct let_type *to)
{
    const char *op = conversion(from, to);

    if (!op)
        return value;
    return hold(l, cm_arena_printf(l->run->use->arena, "%s %.*s : %s to %s", op, CM_STR_FMT(value),
                                   from->mlir, to->mlir));
}

static struct cm_str convert(struct let_reader *l, struct cm_str value, const struct let_type *from,
                             const struct let_type *to)
{
    const struct let_type *wide = find_type(CM_STR("i64")), *single = find_type(CM_STR("f32"));

    /* index and floats meet in i64; the two halves in f32. */
    if ((!from->bits && to->kind == CLASS_FLOAT) || (from->kind == CLASS_FLOAT && !to->bits))
        return convert_step(l, convert_step(l, value, from, wide), wide, to);
    if (from->kind == CLASS_FLOAT && to->kind == CLASS_FLOAT && from->bits == 16 && to->bits == 16)
        return convert_step(l, convert_step(l, value, from, single), single, to);
    return convert_step(l, value, from, to);
}

/* ---- reading ---- */

/* TYPE(TYPE OPERAND), up to the parenthesis; the first TYPE was read. */
static struct cm_str read_conversion(struct let_reader *l, const struct let_type *to)
{
    const struct let_type *from = find_type(word(l)), *outer = l->type, *compare = l->compare;

    if (!from) {
        wrong(l, "a conversion is TYPE(TYPE OPERAND): the second type is missing");
        return CM_STR_NONE;
    }
    l->type = l->compare = from;
    const struct cm_str value = read_choice(l);
    l->type = outer;
    l->compare = compare;
    expect(l, ")");
    return convert(l, value, from, to);
}

static struct cm_str read_word(struct let_reader *l)
{
    const struct cm_str name = word(l);
    const struct let_type *to = find_type(name);
    struct cm_str args[4];
    size_t count = 0;

    if (accept(l, "(")) {
        if (to)
            return read_conversion(l, to);
        do
            args[count++] = read_choice(l);
        while (count < 4 && accept(l, ","));
        expect(l, ")");
        return l->run->status == CM_OK ? operate(l, name, args, count) : CM_STR_NONE;
    }
    const bool is_float = l->type->kind == CLASS_FLOAT;
    if (cm_str_is(name, "true") || cm_str_is(name, "false"))
        return constant(l, 0, cm_str_is(name, "true"), true);
    if (is_float && cm_str_is(name, "nan"))
        return constant(l, NAN, 0, false);
    if (is_float && (cm_str_is(name, "inf") || cm_str_is(name, "most")))
        return constant(l, INFINITY, 0, false);
    if (is_float && cm_str_is(name, "least"))
        return constant(l, -INFINITY, 0, false);
    if (cm_str_is(name, "least") || cm_str_is(name, "most")) {
        const int bits = l->type->bits ? l->type->bits : 32;
        const bool most = cm_str_is(name, "most");
        if (l->type->kind == CLASS_UNSIGNED)
            return constant(l, 0, most ? -1 : 0, true); /* all bits */
        const int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
        return constant(l, 0, most ? top : -top - 1, true);
    }
    wrong(l, "a word is not known");
    return CM_STR_NONE;
}

static struct cm_str read_number(struct let_reader *l)
{
    const size_t begin = l->at;
    struct cm_str text;
    int64_t integer = 0;
    double value = 0;

    while (l->at < l->text.size) {
        const char c = l->text.data[l->at];
        const bool after_e = l->at > begin && l->text.data[l->at - 1] == 'e';
        if (!(c >= '0' && c <= '9') && c != '.' && c != 'e' && !(after_e && (c == '-' || c == '+')))
            break;
        l->at++;
    }
    text = (struct cm_str){l->text.data + begin, l->at - begin};
    const bool is_integer = cm_str_to_int64(text, &integer);
    if (is_integer)
        value = (double)integer;
    else if (!cm_str_to_double(text, &value) || l->type->kind != CLASS_FLOAT)
        wrong(l, "a number cannot be read");
    return constant(l, value, integer, is_integer);
}

static struct cm_str read_unary(struct let_reader *l)
{
    struct cm_str value = CM_STR_NONE;

    skip_space(l);
    if (l->at >= l->text.size || ++l->depth > CM_TEMPLATE_DEPTH) {
        wrong(l, "an operand is missing");
        return value;
    }
    const char c = l->text.data[l->at];
    if (c == '%') {
        const size_t begin = l->at++;
        while (l->at < l->text.size &&
               (cm_template_is_name(l->text.data[l->at]) || l->text.data[l->at] == '#'))
            l->at++;
        value = (struct cm_str){l->text.data + begin, l->at - begin};
    } else if (c >= '0' && c <= '9') {
        value = read_number(l);
    } else if (c == '-') {
        l->at++;
        value = read_unary(l);
        value = l->type->kind == CLASS_FLOAT ? emit(l, "arith.negf", l->type->mlir, &value, 1)
                                             : operate2(l, "-", constant(l, 0, 0, true), value);
    } else if (c == '(') {
        l->at++;
        value = read_choice(l);
        expect(l, ")");
    } else if (cm_template_is_name(c)) {
        value = read_word(l);
    } else {
        wrong(l, "an operand cannot be read");
    }
    l->depth--;
    return value;
}

/* A sign that is not the first of a longer one. */
static bool accept_sign(struct let_reader *l, const char *sign)
{
    const size_t before = l->at;

    if (!accept(l, sign))
        return false;
    if (l->at < l->text.size && l->text.data[l->at] == *sign) {
        l->at = before;
        return false;
    }
    return true;
}

static struct cm_str read_product(struct let_reader *l)
{
    struct cm_str value = read_unary(l);

    for (;;) {
        const char *op = accept_sign(l, "*") ? "*" : accept_sign(l, "/") ? "/" : NULL;
        if (!op || l->run->status != CM_OK)
            return value;
        value = operate2(l, op, value, read_unary(l));
    }
}

static struct cm_str read_sum(struct let_reader *l)
{
    struct cm_str value = read_product(l);

    for (;;) {
        const char *op = accept(l, "+") ? "+" : accept(l, "-") ? "-" : NULL;
        if (!op || l->run->status != CM_OK)
            return value;
        value = operate2(l, op, value, read_product(l));
    }
}

/* Comparisons of floats are false with NaN, but for !=, which is true. */
static const struct {
    const char *sign, *floats, *ints, *unsigneds;
} comparisons[] = {
    {"==", "oeq", "eq", "eq"},   {"!=", "une", "ne", "ne"},  {"<=", "ole", "sle", "ule"},
    {">=", "oge", "sge", "uge"}, {"<", "olt", "slt", "ult"}, {">", "ogt", "sgt", "ugt"},
};

/* A truth: what is compared has the type `compare`. */
static struct cm_str read_comparison(struct let_reader *l, bool *is_truth)
{
    const struct let_type *outer = l->type;
    const bool was_truth = outer->kind == CLASS_TRUTH;
    const size_t begin = l->at;

    if (accept(l, "!")) {
        const struct cm_str value = read_comparison(l, is_truth);
        l->type = find_type(CM_STR("i1"));
        const struct cm_str yes = constant(l, 0, 1, true);
        const struct cm_str out = emit(l, "arith.xori", "i1", (struct cm_str[]){value, yes}, 2);
        l->type = outer;
        *is_truth = true;
        return out;
    }
    /* In parentheses there may be a truth as well as a number. */
    l->type = l->compare;
    struct cm_str a;
    skip_space(l);
    bool inner_truth = false;
    if (l->at < l->text.size && l->text.data[l->at] == '(') {
        int depth = 0;
        size_t i = l->at;
        for (; i < l->text.size; i++) {
            const char c = l->text.data[i];
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
            if (depth == 1 && (c == '<' || c == '>' || c == '!' || c == '&' || c == '|' ||
                               (c == '=' && i + 1 < l->text.size && l->text.data[i + 1] == '=')))
                inner_truth = true;
            if (!depth)
                break;
        }
    }
    if (inner_truth) {
        l->type = find_type(CM_STR("i1"));
        expect(l, "(");
        a = read_choice(l);
        expect(l, ")");
        l->type = outer;
        *is_truth = true;
        return a;
    }
    a = read_sum(l);
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        if (!accept(l, comparisons[i].sign))
            continue;
        const struct cm_str b = read_sum(l);
        const bool is_float = l->compare->kind == CLASS_FLOAT;
        const char *sign = is_float                           ? comparisons[i].floats
                           : l->compare->kind == CLASS_SIGNED ? comparisons[i].ints
                                                              : comparisons[i].unsigneds;
        l->type = outer;
        *is_truth = true;
        return hold(l, cm_arena_printf(l->run->use->arena, "%s %s, %.*s, %.*s : %s",
                                       is_float ? "arith.cmpf" : "arith.cmpi", sign, CM_STR_FMT(a),
                                       CM_STR_FMT(b), l->compare->mlir));
    }
    l->type = outer;
    /* No comparison: a truth is read again as one, since its literals and operations are others. */
    if (was_truth && l->compare != outer && l->run->status == CM_OK) {
        l->at = begin;
        a = read_sum(l);
    }
    return a;
}

static struct cm_str read_both(struct let_reader *l, bool *is_truth)
{
    struct cm_str value = read_comparison(l, is_truth);

    while (l->run->status == CM_OK && accept(l, "&&")) {
        bool ignored;
        const struct cm_str other = read_comparison(l, &ignored);
        value = emit(l, "arith.andi", "i1", (struct cm_str[]){value, other}, 2);
        *is_truth = true;
    }
    return value;
}

static struct cm_str read_either(struct let_reader *l, bool *is_truth)
{
    struct cm_str value = read_both(l, is_truth);

    while (l->run->status == CM_OK && accept(l, "||")) {
        bool ignored;
        const struct cm_str other = read_both(l, &ignored);
        value = emit(l, "arith.ori", "i1", (struct cm_str[]){value, other}, 2);
        *is_truth = true;
    }
    return value;
}

static struct cm_str read_choice(struct let_reader *l)
{
    bool is_truth = l->type->kind == CLASS_TRUTH;
    const struct cm_str value = read_either(l, &is_truth);

    if (l->run->status != CM_OK || !accept(l, "?"))
        return value;
    const struct cm_str yes = read_choice(l);
    expect(l, ":");
    const struct cm_str no = read_choice(l);
    return emit(l, "arith.select", l->type->mlir, (struct cm_str[]){value, yes, no}, 3);
}

/* The last operation takes the name that the line gives; what is only renamed is copied by an
 * operation that the optimizer takes away. */
static void bind(struct let_reader *l, struct cm_str name, struct cm_str value)
{
    if (!cm_str_equal(l->name, value)) {
        if (l->type->bits)
            hold(l, cm_arena_printf(l->run->use->arena, "arith.bitcast %.*s : %s to %s",
                                    CM_STR_FMT(value), l->type->mlir, l->type->mlir));
        else
            operate2(l, "+", value, constant(l, 0, 0, true));
    }
    l->name = name;
    flush(l);
}

static void run_let(struct cm_template_run *run, struct cm_str text)
{
    struct let_reader l = {.run = run, .text = text};

    if (run->status != CM_OK)
        return;
    struct cm_str type = word(&l);
    l.any_order = cm_str_is(type, "reassoc");
    if (l.any_order)
        type = word(&l);
    l.type = find_type(type);
    l.compare = l.type;
    if (l.type && accept(&l, "(")) {
        l.compare = find_type(word(&l));
        expect(&l, ")");
    }
    if (!l.type || !l.compare) {
        wrong(&l, "a type is not known");
        return;
    }
    skip_space(&l);
    const size_t begin = l.at;
    while (l.at < text.size && text.data[l.at] != ' ' && text.data[l.at] != '=')
        l.at++;
    const struct cm_str name = {text.data + begin, l.at - begin};
    expect(&l, "=");
    const struct cm_str value = read_choice(&l);
    skip_space(&l);
    if (run->status == CM_OK && l.at != text.size)
        wrong(&l, "something is left over");
    if (run->status == CM_OK)
        bind(&l, name, value);
}

/* ---- for the host ---- */

bool cm_mlir_directive(void *arg, struct cm_template_run *run, struct cm_str line)
{
    struct cm_str rest;

    (void)arg;
    if (cm_template_directive(line, "let", &rest)) {
        run_let(run, cm_template_substitute(run, rest));
        return true;
    }
    /* The lowering reads these before it expands the template. */
    return cm_template_directive(line, "elementwise", &rest) ||
           cm_template_directive(line, "whole", &rest);
}

struct cm_str cm_mlir_print_float(struct cm_template_run *run, double value)
{
    return literal(run, value, 0, false, CM_STR("f64"));
}

bool cm_mlir_literal_call(struct cm_template_run *run, struct cm_str name,
                          const struct cm_term *args, size_t count, struct cm_term *out)
{
    if (cm_str_is(name, "bare") && count == 1 && args->kind == CM_TERM_TEXT) {
        const struct cm_str type = args->text;
        *out = *args;
        if (type.size && type.data[0] == 'u')
            *out = cm_term_text(
                cm_arena_printf(run->use->arena, "i%.*s", (int)type.size - 1, type.data + 1));
        return true;
    }
    if (cm_str_is(name, "literal") && count == 2 && args[1].kind == CM_TERM_TEXT &&
        (args->kind == CM_TERM_INT || args->kind == CM_TERM_FLOAT)) {
        const bool is_integer = args->kind == CM_TERM_INT;
        const double value = is_integer ? (double)args->i : args->f;
        *out = cm_term_text(literal(run, value, args->i, is_integer, args[1].text));
        return true;
    }
    return false;
}
