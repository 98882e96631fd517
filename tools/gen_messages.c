/* Writes the structs of ONNX's messages and the rows that describe them: gen_messages STRUCTS.h
 * TABLE.c data/onnx.messages */
// SPDX-License-Identifier: Apache-2.0
#include "gen_reader.h"

enum { MAX_MESSAGES = 64, MAX_FIELDS = 32, LINE_SIZE = 256 };

struct field {
    long long number;
    char *member, *type, *constant;
    char suffix; /* '*': one message, '[': a list of them, 0: no message */
    bool oneof;
};

struct message {
    char *proto, *name, *list, *like;
    struct field fields[MAX_FIELDS];
    int count;
    char *extra; /* a member that is no field */
};

static struct message messages[MAX_MESSAGES];
static int message_count;

/* Types of fields that hold no messages: the word, the C type, the kind. */
static const struct {
    const char *word, *type, *kind;
} plain[] = {
    {"int64", "int64_t", "INT64"},
    {"int32", "int32_t", "INT32"},
    {"float", "float", "FLOAT"},
    {"str", "struct cm_str", "STR"},
    {"int64s", "struct cm_int64s", "INT64S"},
    {"floats", "struct cm_floats", "FLOATS"},
    {"strs", "struct cm_strs", "STRS"},
    {"varints", "struct cm_packed", "PACKED_VARINT"},
    {"packed4", "struct cm_packed", "PACKED_4"},
    {"packed8", "struct cm_packed", "PACKED_8"},
};

static int find_plain(const char *word)
{
    for (int i = 0; i < (int)(sizeof plain / sizeof plain[0]); i++)
        if (strcmp(plain[i].word, word) == 0)
            return i;
    return -1;
}

static const struct message *find_message(const char *name)
{
    for (int m = 0; m < message_count; m++)
        if (strcmp(messages[m].name, name) == 0)
            return &messages[m];
    return NULL;
}

/* message PROTO NAME [list LIST] [like NAME] */
static struct message *read_head(struct reader *r)
{
    struct message *const message = &messages[message_count++];

    if (message_count > MAX_MESSAGES)
        die(r, "there are more than %d messages", MAX_MESSAGES);
    message->proto = word(r);
    message->name = word(r);
    if (accept_word(r, "list"))
        message->list = word(r);
    if (accept_word(r, "like"))
        message->like = word(r);
    expect_end(r);
    return message;
}

static char *default_constant(const struct message *message, const struct field *field)
{
    struct text text = {0};

    text_print(&text, "CM_%s_%s", message->name, field->member);
    for (size_t i = 0; i < text.size; i++)
        text.data[i] = (char)toupper((unsigned char)text.data[i]);
    return text.data;
}

/* NUMBER MEMBER TYPE [oneof] [as CONSTANT] */
static void read_field(struct reader *r, struct message *message)
{
    struct field *const field = &message->fields[message->count++];

    if (message->count > MAX_FIELDS)
        die(r, "there are more than %d fields", MAX_FIELDS);
    field->number = integer(r, 1, 1 << 29);
    field->member = word(r);
    field->type = word(r);
    if (accept(r, '*')) {
        field->suffix = '*';
    } else if (accept(r, '[')) {
        expect(r, ']');
        field->suffix = '[';
    } else if (find_plain(field->type) < 0) {
        die(r, "unknown type '%s'", field->type);
    }
    field->oneof = accept_word(r, "oneof");
    field->constant = accept_word(r, "as") ? word(r) : default_constant(message, field);
    expect_end(r);
}

static void read_messages(const char *path)
{
    struct reader r = {.path = path};
    FILE *const file = fopen(path, "r");
    char line[LINE_SIZE];
    struct message *message = NULL;

    if (!file)
        die(&r, "%s", strerror(errno));
    while (fgets(line, sizeof line, file)) {
        r.line++;
        r.at = line;
        line[strcspn(line, "#\n")] = '\0';
        if (at_end(&r))
            continue;
        if (accept_word(&r, "message"))
            message = read_head(&r);
        else if (!message || message->like)
            die(&r, "expected 'message'");
        else if (accept_word(&r, "and"))
            message->extra = copy(r.at, strlen(r.at));
        else
            read_field(&r, message);
    }
    fclose(file);
}

/* ---- writing ---- */

static void put_member(struct text *out, const struct field *field)
{
    const struct message *const child = field->suffix ? find_message(field->type) : NULL;

    if (!field->suffix)
        text_print(out, "    %s %s;\n", plain[find_plain(field->type)].type, field->member);
    else if (!child)
        die(NULL, "field '%s' is of an unknown message '%s'", field->member, field->type);
    else if (field->suffix == '*')
        text_print(out, "    struct cm_%s_proto *%s;\n", child->like ? child->like : child->name,
                   field->member);
    else if (child->list)
        text_print(out, "    struct cm_%s %s;\n", child->list, field->member);
    else
        text_print(out, "    CM_LIST(struct cm_%s_proto) %s;\n", child->name, field->member);
}

static void put_struct(struct text *out, const struct message *message)
{
    text_print(out, "struct cm_%s_proto { /* %s */\n    struct cm_msg msg;\n", message->name,
               message->proto);
    for (int f = 0; f < message->count; f++)
        put_member(out, &message->fields[f]);
    if (message->extra)
        text_print(out, "    %s;\n", message->extra);
    text_print(out, "};\nenum {\n");
    for (int f = 0; f < message->count; f++)
        text_print(out, "    %s,\n", message->fields[f].constant);
    text_print(out, "};\n\n");
}

static void put_structs(struct text *out)
{
    for (int m = 0; m < message_count; m++) {
        text_print(out, "extern const struct cm_message_info cm_%s_info;\n", messages[m].name);
        if (!messages[m].like)
            text_print(out, "struct cm_%s_proto;\n", messages[m].name);
    }
    for (int m = 0; m < message_count; m++)
        if (messages[m].list)
            text_print(out,
                       "struct cm_%s {\n    struct cm_%s_proto *items;\n    size_t count;\n};\n",
                       messages[m].list, messages[m].name);
    for (int m = 0; m < message_count; m++)
        if (!messages[m].like)
            put_struct(out, &messages[m]);
}

static void put_row(struct text *out, const struct message *message, const struct field *field)
{
    const char *const kind = field->suffix == '*'   ? "MESSAGE"
                             : field->suffix == '[' ? "MESSAGES"
                                                    : plain[find_plain(field->type)].kind;

    text_print(out, "    [%s] = {%lld, CM_FIELD_%s, \"%s\", offsetof(struct cm_%s_proto, %s), ",
               field->constant, field->number, kind, field->member, message->name, field->member);
    if (field->suffix)
        text_print(out, "&cm_%s_info", field->type);
    else
        text_print(out, "NULL");
    text_print(out, ", %d},\n", field->oneof);
}

static void put_table(struct text *out)
{
    for (int m = 0; m < message_count; m++) {
        const struct message *const message = &messages[m];
        const char *const rows = message->like ? message->like : message->name;
        if (!message->like) {
            text_print(out, "static const struct cm_field_info %s_fields[] = {\n", rows);
            for (int f = 0; f < message->count; f++)
                put_row(out, message, &message->fields[f]);
            text_print(out, "};\n");
        }
        text_print(out,
                   "const struct cm_message_info cm_%s_info = {\"%s\", sizeof(struct cm_%s_proto), "
                   "%s_fields, (int)CM_COUNT(%s_fields)};\n",
                   message->name, message->proto, rows, rows, rows);
    }
}

static void save(const char *path, const struct text *text)
{
    const struct reader r = {.path = path};
    FILE *const file = fopen(path, "w");

    if (!file || fwrite(text->data, 1, text->size, file) != text->size || fclose(file))
        die(&r, "%s", strerror(errno));
}

int main(int argc, char **argv)
{
    struct text structs = {0}, table = {0};

    if (argc != 4) {
        fputs("usage: gen_messages STRUCTS.h TABLE.c data/onnx.messages\n", stderr);
        return 2;
    }
    read_messages(argv[3]);
    text_print(&structs, "/* Made by tools/gen_messages.c from data/onnx.messages. */\n");
    text_print(&table, "/* Made by tools/gen_messages.c from data/onnx.messages. */\n"
                       "#include \"onnx/descriptor.h\"\n\n");
    put_structs(&structs);
    put_table(&table);
    save(argv[1], &structs);
    save(argv[2], &table);
    return 0;
}
