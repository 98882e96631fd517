/* The template engine: lines, expressions, @let, and what it says of mistakes. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "mlir/lowering/let.h"
#include "mlir/lowering/templates.h"

#include <stdio.h>
#include <string.h>

/* A host with an operand x called %7, a list of two, and a function that emits. */
struct fake_host {
    char text[8192];
    size_t size;
};

static bool fake_name(void *arg, struct cm_str name, struct cm_term *out)
{
    static const struct cm_term two[] = {{.kind = CM_TERM_INT, .i = 5}, {.kind = CM_TERM_NONE}};

    (void)arg;
    if (cm_str_is(name, "x"))
        *out = (struct cm_term){.kind = CM_TERM_VALUE, .i = 7, .text = CM_STR("%7")};
    else if (cm_str_is(name, "sizes"))
        *out = (struct cm_term){.kind = CM_TERM_LIST, .items = two, .count = 2};
    else
        return false;
    return true;
}

static struct cm_term fake_call(void *arg, struct cm_template_run *run, struct cm_str function,
                                const struct cm_term *args, size_t count, bool *known)
{
    struct cm_term out;

    (void)arg;
    if (cm_mlir_literal_call(run, function, args, count, &out))
        return out;
    if (cm_str_is(function, "size") && count == 1) {
        const struct cm_str name = cm_template_fresh(run, "s");
        cm_template_emitf(run, "%.*s = size", CM_STR_FMT(name));
        return cm_term_text(name);
    }
    *known = false;
    return CM_TERM_ABSENT;
}

static const struct cm_template_text *real_macro(void *arg, struct cm_str name)
{
    (void)arg;
    return cm_template_find(cm_mlir_templates, cm_mlir_template_count, name);
}

static void fake_emit(void *arg, struct cm_str line)
{
    struct fake_host *host = arg;

    host->size += (size_t)snprintf(host->text + host->size, sizeof host->text - host->size,
                                   "%.*s\n", (int)line.size, line.data);
}

struct expansion {
    const char *text;
    struct fake_host host;
    enum cm_status status;
    struct cm_error err;
};

static enum cm_status expand_guarded(struct cm_guard *guard, void *arg)
{
    struct expansion *e = arg;
    struct cm_arena arena;
    const struct cm_template_host host = {
        .arg = &e->host,
        .sigil = "%",
        .macro = real_macro,
        .name = fake_name,
        .call = fake_call,
        .emit = fake_emit,
        .directive = cm_mlir_directive,
        .print_float = cm_mlir_print_float,
    };
    const struct cm_template_text text = {"test", e->text, strlen(e->text)};
    const struct cm_template_use use = {
        .text = &text, .prefix = CM_STR("n"), .host = &host, .arena = &arena};

    cm_arena_init(&arena, guard);
    e->status = cm_template_expand(&use, &e->err);
    cm_arena_release(&arena);
    return CM_OK;
}

static struct expansion expand(const char *text)
{
    struct expansion e = {.text = text};
    struct cm_error err = {0};

    CHECK_OK(cm_guarded(0, &err, expand_guarded, &e), &err);
    return e;
}

static void gives(const char *text, const char *wanted)
{
    const struct expansion e = expand(text);

    if (e.status != CM_OK)
        fail_msg("'%s' failed: %s", text, e.err.text);
    CHECK_STRING(e.host.text, wanted);
}

static void fails(const char *text, const char *part)
{
    const struct expansion e = expand(text);

    if (e.status != CM_UNSUPPORTED || !strstr(e.err.text, part))
        fail_msg("'%s': expected '%s', got: %s", text, part, e.err.text);
}

void test_template__names_get_a_prefix_and_operands_their_own(void)
{
    gives("%y = op %x, %t : f32", "%n_y = op %7, %n_t : f32\n");
    gives("%d${1 + 1} = op %x${3}", "%n_d2 = op %n_x3\n");
    gives("op \"100%x\"", "op \"100%x\"\n");
    gives("op ${\"%a * %x + %b\" + 2}", "op %n_a * %7 + %n_b2\n");
    gives("op ${\"5 % of it\"}", "op 5 % of it\n");
    gives("${[\"%d\" + i for i in range(2)]} ${\"%x\"} ${x}", "%n_d0, %n_d1 %7 %7\n");
}

void test_template__comments_go_and_lines_go_on(void)
{
    gives("// nothing\n\na \\\n   b\nc", "a  b\nc\n");
}

void test_template__expressions(void)
{
    static const struct {
        const char *expression, *value;
    } cases[] = {
        {"1 + 2 * 3 - 4", "3"},
        {"-7 / 2", "-4"},
        {"-7 % 3", "2"},
        {"7 / -1", "-7"},
        {"1 < 2 and not 2 <= 1 ? \"yes\" : \"no\"", "yes"},
        {"none == none", "1"},
        {"3 in [1, 2, 3] or nothing", "1"},
        {"known(sizes[1] * 2 + 1)", "0"},
        {"sizes[0]", "5"},
        {"[i * i for i in range(1, 5) if i % 2 == 0]", "4, 16"},
        {"[[j for j in range(i)] for i in range(3)]", ", 0, 0, 1"},
        {"[1, 2, 3][1:]", "2, 3"},
        {"[1, 2, 3][-1]", "3"},
        {"[1] + [2]", "1, 2"},
        {"[0] * 3", "0, 0, 0"},
        {"len(range(4)) + sum([1, 2]) + product([3, 4])", "19"},
        {"min(3, 2) + max(3, 2)", "5"},
        {"join([1, 2], \"x\")", "1x2"},
        {"chars(\"ij->\")", "i, j, -, >"},
        {"len(chars(\"\"))", "0"},
        {"quote(\"parallel\")", "\"parallel\""},
        {"bare(\"u16\") + bare(\"f32\")", "i16f32"},
        {"literal(1, \"f32\")", "1.0"},
        {"literal(1e30, \"f32\")", "1.0000000000000000e+30"},
        {"literal(0.5, \"f64\")", "0.5"},
        {"literal(3, \"i64\")", "3"},
        {"1.5 * 2", "3.0"},
    };

    for (size_t i = 0; i < CM_COUNT(cases); i++) {
        char text[200], wanted[200];
        snprintf(text, sizeof text, "${%s}", cases[i].expression);
        snprintf(wanted, sizeof wanted, "%s\n", cases[i].value);
        if (strstr(cases[i].expression, "1e30")) { /* digits are the C library's */
            CHECK(strstr(expand(text).host.text, "e+30") != NULL);
            CHECK(strstr(expand(text).host.text, "1.0") != NULL);
            continue;
        }
        gives(text, wanted);
    }
}

void test_template__directives_nest(void)
{
    gives("@set n = 2\n@for i in range(n)\n@if i == 0\nfirst\n@elif i == "
          "1\nsecond\n@else\nmore\n@end\n"
          "@end\nend",
          "first\nsecond\nend\n");
    gives("@if false\n@if true\na\n@end\n@else\nb\n@end", "b\n");
}

void test_template__what_a_choice_leaves_out_has_no_effect(void)
{
    gives("${true ? 1 : size(x)}", "1\n");
    gives("${false ? [1][9] : 2}", "2\n");
    gives("op ${size(x)}", "%n_s_1 = size\nop %n_s_1\n");
    gives("op ${[size(x)]}", "%n_s_1 = size\nop %n_s_1\n");
}

void test_template__let_writes_arithmetic(void)
{
    gives("@let f32 %y = %x + 1",
          "%n_v_1 = arith.constant 1.0 : f32\n%n_y = arith.addf %7, %n_v_1 : f32\n");
    gives("@let u8 %y = %x / %x", "%n_y = arith.divui %7, %7 : i8\n");
    gives("@let i1(u32) %y = %a < %b && !(%a == %b)", "%n_v_1 = arith.cmpi ult, %n_a, %n_b : i32\n"
                                                      "%n_v_2 = arith.cmpi eq, %n_a, %n_b : i32\n"
                                                      "%n_v_3 = arith.constant 1 : i1\n"
                                                      "%n_v_4 = arith.xori %n_v_2, %n_v_3 : i1\n"
                                                      "%n_y = arith.andi %n_v_1, %n_v_4 : i1\n");
    gives("@let f32 %y = %x > 0 ? exp(%x) : -inf",
          "%n_v_1 = arith.constant 0.0 : f32\n"
          "%n_v_2 = arith.cmpf ogt, %7, %n_v_1 : f32\n"
          "%n_v_3 = math.exp %7 : f32\n"
          "%n_v_4 = arith.constant 0x7F800000 : f32\n"
          "%n_v_5 = arith.negf %n_v_4 : f32\n"
          "%n_y = arith.select %n_v_2, %n_v_3, %n_v_5 : f32\n");
    gives("@let index %y = index(i32 %a)", "%n_y = arith.index_cast %n_a : i32 to index\n");
    gives(
        "@let f32 %y = f32(index %a)",
        "%n_v_1 = arith.index_cast %n_a : index to i64\n%n_y = arith.sitofp %n_v_1 : i64 to f32\n");
    gives("@let i8 %y = least", "%n_y = arith.constant -128 : i8\n");
    gives("@let i64 %y = most", "%n_y = arith.constant 9223372036854775807 : i64\n");
    gives("@let reassoc f32 %y = %a + %b * max(%a, %b)",
          "%n_v_1 = arith.maximumf %n_a, %n_b : f32\n"
          "%n_v_2 = arith.mulf %n_b, %n_v_1 fastmath<reassoc> : f32\n"
          "%n_y = arith.addf %n_a, %n_v_2 fastmath<reassoc> : f32\n");
    gives("@let reassoc i32 %y = %a + %b", "%n_y = arith.addi %n_a, %n_b : i32\n");
    gives("@let f32 %y = %a", "%n_y = arith.bitcast %n_a : f32 to f32\n");
}

void test_template__macros_give_variables_to_their_caller(void)
{
    gives("@set a = 5\n@do multiplied([2, 3])\n${product_of} ${a}", "6 5\n");
    gives("@do multiplied([2, \"%b\"])\n${product_of}",
          "%n_m1_p0 = arith.constant 1 : index\n"
          "%n_v_3 = arith.constant 2 : index\n"
          "%n_m1_p1 = arith.muli %n_m1_p0, %n_v_3 : index\n"
          "%n_m1_p2 = arith.muli %n_m1_p1, %n_b : index\n"
          "%n_m1_p2\n");
    fails("@set a = 1\n@give a", "@give is for variables of a macro, and 'a' is not one");
}

/* %x is an operand of the template; a macro that calls something so means its own. */
void test_template__names_in_macros_are_not_operands_of_their_caller(void)
{
    const struct expansion e = expand("@do resize_filter(\"linear\", 0, \"%d\", \"%y\")\nop %x");

    CHECK(e.status == CM_OK);
    CHECK(strstr(e.host.text, "%n_m1_x = math.absf %n_d : f64\n") != NULL);
    CHECK(strstr(e.host.text, "op %7\n") != NULL);
}

void test_template__mistakes_are_told_with_their_place(void)
{
    fails("a\n${nothing}", "template 'test', line 2: nothing is called 'nothing'");
    fails("${1 +", "has no '}'");
    fails("${1 1}", "something is left over");
    fails("${unheard(1)}", "'unheard' is not a function");
    fails("${1 / 0}", "division by zero");
    fails("${[1][1]}", "not inside its list");
    fails("${none}", "an absent value");
    fails("@if true\na", "@if has no @end");
    fails("@for in range(2)\n@end", "@for NAME in LIST");
    fails("@for i in 3\n@end", "goes over a list");
    fails("@do unheard(1)", "there is no macro 'unheard'");
    fails("@unheard", "is not a directive");
    fails("@let f33 %y = 1", "a type is not known");
    fails("@let i8 %y = exp(%x)", "is not an operation on i8");
    fails("@let f32 %y = 1 1", "something is left over");
    fails("@let f32 %y = f32(%a)", "the second type is missing");
    fails("@refuse \"it has \" + 3", "it has 3");
}

void test_template__depth_is_limited(void)
{
    char text[600] = "${";

    memset(text + 2, '(', 100);
    text[102] = '1';
    memset(text + 103, ')', 100);
    memcpy(text + 203, "}", 2);
    fails(text, "too deep");
    memset(text, '-', 500);
    memcpy(text, "@let i8 %y = ", 13);
    memcpy(text + 500, "1", 2);
    fails(text, "in '@let");
}
