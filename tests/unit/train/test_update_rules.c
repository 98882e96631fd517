/* How weights are moved: by the rules of each framework, and where a type matters. */
// SPDX-License-Identifier: Apache-2.0
#include "plan_case.h"

#include "tensor/half.h"
#include "train/prepare/prepare.h"

static const char half_line[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "line (float16[n] x) => (float16[n] y) <float16[1] w = {16384}> { y = Mul (x, w) }";

static bool is_near(double actual, double expected)
{
    return fabs(actual - expected) <= 1e-5 * fmax(1, fabs(expected));
}

/* x = 0.0001, w = 2 and t = 1: the gradient is about -0.0002, and a thousandth of its square is
 * nothing in float16. */
static void halves(struct cm_arena *arena)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report;
    struct cm_trainer_scalar scalars[4];
    struct cm_error err = {0};
    const float number = 1e-4F;
    float target = 1;
    uint16_t x;
    const struct cm_shape shape = CM_SHAPE(1);
    const struct cm_tensor feeds[2] = {cm_tensor_borrow(CM_FLOAT16, &shape, &x),
                                       cm_tensor_borrow(CM_FLOAT, &shape, &target)};
    const struct cm_tensor *in[2];

    options.loss = "mse";
    options.optimizer = "adam";
    options.lr = 0.5;
    cm_narrow_store(CM_FLOAT16, &x, 0, 1, &number);
    struct cm_model_file *file = train_model(arena, half_line);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    struct cm_trainer *trainer = train_open(arena, file);
    CHECK(cm_trainer_scalar_count(trainer) <= 4);
    for (size_t i = 0; i < 2; i++)
        in[i] = &feeds[cm_str_is(cm_trainer_input(trainer, i)->name, "target")];
    CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
    CHECK(cm_str_is(scalars[0].name, "loss"));
    CHECK(is_near(scalars[0].value, (2e-4 - 1) * (2e-4 - 1)));
    CHECK(is_near(train_value(trainer, "w", 0), 2.5));
    const int state = cm_trainer_state_find(trainer, CM_STR("w.exp_avg_sq"));
    CHECK_INT(cm_trainer_state(trainer, (size_t)state)->type, CM_FLOAT);
    CHECK(train_value(trainer, "w.exp_avg_sq", 0) > 0);
}

void test_update_rules__float16_is_moved_in_float(void)
{
    check_in_arena(halves);
}

/* Six steps over a, computed by the frameworks themselves (torch 2.15, keras 3.15.1, optax 0.2.8;
 * ONNX Runtime's operator by its formula in double). */
struct rule_case {
    const char *name;
    enum cm_update_rule rule;
    enum cm_arithmetic arithmetic;
    struct {
        double momentum, dampening, beta1, beta2, epsilon, epsilon_root, weight_decay;
        int nesterov, amsgrad, decoupled, maximize, centered, adam_mode;
    } with;
    double expected[4];
    const char *slots[4];
    double kept; /* element 0 of the first slot, at the end */
};

/* clang-format off */
static const struct rule_case rule_cases[] = {
    {"torch SGD", CM_RULE_SGD, CM_LIKE_TORCH, {.weight_decay = 0.05},
     {0.8220112323760986, -1.8823256492614746, 2.980865240097046, 0.23890766501426697}, {0}, 0},
    {"torch SGD momentum", CM_RULE_SGD, CM_LIKE_TORCH, {.momentum = 0.9, .weight_decay = 0.05},
     {0.5087738037109375, -1.550083875656128, 2.859661817550659, -0.503010094165802},
     {"momentum_buffer"}, 1.4072476625442505},
    {"torch SGD dampening", CM_RULE_SGD, CM_LIKE_TORCH, {.momentum = 0.9, .dampening = 0.3},
     {0.6423658132553101, -1.6594723463058472, 3.050015449523926, -0.4687228798866272},
     {"momentum_buffer"}, 0.9359619617462158},
    {"torch SGD nesterov maximize", CM_RULE_SGD, CM_LIKE_TORCH,
     {.momentum = 0.8, .weight_decay = 0.05, .nesterov = 1, .maximize = 1},
     {1.3355107307434082, -2.0433237552642822, 2.5682778358459473, 1.323981523513794},
     {"momentum_buffer"}, -0.7774627804756165},
    {"torch Adam", CM_RULE_ADAM, CM_LIKE_TORCH,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05},
     {0.6830969452857971, -1.7637451887130737, 2.81571102142334, 0.23656880855560303},
     {"exp_avg", "exp_avg_sq"}, 0.22744455933570862},
    {"torch AdamW", CM_RULE_ADAM, CM_LIKE_TORCH,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1},
     {0.685785174369812, -1.7658491134643555, 2.886762857437134, 0.23195292055606842},
     {"exp_avg", "exp_avg_sq"}, 0.19727998971939087},
    {"torch AdamW amsgrad", CM_RULE_ADAM, CM_LIKE_TORCH,
     {.beta1 = 0.8, .beta2 = 0.5, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1, .amsgrad = 1},
     {0.7236552238464355, -1.7813538312911987, 2.863415002822876, 0.25184476375579834},
     {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, 0.19727998971939087},
    {"torch Adagrad", CM_RULE_ADAGRAD, CM_LIKE_TORCH, {.epsilon = 1e-3, .weight_decay = 0.05},
     {0.8265811204910278, -1.9091194868087769, 2.9146134853363037, 0.3842926323413849},
     {"sum"}, 2.167168617248535},
    {"torch RMSprop", CM_RULE_RMSPROP, CM_LIKE_TORCH,
     {.beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.05},
     {0.4533913731575012, -1.72633695602417, 2.749232769012451, 0.13109898567199707},
     {"square_avg"}, 0.1666886806488037},
    {"torch RMSprop centered", CM_RULE_RMSPROP, CM_LIKE_TORCH,
     {.beta2 = 0.9, .epsilon = 1e-3, .momentum = 0.7, .centered = 1},
     {-0.29045701026916504, -1.436427354812622, 2.7076385021209717, -0.5662752389907837},
     {"momentum_buffer", "square_avg", "grad_avg"}, 2.2007453441619873},
    {"Keras SGD", CM_RULE_SGD, CM_LIKE_KERAS, {.weight_decay = 0.05, .decoupled = 1},
     {0.8220112919807434, -1.8823256492614746, 2.9808647632598877, 0.23890769481658936}, {0}, 0},
    {"Keras SGD momentum", CM_RULE_SGD, CM_LIKE_KERAS,
     {.momentum = 0.9, .weight_decay = 0.05, .decoupled = 1},
     {0.563325822353363, -1.6597661972045898, 3.0328469276428223, -0.4861186742782593},
     {"momentum_buffer"}, -0.1210554912686348},
    {"Keras SGD nesterov", CM_RULE_SGD, CM_LIKE_KERAS, {.momentum = 0.8, .nesterov = 1},
     {0.5656479001045227, -1.7658430337905884, 3.165628671646118, -0.4003888964653015},
     {"momentum_buffer"}, -0.09864000231027603},
    {"Keras Adam", CM_RULE_ADAM, CM_LIKE_KERAS, {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3},
     {0.712446928024292, -1.8219588994979858, 2.9747087955474854, 0.24321432411670685},
     {"exp_avg", "exp_avg_sq"}, 0.19728000462055206},
    {"Keras AdamW", CM_RULE_ADAM, CM_LIKE_KERAS,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1},
     {0.687080442905426, -1.766406774520874, 2.887939453125, 0.23228119313716888},
     {"exp_avg", "exp_avg_sq"}, 0.19728000462055206},
    {"Keras AdamW amsgrad", CM_RULE_ADAM, CM_LIKE_KERAS,
     {.beta1 = 0.8, .beta2 = 0.5, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1, .amsgrad = 1},
     {0.7237603068351746, -1.7814035415649414, 2.863569498062134, 0.2518691420555115},
     {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, 0.19728000462055206},
    {"Keras Adagrad", CM_RULE_ADAGRAD, CM_LIKE_KERAS,
     {.epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1},
     {0.8163873553276062, -1.8861169815063477, 2.908996820449829, 0.3753828704357147},
     {"sum"}, 2.009999990463257},
    {"Keras RMSprop", CM_RULE_RMSPROP, CM_LIKE_KERAS, {.beta2 = 0.9, .epsilon = 1e-3},
     {0.4960823059082031, -1.8325566053390503, 3.011876106262207, 0.13770359754562378},
     {"square_avg"}, 0.15563933551311493},
    {"Keras RMSprop centered", CM_RULE_RMSPROP, CM_LIKE_KERAS,
     {.beta2 = 0.9, .epsilon = 1e-3, .momentum = 0.7, .centered = 1, .weight_decay = 0.05, .decoupled = 1},
     {-0.28734129667282104, -1.3907279968261719, 2.681088924407959, -0.5669372081756592},
     {"momentum_buffer", "square_avg", "grad_avg"}, 0.21910086274147034},
    {"optax sgd", CM_RULE_SGD, CM_LIKE_OPTAX, {.momentum = 0},
     {0.8499999642372131, -1.9399999380111694, 3.0699996948242188, 0.24900001287460327}, {0}, 0},
    {"optax sgd momentum", CM_RULE_SGD, CM_LIKE_OPTAX, {.momentum = 0.9},
     {0.5894994735717773, -1.7143429517745972, 3.1216530799865723, -0.48226797580718994},
     {"momentum_buffer"}, 1.210555},
    {"optax sgd nesterov", CM_RULE_SGD, CM_LIKE_OPTAX,
     {.momentum = 0.8, .nesterov = 1, .weight_decay = 0.05},
     {0.48716825246810913, -1.6020344495773315, 2.899759292602539, -0.4126421809196472},
     {"momentum_buffer"}, 1.1315094},
    {"optax adam", CM_RULE_ADAM, CM_LIKE_OPTAX, {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3},
     {0.7111251950263977, -1.821388602256775, 2.9734995365142822, 0.2428799718618393},
     {"exp_avg", "exp_avg_sq"}, 0.19728},
    {"optax adam eps_root", CM_RULE_ADAM, CM_LIKE_OPTAX,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .epsilon_root = 1e-2},
     {0.7171804308891296, -1.8227900266647339, 2.9796347618103027, 0.24346035718917847},
     {"exp_avg", "exp_avg_sq"}, 0.19728},
    {"optax adamw", CM_RULE_ADAM, CM_LIKE_OPTAX,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1},
     {0.6857852339744568, -1.765848994255066, 2.886762857437134, 0.23195284605026245},
     {"exp_avg", "exp_avg_sq"}, 0.19728},
    {"optax nadamw", CM_RULE_ADAM, CM_LIKE_OPTAX,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1, .nesterov = 1},
     {0.6657102704048157, -1.7834192514419556, 2.891897678375244, 0.2321680784225464},
     {"exp_avg", "exp_avg_sq"}, 0.19728},
    {"optax amsgrad", CM_RULE_ADAM, CM_LIKE_OPTAX,
     {.beta1 = 0.8, .beta2 = 0.5, .epsilon = 1e-3, .amsgrad = 1},
     {0.7631626129150391, -1.8473490476608276, 2.949342727661133, 0.29569071531295776},
     {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, 0.19728},
    {"optax adagrad", CM_RULE_ADAGRAD, CM_LIKE_OPTAX, {.epsilon = 1e-3},
     {0.8434311151504517, -1.9436986446380615, 2.996640920639038, 0.3879506587982178}, {"sum"}, 2.01},
    {"optax rmsprop", CM_RULE_RMSPROP, CM_LIKE_OPTAX, {.beta2 = 0.9, .epsilon = 1e-3},
     {0.4960823059082031, -1.8325566053390503, 3.011876106262207, 0.1377035677433014},
     {"square_avg"}, 0.15563934},
    {"optax rmsprop centered", CM_RULE_RMSPROP, CM_LIKE_OPTAX,
     {.beta2 = 0.9, .epsilon = 1e-3, .momentum = 0.7, .centered = 1, .nesterov = 1},
     {-0.42771464586257935, -1.4239412546157837, 2.8338963985443115, -0.6391091346740723},
     {"momentum_buffer", "square_avg", "grad_avg"}, -0.21910085},
    {"ONNX Runtime AdamW 0", CM_RULE_ADAM, CM_LIKE_ORT,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1},
     {0.68578519404544, -1.765849079794206, 2.8867628382814954, 0.23195290712115563},
     {"exp_avg", "exp_avg_sq"}, 0.19728},
    {"ONNX Runtime AdamW 1", CM_RULE_ADAM, CM_LIKE_ORT,
     {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.05, .decoupled = 1, .adam_mode = 1},
     {0.6884969990087031, -1.7672783738545927, 2.8880556304934455, 0.23354579921978852},
     {"exp_avg", "exp_avg_sq"}, 0.19728},
};
/* clang-format on */

static struct cm_plan_group group_of(const struct rule_case *c)
{
    return (struct cm_plan_group){.lr = 0.1,
                                  .initial_lr = NAN,
                                  .momentum = c->with.momentum,
                                  .dampening = c->with.dampening,
                                  .beta1 = c->with.beta1,
                                  .beta2 = c->with.beta2,
                                  .epsilon = c->with.epsilon,
                                  .epsilon_root = c->with.epsilon_root,
                                  .weight_decay = c->with.weight_decay,
                                  .nesterov = c->with.nesterov,
                                  .amsgrad = c->with.amsgrad,
                                  .decoupled = c->with.decoupled,
                                  .maximize = c->with.maximize,
                                  .centered = c->with.centered,
                                  .adam_mode = c->with.adam_mode};
}

static void check_rule(struct cm_arena *arena, const struct rule_case *c)
{
    const struct cm_plan_group group = group_of(c);
    const struct cm_plan plan = {.rule = c->rule,
                                 .arithmetic = c->arithmetic,
                                 .groups = &group,
                                 .n_groups = 1,
                                 .weights = plan_together,
                                 .n_weights = 1};

    struct plan_run run = plan_open(arena, &plan);
    for (int i = 0; i < 6; i++)
        plan_step(&run, "lr");
    for (int i = 0; i < 4; i++)
        if (fabs(train_value(run.trainer, "a", i) - c->expected[i]) > 1e-6)
            fail_msg("%s: a[%d] is %.9g, expected %.9g", c->name, i,
                     train_value(run.trainer, "a", i), c->expected[i]);
    CHECK_INT(cm_trainer_state_find(run.trainer, CM_STR("b")), -1); /* which is not listed */
    for (size_t s = 0; s < run.report.n_states; s++)
        CHECK_STRING(run.report.states[s].slot, c->slots[s]);
    CHECK(!c->slots[run.report.n_states]);
    if (run.report.n_states)
        CHECK_NEAR(train_value(run.trainer, run.report.states[0].state.data, 0), c->kept);
}

static void all_rules(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(rule_cases); i++)
        check_rule(arena, &rule_cases[i]);
}

void test_update_rules__rules_move_weights_as_their_framework_does(void)
{
    check_in_arena(all_rules);
}
