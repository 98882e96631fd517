/* Operator facts: that the generated tables hold what ONNX declares, and that lookup finds it. */
// SPDX-License-Identifier: Apache-2.0
#include "../check.h"

#include "schema/schema.h"

static const struct cm_schema *find(const char *name, int64_t opset)
{
    return cm_schema_find(CM_STR(""), cm_str(name), opset);
}

static const struct cm_type_set *types_named(const struct cm_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->type_count; i++) {
        if (!strcmp(schema->types[i].name, name))
            return &schema->types[i].set;
    }
    return NULL;
}

static const struct cm_schema_default *preset(const struct cm_schema *schema, const char *name)
{
    const struct cm_schema_attr *const attr = cm_schema_find_attr(schema, cm_str(name));

    return attr ? attr->preset : NULL;
}

/* Of domains that the onnx package does not declare. */
static bool is_foreign(const struct cm_schema *schema)
{
    return !strcmp(schema->domain, "ai.cameo") || !strcmp(schema->domain, "com.microsoft");
}

void test_schema__holds_659_versions_of_227_onnx_operators(void)
{
    size_t versions = 0, names = 0;

    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *const row = cm_schema_at(i);
        const struct cm_schema *const before = i > 0 ? cm_schema_at(i - 1) : NULL;
        if (is_foreign(row))
            continue;
        versions++;
        names += !before || strcmp(before->name, row->name) || strcmp(before->domain, row->domain);
    }
    CHECK_INT(versions, 659);
    CHECK_INT(names, 227);
    CHECK(cm_schema_at(cm_schema_count()) == NULL);
}

void test_schema__lists_by_domain_then_name_then_newest_version(void)
{
    for (size_t i = 1; i < cm_schema_count(); i++) {
        const struct cm_schema *const a = cm_schema_at(i - 1), *const b = cm_schema_at(i);
        const int domains = strcmp(a->domain, b->domain), names = strcmp(a->name, b->name);
        CHECK(domains < 0 || (domains == 0 && names < 0) ||
              (domains == 0 && names == 0 && a->since_version > b->since_version));
    }
}

void test_schema__finds_every_version_at_its_own_opset_and_until_the_next(void)
{
    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *const row = cm_schema_at(i);
        const struct cm_str domain = cm_str(row->domain), name = cm_str(row->name);
        const struct cm_schema *const newer = i > 0 ? cm_schema_at(i - 1) : NULL;
        const bool replaced = newer && !strcmp(newer->name, row->name) &&
                              !strcmp(newer->domain, row->domain) &&
                              newer->since_version == row->since_version + 1;

        CHECK(cm_schema_find(domain, name, row->since_version) == row);
        CHECK(cm_schema_find(domain, name, row->since_version + 1) == (replaced ? newer : row));
        const struct cm_schema *const older = cm_schema_find(domain, name, row->since_version - 1);
        CHECK(!older || older == cm_schema_at(i + 1));
    }
}

void test_schema__ai_onnx_and_the_empty_domain_are_one(void)
{
    CHECK(find("Relu", 14) != NULL);
    CHECK(cm_schema_find(CM_STR("ai.onnx"), CM_STR("Relu"), 14) == find("Relu", 14));
    CHECK(cm_schema_find(CM_STR_NONE, CM_STR("Relu"), 14) == find("Relu", 14));
    CHECK(cm_schema_domain_known(CM_STR("ai.onnx")));
    CHECK_INT(cm_schema_newest_opset(CM_STR("ai.onnx")), 28);
}

void test_schema__knows_domains_and_their_newest_opsets(void)
{
    CHECK_INT(cm_schema_newest_opset(CM_STR("")), 28);
    CHECK_INT(cm_schema_newest_opset(CM_STR("ai.onnx.ml")), 5);
    CHECK_INT(cm_schema_newest_opset(CM_STR("ai.onnx.preview.training")), 1);
    CHECK_INT(cm_schema_newest_opset(CM_STR("ai.onnx.preview")), 1);
    CHECK_INT(cm_schema_newest_opset(CM_STR("ai.onnx.training")), 1); /* known, without operators */
    CHECK_INT(cm_schema_newest_opset(CM_STR("com.example")), 0);
    CHECK(!cm_schema_domain_known(CM_STR("com.example")));
    CHECK(cm_schema_domain_known(CM_STR("ai.cameo")));
}

void test_schema__unknown_names_find_nothing(void)
{
    static char long_name[100000];

    memset(long_name, 'R', sizeof(long_name));
    CHECK(find("Relux", 14) == NULL);
    CHECK(find("relu", 14) == NULL);
    CHECK(find("", 14) == NULL);
    CHECK(cm_schema_find(CM_STR("ai.onnx.ml"), CM_STR("Relu"), 14) == NULL);
    CHECK(cm_schema_find(CM_STR("com.example"), CM_STR("Relu"), 14) == NULL);
    CHECK(cm_schema_find(CM_STR(""), (struct cm_str){long_name, sizeof(long_name)}, 14) == NULL);
    CHECK(cm_schema_find(CM_STR(""), (struct cm_str){"Relu\0", 5}, 14) == NULL);
    CHECK(find("Relu", 0) == NULL);
    CHECK(find("Relu", INT64_MIN) == NULL);
    CHECK(find("Gelu", 19) == NULL); /* born in opset 20 */
    CHECK(cm_schema_newest(CM_STR(""), CM_STR("Gelu"))->since_version == 20);
}

void test_schema__relu_14_has_the_types_and_body_onnx_declares(void)
{
    const struct cm_schema *const relu = find("Relu", 20);

    CHECK_INT(relu->since_version, 14);
    CHECK_INT(relu->input_count, 1);
    CHECK_STRING(relu->inputs[0].name, "X");
    CHECK_INT(relu->inputs[0].diff, CM_DIFF_YES);
    const struct cm_type_set *const set = cm_schema_types_of(relu, &relu->inputs[0]);
    CHECK(set == types_named(relu, "T"));
    CHECK_INT(set->row_count, 1);
    CHECK(set->rows[0].elements ==
          (CM_TYPE_BIT(CM_INT8) | CM_TYPE_BIT(CM_INT16) | CM_TYPE_BIT(CM_INT32) |
           CM_TYPE_BIT(CM_INT64) | CM_TYPE_BIT(CM_FLOAT16) | CM_TYPE_BIT(CM_BFLOAT16) |
           CM_TYPE_BIT(CM_FLOAT) | CM_TYPE_BIT(CM_DOUBLE)));
    CHECK(cm_type_set_allows_tensor(set, CM_INT8));
    CHECK(!cm_type_set_allows_tensor(set, CM_UINT8));
    CHECK(!cm_type_set_allows_tensor(set, (enum cm_dtype)1000));
    CHECK(relu->body_count + relu->context_body_count > 0);
    CHECK_INT(relu->body_count, 1);
    CHECK_INT(relu->bodies[0], 18);
    CHECK(relu->infers_shape && !relu->propagates_values);
    CHECK_INT(find("Relu", 6)->body_count + find("Relu", 6)->context_body_count, 0);
}

void test_schema__conv_22_has_an_optional_bias_and_attribute_defaults(void)
{
    const struct cm_schema *const conv = find("Conv", 28);

    CHECK_INT(conv->since_version, 22);
    CHECK_INT(conv->input_count, 3);
    CHECK_INT(conv->inputs[2].kind, CM_PARAM_OPTIONAL);
    CHECK_INT(conv->min_inputs, 2);
    CHECK_INT(conv->max_inputs, 3);
    CHECK(cm_schema_input(conv, 3) == NULL);
    CHECK_INT(conv->attr_count, 6);
    CHECK_STRING(preset(conv, "auto_pad")->s, "NOTSET");
    CHECK_INT(preset(conv, "group")->i, 1);
    CHECK(preset(conv, "dilations") == NULL);
    CHECK_INT(cm_schema_find_attr(conv, CM_STR("dilations"))->kind, CM_SCHEMA_INTS);
    CHECK(cm_schema_find_attr(conv, CM_STR("dilation")) == NULL);
    CHECK(cm_type_set_allows_tensor(types_named(conv, "T"), CM_BFLOAT16));
    CHECK(!cm_type_set_allows_tensor(types_named(find("Conv", 21), "T"), CM_BFLOAT16));
}

void test_schema__clip_moves_its_bounds_from_attributes_to_inputs_at_11(void)
{
    const struct cm_schema *const six = find("Clip", 10), *const eleven = find("Clip", 11);

    CHECK_INT(six->since_version, 6);
    CHECK_INT(six->input_count, 1);
    CHECK(preset(six, "min")->f == -3.4028234663852886e+38f);
    CHECK(preset(six, "max")->f == 3.4028234663852886e+38f);
    CHECK_INT(eleven->input_count, 3);
    CHECK_INT(eleven->attr_count, 0);
    CHECK_STRING(eleven->inputs[1].name, "min");
    CHECK(cm_schema_allows_inputs(eleven, 1) && cm_schema_allows_inputs(eleven, 3));
    CHECK(!cm_schema_allows_inputs(eleven, 0) && !cm_schema_allows_inputs(eleven, 4));
    CHECK_INT(eleven->body_count + eleven->context_body_count, 0);
    CHECK(find("Clip", 13)->context_body_count > 0);
}

void test_schema__dropout_tells_differentiable_operands_apart(void)
{
    const struct cm_schema *const dropout = find("Dropout", 13);

    CHECK_INT(dropout->since_version, 13);
    CHECK_INT(dropout->determinism, CM_RANDOM_OUTPUT);
    CHECK_INT(dropout->inputs[0].diff, CM_DIFF_YES);
    CHECK_INT(dropout->inputs[1].diff, CM_DIFF_NO);
    CHECK_INT(dropout->inputs[2].diff, CM_DIFF_NO);
    CHECK_INT(dropout->outputs[1].diff, CM_DIFF_NO);
    CHECK(cm_schema_types_of(dropout, &dropout->inputs[2]) == types_named(dropout, "T2"));
    CHECK_INT(find("Relu", 14)->determinism, CM_DETERMINISTIC);
    CHECK_INT(find("DepthToSpace", 28)->determinism, CM_RANDOM_UNDECIDED);
}

void test_schema__batch_normalization_has_one_or_all_outputs(void)
{
    const struct cm_schema *const old = find("BatchNormalization", 9);
    const struct cm_schema *const fourteen = find("BatchNormalization", 14);

    CHECK(cm_schema_allows_outputs(fourteen, 1) && cm_schema_allows_outputs(fourteen, 3));
    CHECK(!cm_schema_allows_outputs(fourteen, 0) && !cm_schema_allows_outputs(fourteen, 2));
    CHECK(!cm_schema_allows_outputs(fourteen, 4));
    for (size_t n = 0; n < 8; n++)
        CHECK(cm_schema_allows_outputs(old, n) == (n == 1 || n == 5));
}

void test_schema__lstm_has_its_default_activations_left_open(void)
{
    const struct cm_schema *const lstm = find("LSTM", 22);

    CHECK_INT(lstm->input_count, 8);
    CHECK_INT(lstm->min_inputs, 3);
    CHECK_STRING(preset(lstm, "direction")->s, "forward");
    CHECK_INT(preset(lstm, "input_forget")->i, 0);
    CHECK_INT(preset(lstm, "layout")->i, 0);
    CHECK(preset(lstm, "activations") == NULL);
    CHECK_INT(cm_schema_find_attr(lstm, CM_STR("activations"))->kind, CM_SCHEMA_STRINGS);
    CHECK_INT(lstm->min_outputs, 0);
    CHECK_INT(lstm->max_outputs, 3);
}

void test_schema__list_defaults_keep_their_values(void)
{
    const struct cm_schema_default *const two = preset(find("RNN", 22), "activations");
    const struct cm_schema_default *const axes =
        preset(find("MeanVarianceNormalization", 13), "axes");

    CHECK_INT(two->count, 2);
    CHECK_STRING(two->strings[0], "Tanh");
    CHECK_STRING(two->strings[1], "Tanh");
    CHECK_INT(axes->count, 3);
    CHECK_INT(axes->ints[0], 0);
    CHECK_INT(axes->ints[1], 2);
    CHECK_INT(axes->ints[2], 3);
}

void test_schema__adam_epsilon_is_a_millionth_in_single_precision(void)
{
    const struct cm_schema *const adam =
        cm_schema_newest(CM_STR("ai.onnx.preview.training"), CM_STR("Adam"));

    CHECK(preset(adam, "epsilon")->f == 1e-6f);
    CHECK(preset(adam, "beta")->f == 0.999f);
    CHECK_INT(adam->max_inputs, CM_SCHEMA_UNBOUNDED);
    CHECK_INT(adam->min_inputs, 3);
    CHECK(cm_schema_input(adam, 1000) == &adam->inputs[2]);
    CHECK(adam->inputs[2].mixed);
    CHECK(cm_schema_allows_inputs(adam, 1000));
}

void test_schema__loop_needs_two_operands_though_none_is_required(void)
{
    const struct cm_schema *const loop = find("Loop", 25);

    CHECK_INT(loop->min_inputs, 2);
    CHECK_INT(loop->inputs[2].kind, CM_PARAM_VARIADIC);
    CHECK_INT(loop->inputs[2].min_arity, 0);
    CHECK(cm_schema_find_attr(loop, CM_STR("body"))->required);
    const struct cm_type_set *const v = types_named(loop, "V");
    CHECK(cm_type_set_allows(v, CM_FORM_SEQ, CM_UNDEFINED, CM_UINT2));
    CHECK(cm_type_set_allows(v, CM_FORM_OPTIONAL, CM_UNDEFINED, CM_UINT2));
    CHECK(!cm_type_set_allows(v, CM_FORM_OPTIONAL_SEQ, CM_UNDEFINED, CM_UINT2));
    CHECK(cm_type_set_allows(v, CM_FORM_OPTIONAL_SEQ, CM_UNDEFINED, CM_BFLOAT16));
    CHECK(!cm_type_set_allows(v, CM_FORM_MAP, CM_INT64, CM_FLOAT));
}

void test_schema__maps_have_a_key_and_an_element(void)
{
    const struct cm_schema *const zip_map =
        cm_schema_newest(CM_STR("ai.onnx.ml"), CM_STR("ZipMap"));
    const struct cm_type_set *const out = cm_schema_types_of(zip_map, cm_schema_output(zip_map, 0));
    char text[64];

    CHECK(cm_type_set_allows(out, CM_FORM_SEQ_MAP, CM_STRING, CM_FLOAT));
    CHECK(cm_type_set_allows(out, CM_FORM_SEQ_MAP, CM_INT64, CM_FLOAT));
    CHECK(!cm_type_set_allows(out, CM_FORM_SEQ_MAP, CM_INT32, CM_FLOAT));
    CHECK(!cm_type_set_allows(out, CM_FORM_SEQ_MAP, CM_INT64, CM_DOUBLE));
    cm_type_set_print(out, text, sizeof(text));
    CHECK_STRING(text, "seq(map(int64, float)), seq(map(string, float))");
}

void test_schema__prints_types_cut_to_fit(void)
{
    const struct cm_type_set *const set = types_named(find("Relu", 6), "T");
    char text[64], tight[8] = "sevenchr";

    cm_type_set_print(set, text, sizeof(text));
    CHECK_STRING(text, "float, float16, double");
    cm_type_set_print(set, tight, sizeof(tight));
    CHECK_STRING(tight, "float");
    cm_type_set_print(set, tight, 0);
    CHECK_STRING(tight, "float");
    cm_type_set_print(set, text, 20);
    CHECK_STRING(text, "float and more");
}

void test_schema__fixed_types_are_told_from_variables(void)
{
    const struct cm_schema *const reshape = find("Reshape", 5);
    const struct cm_schema_type *const shape = &reshape->types[cm_schema_input(reshape, 1)->type];

    CHECK(shape->fixed);
    CHECK_STRING(shape->name, "tensor(int64)");
    CHECK(cm_type_set_allows_tensor(&shape->set, CM_INT64));
    CHECK(!cm_type_set_allows_tensor(&shape->set, CM_INT32));
    CHECK(!reshape->types[cm_schema_input(reshape, 0)->type].fixed);
    CHECK(reshape->propagates_values == false);
    CHECK(find("Shape", 15)->propagates_values);
}

void test_schema__deprecated_versions_are_found_and_marked(void)
{
    size_t count = 0;

    for (size_t i = 0; i < cm_schema_count(); i++)
        count += cm_schema_at(i)->deprecated;
    CHECK_INT(count, 5);
    CHECK(find("Upsample", 28)->deprecated);
    CHECK(!find("Upsample", 9)->deprecated);
    CHECK(find("Scatter", 11)->deprecated);
    CHECK(find("GroupNormalization", 18)->deprecated);
    CHECK(!find("GroupNormalization", 21)->deprecated);
    CHECK(find("Upsample", 1)->experimental);
}

void test_schema__our_own_operators_use_the_same_table(void)
{
    const struct cm_schema *const grad =
        cm_schema_newest(CM_STR("ai.cameo"), CM_STR("MaxPoolGrad"));

    CHECK(grad != NULL);
    CHECK_INT(grad->input_count, 3);
    CHECK_STRING(grad->inputs[2].name, "X_shape");
    CHECK(grad->types[grad->inputs[2].type].fixed);
    CHECK(cm_type_set_allows_tensor(types_named(grad, "I"), CM_INT64));
    CHECK_INT(grad->min_inputs, 3);
}

void test_schema__every_row_is_well_formed(void)
{
    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *const row = cm_schema_at(i);
        CHECK(row->min_inputs <= row->max_inputs && row->min_outputs <= row->max_outputs);
        for (size_t k = 0; k < row->input_count; k++) {
            CHECK((size_t)row->inputs[k].type < row->type_count);
            CHECK(row->inputs[k].kind != CM_PARAM_VARIADIC || k + 1 == row->input_count);
        }
        for (size_t k = 0; k < row->output_count; k++)
            CHECK((size_t)row->outputs[k].type < row->type_count);
        for (size_t k = 0; k < row->type_count; k++)
            CHECK(row->types[k].set.row_count > 0 && row->types[k].set.rows[0].elements != 0);
        for (size_t k = 0; k < row->attr_count; k++)
            CHECK(!row->attrs[k].required || !row->attrs[k].preset);
    }
}

void test_schema__guesses_what_was_meant(void)
{
    static char long_name[5000];

    CHECK_STRING(cm_schema_suggest(CM_STR(""), CM_STR("relu"))->name, "Relu");
    CHECK_STRING(cm_schema_suggest(CM_STR(""), CM_STR("MATMUL"))->name, "MatMul");
    CHECK_STRING(cm_schema_suggest(CM_STR(""), CM_STR("Sofmax"))->name, "Softmax");
    CHECK_STRING(cm_schema_suggest(CM_STR(""), CM_STR("BatchNormalisation"))->name,
                 "BatchNormalization");
    CHECK_STRING(cm_schema_suggest(CM_STR(""), CM_STR("Adam"))->domain, "ai.onnx.preview.training");
    CHECK_INT(cm_schema_suggest(CM_STR("ai.onnx"), CM_STR("Cov"))->since_version, 22);
    CHECK(cm_schema_suggest(CM_STR(""), CM_STR("FrobnicateEverything")) == NULL);
    CHECK(cm_schema_suggest(CM_STR(""), CM_STR("")) == NULL);
    memset(long_name, 'a', sizeof(long_name));
    CHECK(cm_schema_suggest(CM_STR(""), (struct cm_str){long_name, sizeof(long_name)}) == NULL);
}

void test_schema__can_be_written_by_hand(void)
{
    static const struct cm_type_row floats[] = {
        {CM_FORM_TENSOR, CM_UNDEFINED, CM_TYPE_BIT(CM_FLOAT) | CM_TYPE_BIT(CM_DOUBLE)}};
    static const struct cm_schema_type types[] = {{.name = "T", .set = {floats, 1}}};
    static const struct cm_schema_param params[] = {{.name = "X", .type = 0}};
    static const struct cm_schema_attr attrs[] = {{"scale", CM_SCHEMA_FLOAT, false, NULL}};
    const struct cm_schema schema = {
        .domain = "com.example",
        .name = "Twice",
        .since_version = 1,
        .inputs = params,
        .input_count = 1,
        .outputs = params,
        .output_count = 1,
        .min_inputs = 1,
        .max_inputs = 1,
        .min_outputs = 1,
        .max_outputs = 1,
        .attrs = attrs,
        .attr_count = 1,
        .types = types,
        .type_count = 1,
    };

    CHECK(cm_schema_allows_inputs(&schema, 1) && !cm_schema_allows_inputs(&schema, 2));
    CHECK(cm_type_set_allows_tensor(cm_schema_types_of(&schema, params), CM_DOUBLE));
    CHECK(cm_schema_find_attr(&schema, CM_STR("scale")) == attrs);
    CHECK(cm_schema_input(&schema, 1) == NULL);
}
