/* Pickles as data: the same values whatever the protocol, and nothing that is not data. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/frameworks/torch/torch_file.h"

/* {'a': [1, -70000, 2.5, None, True, 2**70, -2**70], 't': ('é\n', ()), 'b': b'\xff\0z', 'd':
 * OrderedDict(x=1)}, in protocols 0 to 5. */
#define TEXT(bytes)                                                                                \
    {                                                                                              \
        "" bytes, sizeof(bytes) - 1                                                                \
    }
static const struct cm_str protocols[] = {
    TEXT(
        "(dp0\012Va\012p1\012(lp2\012I1\012aI-70000\012aF2."
        "5\012aNaI01\012aL1180591620717411303424L\012aL-1180591620717411303424L\012asVt\012p3\012("
        "V\351\\u000a\012p4\012(ttp5\012sVb\012p6\012c_codecs\012encode\012p7\012("
        "V\377\\u0000z\012p8\012Vlatin1\012p9\012tp10\012Rp11\012sVd\012p12\012ccollections\012Orde"
        "redDict\012p13\012(tRp14\012Vx\012p15\012I1\012ss."),
    TEXT("}q\000(X\001\000\000\000aq\001]q\002(K\001J\220\356\376\377G@"
         "\004\000\000\000\000\000\000NI01\012L1180591620717411303424L\012L-"
         "1180591620717411303424L\012eX\001\000\000\000tq\003(X\003\000\000\000\303\251\012q\004)"
         "tq\005X\001\000\000\000bq\006c_codecs\012encode\012q\007("
         "X\004\000\000\000\303\277\000zq\010X\006\000\000\000latin1q\011tq\012Rq\013X\001\000\000"
         "\000dq\014ccollections\012OrderedDict\012q\015)Rq\016X\001\000\000\000xq\017K\001su."),
    TEXT("\200\002}(X\001\000\000\000a](K\001J\220\356\376\377G@"
         "\004\000\000\000\000\000\000N\210\212\011\000\000\000\000\000\000\000\000@"
         "\212\011\000\000\000\000\000\000\000\000\300eX\001\000\000\000tX\003\000\000\000\303"
         "\251\012)\206X\001\000\000\000bc_"
         "codecs\012encode\012X\004\000\000\000\303\277\000zX\006\000\000\000latin1\206RX\001\000"
         "\000\000dccollections\012OrderedDict\012)RX\001\000\000\000xK\001su."),
    TEXT("\200\003}q\000(X\001\000\000\000aq\001]q\002(K\001J\220\356\376\377G@"
         "\004\000\000\000\000\000\000N\210\212\011\000\000\000\000\000\000\000\000@"
         "\212\011\000\000\000\000\000\000\000\000\300eX\001\000\000\000tq\003X\003\000\000\000"
         "\303\251\012q\004)"
         "\206q\005X\001\000\000\000bq\006C\003\377\000zq\007X\001\000\000\000dq\010ccollections"
         "\012OrderedDict\012q\011)Rq\012X\001\000\000\000xq\013K\001su."),
    TEXT(
        "\200\004\225x\000\000\000\000\000\000\000}\224(\214\001a\224]\224(K\001J\220\356\376\377G@"
        "\004\000\000\000\000\000\000N\210\212\011\000\000\000\000\000\000\000\000@"
        "\212\011\000\000\000\000\000\000\000\000\300e\214\001t\224\214\003\303\251\012\224)"
        "\206\224\214\001b\224C\003\377\000z\224\214\001d\224\214\013collections\224\214\013Ordered"
        "Dict\224\223\224)R\224\214\001x\224K\001su."),
    TEXT(
        "\200\005\225x\000\000\000\000\000\000\000}\224(\214\001a\224]\224(K\001J\220\356\376\377G@"
        "\004\000\000\000\000\000\000N\210\212\011\000\000\000\000\000\000\000\000@"
        "\212\011\000\000\000\000\000\000\000\000\300e\214\001t\224\214\003\303\251\012\224)"
        "\206\224\214\001b\224C\003\377\000z\224\214\001d\224\214\013collections\224\214\013Ordered"
        "Dict\224\223\224)R\224\214\001x\224K\001su."),
};

static void reads_protocols(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(protocols); i++) {
        struct cm_item *item;
        struct cm_error err;

        CHECK_OK(cm_pickle_read(arena, protocols[i], &item, &err), &err);
        const struct cm_item *bytes = cm_item_get(item, "b");
        CHECK_INT(bytes->kind, CM_ITEM_BYTES);
        CHECK(cm_str_equal(bytes->text, CM_STR("\377\0z")));
        CHECK_STR(cm_item_json(arena, cm_item_get(item, "a"), 0),
                  "[1, -70000, 2.5, null, true, \"1180591620717411303424\", "
                  "\"-1180591620717411303424\"]");
        CHECK_STR(cm_item_json(arena, cm_item_get(item, "t"), 0), "[\"é\\u000a\", []]");
        CHECK_STR(cm_item_json(arena, cm_item_get(item, "d"), 0), "{\"x\": 1}");
    }
}

void test_pickle__reads_every_protocol(void)
{
    check_in_arena(reads_protocols);
}

static void cuts_protocols(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(protocols); i++)
        for (size_t size = 0; size < protocols[i].size; size++) {
            struct cm_item *item;
            struct cm_error err;

            CHECK_FAILS(
                cm_pickle_read(arena, (struct cm_str){protocols[i].data, size}, &item, &err),
                CM_BAD_MODEL, &err, "the pickle is cut");
        }
}

void test_pickle__refuses_one_cut_anywhere(void)
{
    check_in_arena(cuts_protocols);
}

static void keeps_objects(struct cm_arena *arena)
{
    struct cm_item *item;
    struct cm_error err;

    /* os.system('true') with a state: an object, of which nobody has been called */
    CHECK_OK(cm_pickle_read(arena, CM_STR("cos\nsystem\n(S'true'\ntR}S'k'\nI01\nsb."), &item, &err),
             &err);
    CHECK(cm_item_is_a(item, "os.system") && cm_item_is_a(item, "system"));
    CHECK_STR(item->entries.items[0].value->text, "true");
    CHECK(cm_item_get(item, "k")->truth);
    /* a class made from dict and one made from list */
    CHECK_OK(cm_pickle_read(arena, CM_STR("cm\nC\n)\201X\1\0\0\0kK\7s."), &item, &err), &err);
    CHECK_INT(cm_item_get(item, "k")->number, 7);
    CHECK_OK(cm_pickle_read(arena, CM_STR("cm\nC\n)\201K\7a."), &item, &err), &err);
    CHECK_INT(cm_item_at(item->state, 0)->number, 7);
}

void test_pickle__keeps_objects_as_names(void)
{
    check_in_arena(keeps_objects);
}

static void reads_numpy(struct cm_arena *arena)
{
    struct cm_item *item;
    struct cm_error err;

    CHECK_OK(cm_pickle_read(arena,
                            CM_STR("\200\2cnumpy._core.multiarray\nscalar\ncnumpy\ndtype\n"
                                   "X\2\0\0\0i2\211\210\207RC\2\376\377\206R."),
                            &item, &err),
             &err);
    CHECK_INT(item->kind, CM_ITEM_INT);
    CHECK_INT(item->number, -2);
    CHECK_OK(cm_pickle_read(arena,
                            CM_STR("\200\2cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
                                   "K\0\205C\1b\207R(K\1K\2K\1\206cnumpy\ndtype\n"
                                   "X\2\0\0\0u1\211\210\207R\211C\2\5\6tb."),
                            &item, &err),
             &err);
    CHECK_INT(item->kind, CM_ITEM_TENSOR);
    CHECK_INT(item->tensor->shape.rank, 2);
    CHECK_INT(item->tensor->pieces.items[0].bytes.data[1], 6);
}

void test_pickle__reads_numbers_and_arrays_of_numpy(void)
{
    check_in_arena(reads_numpy);
}

static void refuses(struct cm_arena *arena)
{
    static const struct {
        struct cm_str bytes;
        enum cm_status status;
        const char *part;
    } cases[] = {
        {TEXT("(ios\nsystem\n."), CM_UNSUPPORTED, "INST at byte 1 of the pickle"},
        {TEXT("(cos\nsystem\no."), CM_UNSUPPORTED, "OBJ at byte 12"},
        {TEXT("\202\1."), CM_UNSUPPORTED, "EXT1 at byte 0"},
        {TEXT("\200\5\227."), CM_UNSUPPORTED, "NEXT_BUFFER at byte 2"},
        {TEXT("\200\6N."), CM_UNSUPPORTED, "protocol 6"},
        {TEXT("NQ."), CM_UNSUPPORTED, "BINPERSID at byte 1"},
        {TEXT("\377."), CM_BAD_MODEL, "0xff, is not an opcode"},
        {TEXT("."), CM_BAD_MODEL, "0 values are on the stack"},
        {TEXT("NN."), CM_BAD_MODEL, "2 values are on the stack"},
        {TEXT("N(a."), CM_BAD_MODEL, "the stack holds too little"},
        {TEXT("h\0."), CM_BAD_MODEL, "memo number 0 was never put"},
        {TEXT("Nr\377\377\377\377."), CM_BAD_MODEL, "memo number 4294967295 is out of range"},
        {TEXT("}(Nu."), CM_BAD_MODEL, "a key has no value"},
        {TEXT("K\1K\2a."), CM_BAD_MODEL, "what it adds to is not a list"},
        {TEXT("K\1)R."), CM_BAD_MODEL, "what is called is not a name"},
        {TEXT("X\377\377\377\177a."), CM_BAD_MODEL, "cut in the BINUNICODE at byte 0"},
        {TEXT("ctorch._utils\n_rebuild_tensor_v2\n)R."), CM_BAD_MODEL, "wrong arguments"},
        {TEXT("ctorch._utils\n_rebuild_sparse_tensor\n)R."), CM_UNSUPPORTED, "to_dense()"},
    };

    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        struct cm_item *item;
        struct cm_error err;

        CHECK_FAILS(cm_pickle_read(arena, cases[i].bytes, &item, &err), cases[i].status, &err,
                    cases[i].part);
    }
}

void test_pickle__refuses_what_is_not_data(void)
{
    check_in_arena(refuses);
}
