/* The pickle machine: opcodes of protocols 0 to 5. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/pickle.h"

enum {
    STACK_MAX = 1 << 22,
    MADE_MAX = 1 << 24 /* items and entries in all */
};

/* How the argument of an opcode is written. */
enum argument {
    ARG_NONE,
    ARG_U1,
    ARG_U2,
    ARG_I4,
    ARG_U4,
    ARG_U8,
    ARG_REAL,
    ARG_LINE,  /* up to a line feed */
    ARG_LINES, /* two of them */
    ARG_LEN1,  /* bytes after their number */
    ARG_LEN4,
    ARG_LEN8,
};

struct decoded {
    int64_t number;
    double real;
    struct cm_str text, second;
    int variant; /* of its row */
};

typedef enum cm_status act_fn(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err);

struct cm_item *cm_pickle_item(struct cm_pickle *p, enum cm_item_kind kind)
{
    p->made++;
    return cm_item_new(p->arena, kind);
}

bool cm_pickle_is_list(const struct cm_item *item, size_t least)
{
    return item && item->kind == CM_ITEM_LIST && item->entries.count >= least;
}

/* ---- the stack ---- */

static enum cm_status push(struct cm_pickle *p, struct cm_item *item)
{
    *CM_PUSH(p->arena, &p->stack) = item;
    return CM_OK;
}

static struct cm_item *push_new(struct cm_pickle *p, enum cm_item_kind kind)
{
    struct cm_item *item = cm_pickle_item(p, kind);

    (void)push(p, item);
    return item;
}

static enum cm_status underflow(struct cm_error *err)
{
    return cm_fail(err, CM_BAD_MODEL, "the stack holds too little");
}

/* Entries above the last mark cannot be taken one by one past it. */
static size_t available(const struct cm_pickle *p)
{
    return p->stack.count - (p->marks.count ? p->marks.items[p->marks.count - 1] : 0);
}

static enum cm_status pop(struct cm_pickle *p, struct cm_item **out, struct cm_error *err)
{
    *out = NULL;
    if (!available(p))
        return underflow(err);
    *out = p->stack.items[--p->stack.count];
    return CM_OK;
}

static enum cm_status top(const struct cm_pickle *p, struct cm_item **out, struct cm_error *err)
{
    *out = NULL;
    if (!available(p))
        return underflow(err);
    *out = p->stack.items[p->stack.count - 1];
    return CM_OK;
}

/* Takes everything above the last mark, and the mark: items[first] up to the old count. */
static enum cm_status pop_mark(struct cm_pickle *p, struct cm_item ***items, size_t *count,
                               struct cm_error *err)
{
    *items = NULL;
    *count = 0;
    if (!p->marks.count)
        return cm_fail(err, CM_BAD_MODEL, "there is no mark on the stack");
    const size_t first = p->marks.items[--p->marks.count];
    *items = p->stack.items + first;
    *count = p->stack.count - first;
    p->stack.count = first;
    return CM_OK;
}

/* ---- plain values ---- */

enum { TRUTH = 0x10 }; /* in a variant: the kind with its truth set */

/* variant: the kind of what is pushed. */
static enum cm_status act_plain(struct cm_pickle *p, const struct decoded *arg,
                                struct cm_error *err)
{
    struct cm_item *item = push_new(p, (enum cm_item_kind)(arg->variant & ~TRUTH));

    (void)err;
    item->truth = arg->variant & TRUTH;
    item->number = arg->number;
    item->real = arg->real;
    item->text = arg->text;
    return CM_OK;
}

/* Numbers as text: INT and LONG, whose lines may end in L; 00 and 01 are bools. */
static enum cm_status act_int_line(struct cm_pickle *p, const struct decoded *arg,
                                   struct cm_error *err)
{
    struct cm_str text = arg->text;
    int64_t number;

    if (cm_str_is(text, "00") || cm_str_is(text, "01")) {
        push_new(p, CM_ITEM_BOOL)->truth = text.data[1] == '1';
        return CM_OK;
    }
    if (cm_str_ends(text, "L"))
        text.size--;
    if (cm_str_to_int64(text, &number)) {
        push_new(p, CM_ITEM_INT)->number = number;
        return CM_OK;
    }
    for (size_t i = 0; i < text.size; i++)
        if ((text.data[i] < '0' || text.data[i] > '9') && !(i == 0 && text.data[0] == '-'))
            return cm_fail(err, CM_BAD_MODEL, "'%.*s' is not a number", CM_STR_FMT(text));
    push_new(p, CM_ITEM_TEXT)->text = text;
    return CM_OK;
}

static enum cm_status act_real_line(struct cm_pickle *p, const struct decoded *arg,
                                    struct cm_error *err)
{
    double real;

    if (!cm_str_to_double(arg->text, &real))
        return cm_fail(err, CM_BAD_MODEL, "'%.*s' is not a number", CM_STR_FMT(arg->text));
    push_new(p, CM_ITEM_REAL)->real = real;
    return CM_OK;
}

/* LONG1 and LONG4: little-endian two's complement. Past 64 bits it stays text. */
static enum cm_status act_long(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    const struct cm_str bytes = arg->text;
    uint64_t value = 0;

    if (bytes.size > CM_PICKLE_LONG_MAX)
        return cm_fail(err, CM_LIMIT, "an integer of %zu bytes is too long", bytes.size);
    if (bytes.size > 8) {
        push_new(p, CM_ITEM_TEXT)->text = cm_pickle_digits(p->arena, bytes);
        return CM_OK;
    }
    if (bytes.size && bytes.data[bytes.size - 1] & 0x80)
        value = UINT64_MAX;
    for (size_t i = bytes.size; i-- > 0;)
        value = value << 8 | (uint8_t)bytes.data[i];
    push_new(p, CM_ITEM_INT)->number = (int64_t)value;
    return CM_OK;
}

/* STRING, in quotes, and UNICODE, without: variant says which. */
static enum cm_status act_text_line(struct cm_pickle *p, const struct decoded *arg,
                                    struct cm_error *err)
{
    struct cm_str text = arg->text;

    if (arg->variant) {
        if (text.size < 2 || text.data[0] != text.data[text.size - 1] ||
            (text.data[0] != '\'' && text.data[0] != '"'))
            return cm_fail(err, CM_BAD_MODEL, "a text has no quotes");
        text = (struct cm_str){text.data + 1, text.size - 2};
    }
    CM_TRY(cm_pickle_unescape(p->arena, text, arg->variant, &text, err));
    push_new(p, CM_ITEM_TEXT)->text = text;
    return CM_OK;
}

/* ---- lists and maps ---- */

static void append_all(struct cm_pickle *p, struct cm_item *list, struct cm_item **items,
                       size_t count)
{
    p->made += count;
    for (size_t i = 0; i < count; i++)
        cm_item_append(p->arena, list, items[i]);
}

static enum cm_status set_all(struct cm_pickle *p, struct cm_item *map, struct cm_item **items,
                              size_t count, struct cm_error *err)
{
    if (count % 2)
        return cm_fail(err, CM_BAD_MODEL, "a key has no value");
    p->made += count;
    for (size_t i = 0; i < count; i += 2)
        cm_item_set(p->arena, map, items[i], items[i + 1]);
    return CM_OK;
}

/* TUPLE1 to TUPLE3: a tuple is a list whose truth is set. */
static enum cm_status act_tuple(struct cm_pickle *p, const struct decoded *arg,
                                struct cm_error *err)
{
    const size_t count = (size_t)arg->variant;

    if (available(p) < count)
        return underflow(err);
    struct cm_item *list = cm_pickle_item(p, CM_ITEM_LIST);
    list->truth = true;
    p->stack.count -= count;
    append_all(p, list, p->stack.items + p->stack.count, count);
    return push(p, list);
}

/* TUPLE, LIST, FROZENSET and DICT of what is above the mark. */
static enum cm_status act_gather(struct cm_pickle *p, const struct decoded *arg,
                                 struct cm_error *err)
{
    struct cm_item **items, *made;
    size_t count;

    CM_TRY(pop_mark(p, &items, &count, err));
    made = cm_pickle_item(p, (enum cm_item_kind)(arg->variant & ~TRUTH));
    made->truth = arg->variant & TRUTH;
    if (made->kind == CM_ITEM_MAP)
        CM_TRY(set_all(p, made, items, count, err));
    else
        append_all(p, made, items, count);
    return push(p, made);
}

/* What list items or map entries are added to: of an object of a class made from list or dict, its
 * state. NULL: it takes none. */
static struct cm_item *container(struct cm_pickle *p, struct cm_item *item, enum cm_item_kind kind)
{
    if (item->kind == kind)
        return item;
    if (item->kind != CM_ITEM_OBJECT)
        return NULL;
    if (!item->state)
        item->state = cm_pickle_item(p, kind);
    return item->state->kind == kind ? (struct cm_item *)item->state : NULL;
}

static enum cm_status add_to(struct cm_pickle *p, struct cm_item **items, size_t count,
                             enum cm_item_kind kind, struct cm_error *err)
{
    struct cm_item *to;

    CM_TRY(top(p, &to, err));
    to = container(p, to, kind);
    if (!to)
        return cm_fail(err, CM_BAD_MODEL, "what it adds to is not a %s",
                       kind == CM_ITEM_MAP ? "dictionary" : "list");
    if (kind == CM_ITEM_MAP)
        return set_all(p, to, items, count, err);
    append_all(p, to, items, count);
    return CM_OK;
}

/* APPENDS, ADDITEMS and SETITEMS; variant: the kind. The items stay where they were on the stack
 * while they are added, since nothing is pushed before that. */
static enum cm_status act_add_all(struct cm_pickle *p, const struct decoded *arg,
                                  struct cm_error *err)
{
    struct cm_item **items;
    size_t count;

    CM_TRY(pop_mark(p, &items, &count, err));
    return add_to(p, items, count, (enum cm_item_kind)arg->variant, err);
}

/* APPEND and SETITEM. */
static enum cm_status act_add(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    const size_t count = arg->variant == CM_ITEM_MAP ? 2 : 1;

    if (available(p) < count)
        return underflow(err);
    p->stack.count -= count;
    return add_to(p, p->stack.items + p->stack.count, count, (enum cm_item_kind)arg->variant, err);
}

/* ---- stack and memo ---- */

static enum cm_status act_mark(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    (void)arg;
    (void)err;
    *CM_PUSH(p->arena, &p->marks) = p->stack.count;
    return CM_OK;
}

static enum cm_status act_pop(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    struct cm_item *item, **items;
    size_t count;

    if (arg->variant || (!available(p) && p->marks.count)) /* POP takes a mark, too */
        return pop_mark(p, &items, &count, err);
    return pop(p, &item, err);
}

static enum cm_status act_dup(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    struct cm_item *item;

    (void)arg;
    CM_TRY(top(p, &item, err));
    return push(p, item);
}

/* Picklers number what they memoize from 0 on: no number is larger than the pickle is long. */
static enum cm_status memo_number(const struct cm_pickle *p, const struct decoded *arg, size_t *out,
                                  struct cm_error *err)
{
    int64_t number = arg->number;

    if (arg->text.data && !cm_str_to_int64(arg->text, &number))
        return cm_fail(err, CM_BAD_MODEL, "'%.*s' is not a number", CM_STR_FMT(arg->text));
    if (number < 0 || (uint64_t)number >= p->bytes.size)
        return cm_fail(err, CM_BAD_MODEL, "memo number %lld is out of range", (long long)number);
    *out = (size_t)number;
    return CM_OK;
}

static enum cm_status put(struct cm_pickle *p, size_t number, struct cm_error *err)
{
    struct cm_item *item;

    CM_TRY(top(p, &item, err));
    while (p->memo.count <= number)
        *CM_PUSH(p->arena, &p->memo) = NULL;
    p->memo.items[number] = item;
    return CM_OK;
}

static enum cm_status act_put(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    size_t number = 0;

    CM_TRY(memo_number(p, arg, &number, err));
    return put(p, number, err);
}

static enum cm_status act_memoize(struct cm_pickle *p, const struct decoded *arg,
                                  struct cm_error *err)
{
    (void)arg;
    return put(p, p->memo.count, err);
}

static enum cm_status act_get(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    size_t number = 0;

    CM_TRY(memo_number(p, arg, &number, err));
    if (number >= p->memo.count || !p->memo.items[number])
        return cm_fail(err, CM_BAD_MODEL, "memo number %zu was never put", number);
    return push(p, p->memo.items[number]);
}

static enum cm_status act_nothing(struct cm_pickle *p, const struct decoded *arg,
                                  struct cm_error *err)
{
    (void)p;
    if (arg->variant && arg->number > 5)
        return cm_fail(err, CM_UNSUPPORTED, "pickle protocol %lld is not supported (at most 5)",
                       (long long)arg->number);
    return CM_OK;
}

/* ---- objects ---- */

static enum cm_status act_global(struct cm_pickle *p, const struct decoded *arg,
                                 struct cm_error *err)
{
    (void)err;
    return push(p, cm_pickle_name(p, arg->text, arg->second));
}

static enum cm_status act_stack_global(struct cm_pickle *p, const struct decoded *arg,
                                       struct cm_error *err)
{
    struct cm_item *name, *module;

    (void)arg;
    CM_TRY(pop(p, &name, err));
    CM_TRY(pop(p, &module, err));
    if (name->kind != CM_ITEM_TEXT || module->kind != CM_ITEM_TEXT)
        return cm_fail(err, CM_BAD_MODEL, "the name of a class is not a text");
    return push(p, cm_pickle_name(p, module->text, name->text));
}

/* REDUCE, NEWOBJ (variant 1) and NEWOBJ_EX (variant 2, with keyword arguments). */
static enum cm_status act_call(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    struct cm_item *keywords = NULL, *arguments, *function, *made;

    if (arg->variant == 2)
        CM_TRY(pop(p, &keywords, err));
    CM_TRY(pop(p, &arguments, err));
    CM_TRY(pop(p, &function, err));
    if (arguments->kind != CM_ITEM_LIST)
        return cm_fail(err, CM_BAD_MODEL, "the arguments of a call are not a tuple");
    CM_TRY(cm_pickle_call(p, function, arguments, &made, err));
    if (keywords && made->kind == CM_ITEM_OBJECT && keywords->entries.count)
        made->state = keywords;
    return push(p, made);
}

static enum cm_status act_build(struct cm_pickle *p, const struct decoded *arg,
                                struct cm_error *err)
{
    struct cm_item *state, *object;

    (void)arg;
    CM_TRY(pop(p, &state, err));
    CM_TRY(top(p, &object, err));
    return cm_pickle_build(p, object, state, err);
}

static enum cm_status act_persistent(struct cm_pickle *p, const struct decoded *arg,
                                     struct cm_error *err)
{
    struct cm_item *id, *made;

    (void)arg;
    CM_TRY(pop(p, &id, err));
    if (!p->persistent)
        return cm_fail(err, CM_UNSUPPORTED, "it refers to something outside of the pickle");
    CM_TRY(p->persistent(p, id, &made, err));
    return push(p, made);
}

static enum cm_status act_refuse(struct cm_pickle *p, const struct decoded *arg,
                                 struct cm_error *err)
{
    (void)p;
    (void)arg;
    return cm_fail(err, CM_UNSUPPORTED, "this opcode is not supported");
}

static enum cm_status act_stop(struct cm_pickle *p, const struct decoded *arg, struct cm_error *err)
{
    (void)arg;
    if (p->stack.count != 1 || p->marks.count)
        return cm_fail(err, CM_BAD_MODEL, "%zu values are on the stack at the end, expected 1",
                       p->stack.count);
    return CM_OK;
}

/* ---- the opcodes, frequent ones first ---- */

enum { TUPLE = CM_ITEM_LIST | TRUTH };

static const struct opcode {
    uint8_t code, argument, variant;
    const char *name;
    act_fn *act;
} opcodes[] = {
    {'q', ARG_U1, 0, "BINPUT", act_put},
    {'r', ARG_U4, 0, "LONG_BINPUT", act_put},
    {0x94, ARG_NONE, 0, "MEMOIZE", act_memoize},
    {'h', ARG_U1, 0, "BINGET", act_get},
    {'j', ARG_U4, 0, "LONG_BINGET", act_get},
    {'K', ARG_U1, CM_ITEM_INT, "BININT1", act_plain},
    {'M', ARG_U2, CM_ITEM_INT, "BININT2", act_plain},
    {'J', ARG_I4, CM_ITEM_INT, "BININT", act_plain},
    {'X', ARG_LEN4, CM_ITEM_TEXT, "BINUNICODE", act_plain},
    {0x8c, ARG_LEN1, CM_ITEM_TEXT, "SHORT_BINUNICODE", act_plain},
    {'(', ARG_NONE, 0, "MARK", act_mark},
    {'t', ARG_NONE, TUPLE, "TUPLE", act_gather},
    {0x85, ARG_NONE, 1, "TUPLE1", act_tuple},
    {0x86, ARG_NONE, 2, "TUPLE2", act_tuple},
    {0x87, ARG_NONE, 3, "TUPLE3", act_tuple},
    {')', ARG_NONE, TUPLE, "EMPTY_TUPLE", act_plain},
    {'R', ARG_NONE, 0, "REDUCE", act_call},
    {'Q', ARG_NONE, 0, "BINPERSID", act_persistent},
    {0x89, ARG_NONE, CM_ITEM_BOOL, "NEWFALSE", act_plain},
    {0x88, ARG_NONE, CM_ITEM_BOOL | TRUTH, "NEWTRUE", act_plain},
    {'N', ARG_NONE, CM_ITEM_NONE, "NONE", act_plain},
    {'G', ARG_REAL, CM_ITEM_REAL, "BINFLOAT", act_plain},
    {'}', ARG_NONE, CM_ITEM_MAP, "EMPTY_DICT", act_plain},
    {']', ARG_NONE, CM_ITEM_LIST, "EMPTY_LIST", act_plain},
    {'u', ARG_NONE, CM_ITEM_MAP, "SETITEMS", act_add_all},
    {'s', ARG_NONE, CM_ITEM_MAP, "SETITEM", act_add},
    {'e', ARG_NONE, CM_ITEM_LIST, "APPENDS", act_add_all},
    {'a', ARG_NONE, CM_ITEM_LIST, "APPEND", act_add},
    {'c', ARG_LINES, 0, "GLOBAL", act_global},
    {0x93, ARG_NONE, 0, "STACK_GLOBAL", act_stack_global},
    {0x81, ARG_NONE, 1, "NEWOBJ", act_call},
    {0x92, ARG_NONE, 2, "NEWOBJ_EX", act_call},
    {'b', ARG_NONE, 0, "BUILD", act_build},
    {'.', ARG_NONE, 0, "STOP", act_stop},
    {0x80, ARG_U1, 1, "PROTO", act_nothing},
    {0x95, ARG_U8, 0, "FRAME", act_nothing},
    {0x8a, ARG_LEN1, 0, "LONG1", act_long},
    {0x8b, ARG_LEN4, 0, "LONG4", act_long},
    {'C', ARG_LEN1, CM_ITEM_BYTES, "SHORT_BINBYTES", act_plain},
    {'B', ARG_LEN4, CM_ITEM_BYTES, "BINBYTES", act_plain},
    {0x8e, ARG_LEN8, CM_ITEM_BYTES, "BINBYTES8", act_plain},
    {0x96, ARG_LEN8, CM_ITEM_BYTES, "BYTEARRAY8", act_plain},
    {0x8d, ARG_LEN8, CM_ITEM_TEXT, "BINUNICODE8", act_plain},
    {'U', ARG_LEN1, CM_ITEM_TEXT, "SHORT_BINSTRING", act_plain},
    {'T', ARG_LEN4, CM_ITEM_TEXT, "BINSTRING", act_plain},
    {0x8f, ARG_NONE, CM_ITEM_LIST, "EMPTY_SET", act_plain},
    {0x90, ARG_NONE, CM_ITEM_LIST, "ADDITEMS", act_add_all},
    {0x91, ARG_NONE, CM_ITEM_LIST, "FROZENSET", act_gather},
    {'l', ARG_NONE, CM_ITEM_LIST, "LIST", act_gather},
    {'d', ARG_NONE, CM_ITEM_MAP, "DICT", act_gather},
    {'I', ARG_LINE, 0, "INT", act_int_line},
    {'L', ARG_LINE, 0, "LONG", act_int_line},
    {'F', ARG_LINE, 0, "FLOAT", act_real_line},
    {'V', ARG_LINE, 0, "UNICODE", act_text_line},
    {'S', ARG_LINE, 1, "STRING", act_text_line},
    {'g', ARG_LINE, 0, "GET", act_get},
    {'p', ARG_LINE, 0, "PUT", act_put},
    {'0', ARG_NONE, 0, "POP", act_pop},
    {'1', ARG_NONE, 1, "POP_MARK", act_pop},
    {'2', ARG_NONE, 0, "DUP", act_dup},
    {'P', ARG_LINE, 0, "PERSID", act_refuse},
    {'i', ARG_LINES, 0, "INST", act_refuse},
    {'o', ARG_NONE, 0, "OBJ", act_refuse},
    {0x82, ARG_U1, 0, "EXT1", act_refuse},
    {0x83, ARG_U2, 0, "EXT2", act_refuse},
    {0x84, ARG_I4, 0, "EXT4", act_refuse},
    {0x97, ARG_NONE, 0, "NEXT_BUFFER", act_refuse},
    {0x98, ARG_NONE, 0, "READONLY_BUFFER", act_refuse},
};

/* ---- decoding ---- */

static bool take(struct cm_pickle *p, uint64_t size, struct cm_str *out)
{
    if (size > p->bytes.size - p->at)
        return false;
    *out = (struct cm_str){p->bytes.data + p->at, (size_t)size};
    p->at += (size_t)size;
    return true;
}

static bool take_number(struct cm_pickle *p, size_t size, uint64_t *out)
{
    struct cm_str bytes;

    *out = 0;
    if (!take(p, size, &bytes))
        return false;
    for (size_t i = size; i-- > 0;)
        *out = *out << 8 | (uint8_t)bytes.data[i];
    return true;
}

static bool take_line(struct cm_pickle *p, struct cm_str *out)
{
    const char *begin = p->bytes.data + p->at;
    const char *end = memchr(begin, '\n', p->bytes.size - p->at);

    if (!end)
        return false;
    *out = (struct cm_str){begin, (size_t)(end - begin)};
    p->at += out->size + 1;
    return true;
}

static bool decode(struct cm_pickle *p, const struct opcode *op, struct decoded *arg)
{
    static const uint8_t sizes[] = {
        [ARG_U1] = 1,   [ARG_U2] = 2,   [ARG_I4] = 4,   [ARG_U4] = 4,  [ARG_U8] = 8,
        [ARG_REAL] = 8, [ARG_LEN1] = 1, [ARG_LEN4] = 4, [ARG_LEN8] = 8};
    uint64_t bits;

    *arg = (struct decoded){.variant = op->variant};
    if (op->argument == ARG_NONE)
        return true;
    if (op->argument == ARG_LINE || op->argument == ARG_LINES)
        return take_line(p, &arg->text) && (op->argument == ARG_LINE || take_line(p, &arg->second));
    if (!take_number(p, sizes[op->argument], &bits))
        return false;
    if (op->argument >= ARG_LEN1)
        return take(p, bits, &arg->text);
    arg->number = op->argument == ARG_I4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    if (op->argument == ARG_REAL) {
        bits = __builtin_bswap64(bits); /* the only big-endian one */
        memcpy(&arg->real, &bits, sizeof arg->real);
    }
    return true;
}

static const struct opcode *find_opcode(uint8_t code)
{
    for (size_t i = 0; i < CM_COUNT(opcodes); i++)
        if (opcodes[i].code == code)
            return &opcodes[i];
    return NULL;
}

static enum cm_status step(struct cm_pickle *p, bool *stopped, struct cm_error *err)
{
    const size_t at = p->at;
    struct decoded arg;

    if (at >= p->bytes.size)
        return cm_fail(err, CM_BAD_MODEL, "the pickle is cut at byte %zu", at);
    const uint8_t code = (uint8_t)p->bytes.data[p->at++];
    const struct opcode *op = find_opcode(code);
    if (!op)
        return cm_fail(err, CM_BAD_MODEL, "byte %zu of the pickle, 0x%02x, is not an opcode", at,
                       code);
    if (!decode(p, op, &arg))
        return cm_fail(err, CM_BAD_MODEL, "the pickle is cut in the %s at byte %zu", op->name, at);
    CM_TRY(
        cm_error_context(err, op->act(p, &arg, err), "%s at byte %zu of the pickle", op->name, at));
    *stopped = op->act == act_stop;
    if (p->stack.count > STACK_MAX || p->made > MADE_MAX)
        return cm_fail(err, CM_LIMIT, "the pickle holds more than %d values",
                       p->made > MADE_MAX ? MADE_MAX : STACK_MAX);
    return CM_OK;
}

enum cm_status cm_pickle_run(struct cm_pickle *p, struct cm_item **out, struct cm_error *err)
{
    bool stopped = false;

    (void)push(p, NULL); /* so that there is a stack to point into */
    p->stack.count = p->memo.count = p->marks.count = 0;
    while (!stopped)
        CM_TRY(step(p, &stopped, err));
    *out = p->stack.items[0];
    return CM_OK;
}
