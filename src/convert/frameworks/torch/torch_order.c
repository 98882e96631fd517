/* The order in which the modules of a network were made, guessed from their names: parameters of a
 * module come before those of modules in it, and modules in the order in which the constructor made
 * them, which for networks that many people use is known. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/torch/torch_names.h"

#include "base/map.h"

enum { TURNS_MAX = 5000, WORK_MAX = 4000000, NAMES_MAX = 8, LISTED_MAX = 64, DEPTH_MAX = 64 };

/* Names of modules or parameters that stand in one module, in their order. A module that has only
 * names of one row has them in that order; where several rows have them, releases differ, and
 * shapes tell. A name before a slash is that of the module. */
static const char *const rows[] = {
    /* parameters */
    "weight bias",
    "gamma beta",
    "weight_g weight_v bias",
    "in_proj_weight in_proj_bias q_proj_weight k_proj_weight v_proj_weight bias_k bias_v",
    "cls_token distillation_token mask_token pos_embed",
    "cls_token mask_token position_embeddings distillation_token",
    "gate_up_proj down_proj",
    /* BERT and its kin */
    "predictions/LayerNorm dense decoder",
    "embeddings embeddings_project encoder layernorm pooler",
    "embeddings layers layernorm pooler",
    "word_embeddings position_embeddings token_type_embeddings LayerNorm",
    "word_embeddings token_type_embeddings LayerNorm position_embeddings",
    "query key value distance_embedding dense LayerNorm",
    "query_proj key_proj value_proj pos_key_proj pos_query_proj",
    "self output",
    "attention output",
    "dense LayerNorm",
    "dense layer_norm decoder",
    "transform decoder",
    "predictions seq_relationship",
    "attention crossattention intermediate output layernorm_before layernorm_after",
    "attention layernorm_before layernorm_after mlp",
    "bert roberta electra vit deit deberta albert pooler pre_classifier lm_head cls predictions "
    "classifier qa_outputs",
    "embedding_hidden_mapping_in albert_layer_groups",
    "full_layer_layer_norm attention ffn ffn_output",
    /* DistilBERT */
    "embeddings transformer",
    "distilbert pre_classifier classifier qa_outputs",
    "distilbert vocab_transform vocab_layer_norm vocab_projector",
    "attention sa_layer_norm ffn output_layer_norm",
    "q_lin k_lin v_lin out_lin",
    "lin1 lin2",
    /* GPT-2, GPT-J, GPT-NeoX, Bloom */
    "wte wpe h ln_f",
    "ln_1 attn ln_2 crossattention ln_cross_attn mlp",
    "c_attn q_attn c_proj",
    "c_fc c_proj",
    "fc_in fc_out",
    "transformer lm_head score classifier",
    "embed_in layers final_layer_norm",
    "gpt_neox embed_out",
    "input_layernorm post_attention_layernorm attention mlp",
    "query_key_value dense",
    "dense_h_to_4h dense_4h_to_h",
    "word_embeddings word_embeddings_layernorm h ln_f",
    "input_layernorm self_attention post_attention_layernorm mlp",
    "self_attention mlp ln_attn ln_mlp input_layernorm post_attention_layernorm",
    /* Llama, Mistral, Qwen, Gemma, Phi */
    "embed_tokens layers norm",
    "embed_tokens layers final_layernorm",
    "self_attn mlp input_layernorm post_attention_layernorm pre_feedforward_layernorm "
    "post_feedforward_layernorm",
    "self_attn block_sparse_moe input_layernorm post_attention_layernorm",
    "q_proj k_proj v_proj o_proj q_norm k_norm",
    "q_proj k_proj v_proj dense",
    "gate_proj up_proj down_proj",
    "gate experts shared_expert shared_expert_gate",
    "w1 w2 w3",
    "model lm_head score classification_head qa_outputs",
    /* BART, OPT, Whisper, CLIP */
    "shared encoder decoder lm_head",
    "encoder decoder",
    "embed_tokens embed_positions layers layernorm_embedding layer_norm",
    "embed_tokens embed_positions project_out project_in final_layer_norm layers",
    "conv1 conv2 embed_positions layers layer_norm",
    "k_proj v_proj q_proj out_proj",
    "self_attn self_attn_layer_norm encoder_attn encoder_attn_layer_norm fc1 fc2 final_layer_norm",
    "dense out_proj",
    "text_model vision_model visual_projection text_projection",
    "embeddings encoder final_layer_norm",
    "embeddings pre_layrnorm encoder post_layernorm",
    "token_embedding position_embedding",
    "patch_embedding position_embedding",
    "self_attn layer_norm1 mlp layer_norm2",
    /* T5 */
    "embed_tokens block final_layer_norm",
    "SelfAttention EncDecAttention DenseReluDense layer_norm",
    "q k v o relative_attention_bias",
    "wi wi_0 wi_1 wo",
    /* vision */
    "patch_embed blocks norm fc_norm head",
    "norm1 attn ls1 norm2 mlp ls2",
    "qkv proj",
    "conv1 bn1 layer1 layer2 layer3 layer4 fc",
    "conv1 bn1 conv2 bn2 conv3 bn3 downsample",
    "features classifier",
    "conv0 norm0 denseblock1 transition1 denseblock2 transition2 denseblock3 transition3 "
    "denseblock4 norm5",
    "norm1 conv1 norm2 conv2",
    "norm conv",
    "conv_proj encoder heads",
    "layers ln",
    "ln_1 self_attention ln_2 mlp",
    /* torch.nn.Transformer */
    "self_attn multihead_attn linear1 linear2 norm1 norm2 norm3",
};

/* Where names go that stand in no row: before all, after all; and what goes before a norm. */
static const char *const early[] = {"embed", "emb", "stem", "backbone", "encoder", "input"};
static const char *const late[] = {"fc", "head", "classifier", "output", "out", "lm_head", "score"};
static const char *const norms[] = {"bn", "norm", "ln"};

struct member {
    struct cm_str name;
    bool is_module;
    size_t what; /* number of a module or of a weight */
    size_t rank; /* in its kind */
};

struct ranked {
    int64_t key;
    size_t which;
};

struct module {
    CM_ARRAY(struct member) members;
    size_t kind;
    const char *row;       /* of its parameters; NULL: none has them */
    struct ranked *ranked; /* room for its members, of one walk */
};

/* Ranks of the names, in one order. */
struct turn {
    size_t ranks[NAMES_MAX];
};

/* Modules whose paths differ in numbers only are made alike. */
struct kind {
    CM_ARRAY(struct cm_str) names; /* of modules in it that are no numbers */
    struct cm_str called;          /* the last name of its path */
    const char *row;               /* of more names than are tried in several orders; NULL: none */
    CM_ARRAY(struct turn) turns;   /* one per order; the first is usual */
    bool is_usual, is_cut;
};

struct cm_torch_order {
    struct cm_arena *arena;
    const struct cm_torch_weight *weights;
    size_t count;
    CM_ARRAY(struct module) modules;
    CM_ARRAY(struct kind) kinds;
    size_t turns; /* 0: too many */
    size_t *now;  /* by kind: which of its orders a walk takes */
    bool is_usual;
};

/* ---- words ---- */

/* The place of name in a row, or -1. */
static int place_in(const char *row, struct cm_str name)
{
    const char *slash = strchr(row, '/');

    row = slash ? slash + 1 : row;
    for (int place = 0; *row; place++) {
        const size_t size = strcspn(row, " ");
        if (cm_str_equal(name, (struct cm_str){row, size}))
            return place;
        row += size + (row[size] == ' ');
    }
    return -1;
}

/* name without the number at its end, and the number (-1: none). */
static struct cm_str split_number(struct cm_str name, int64_t *number)
{
    *number = cm_str_number_at_end(name);
    return (struct cm_str){name.data, name.size - cm_str_digits_at_end(name)};
}

static bool is_number(struct cm_str name)
{
    int64_t number;

    return split_number(name, &number).size == 0 && number >= 0;
}

/* Where a name goes that no row has, as a number; *sure is cleared where it tells nothing. Layers
 * are often numbered: conv1, bn1, conv2, bn2, fc. */
static int64_t guess(struct cm_str name, bool *sure)
{
    int64_t number;
    const struct cm_str stem = split_number(name, &number);

    if (number >= 0 && number < INT64_MAX / 8)
        return 4 * number + CM_STR_AMONG(stem, norms);
    if (CM_STR_AMONG(name, early))
        return -1;
    if (CM_STR_AMONG(name, late))
        return INT64_MAX;
    *sure = false;
    return INT64_MAX / 2;
}

/* Parameters of recurrent layers: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with _reverse
 * after them, layer by layer. */
static bool recurrent_place(struct cm_str name, int64_t *out)
{
    static const char *const heads[] = {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l",
                                        "weight_hr_l"};
    const bool reverse = cm_str_ends(name, "_reverse");
    int64_t layer;

    name.size -= reverse ? 8 : 0;
    for (size_t i = 0; i < CM_COUNT(heads); i++) {
        const size_t size = strlen(heads[i]);
        if (cm_str_starts(name, heads[i]) && cm_str_to_int64(cm_str_from(name, size), &layer) &&
            layer >= 0 && layer < 1000000) {
            *out = 16 * layer + 8 * reverse + (int64_t)i;
            return true;
        }
    }
    return false;
}

/* ---- how the names of one kind may be ordered ---- */

/* The next row from `from` on that has all the names, which stand in a module called so. */
static size_t row_of(size_t from, struct cm_str module, const struct cm_str *names, size_t count)
{
    for (; from < CM_COUNT(rows); from++) {
        const char *slash = strchr(rows[from], '/');
        size_t known = 0;

        if (slash &&
            !cm_str_equal(module, (struct cm_str){rows[from], (size_t)(slash - rows[from])}))
            continue;
        while (known < count && place_in(rows[from], names[known]) >= 0)
            known++;
        if (known == count)
            break;
    }
    return from;
}

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->which < y->which ? -1 : x->which > y->which;
}

static bool may_follow(struct cm_str before, struct cm_str after)
{
    int64_t a, b;
    const struct cm_str stem_a = split_number(before, &a), stem_b = split_number(after, &b);

    return !cm_str_equal(stem_a, stem_b) || a < b;
}

/* All orders of the names in which numbered ones of the same stem stand in order: each place is
 * given in turn to each name that is left. */
static void add_turns(struct cm_arena *arena, struct kind *kind, size_t *ranks, size_t place,
                      unsigned used)
{
    const size_t count = kind->names.count;

    if (kind->turns.count > TURNS_MAX)
        return;
    if (place == count) {
        memcpy(CM_PUSH(arena, &kind->turns)->ranks, ranks, sizeof kind->turns.items->ranks);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bool free = !(used >> i & 1);
        for (size_t k = 0; free && k < count; k++)
            free =
                k == i || used >> k & 1 || may_follow(kind->names.items[i], kind->names.items[k]);
        if (!free)
            continue;
        ranks[i] = place;
        add_turns(arena, kind, ranks, place + 1, used | 1u << i);
    }
}

static void add_turn(struct cm_arena *arena, struct kind *kind, const struct ranked *ranked)
{
    size_t *const turn = CM_PUSH(arena, &kind->turns)->ranks;
    for (size_t i = 0; i < kind->names.count; i++)
        turn[ranked[i].which] = i;
}

static void decide(struct cm_arena *arena, struct kind *kind)
{
    const size_t count = kind->names.count;
    struct ranked ranked[LISTED_MAX];
    size_t ranks[NAMES_MAX] = {0};
    size_t row = 0;

    kind->is_usual = true;
    if (count < 2)
        return;
    while ((row = row_of(row, kind->called, kind->names.items, count)) < CM_COUNT(rows)) {
        for (size_t i = 0; i < count; i++)
            ranked[i] = (struct ranked){place_in(rows[row], kind->names.items[i]), i};
        qsort(ranked, count, sizeof *ranked, by_key);
        kind->row = rows[row++];
        if (count > NAMES_MAX)
            return;
        add_turn(arena, kind, ranked);
    }
    if (kind->turns.count)
        return;
    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){guess(kind->names.items[i], &kind->is_usual), i};
    qsort(ranked, count, sizeof *ranked, by_key);
    for (size_t i = 1; i < count; i++)
        kind->is_usual = kind->is_usual && ranked[i].key != ranked[i - 1].key;
    if (count > NAMES_MAX) {
        kind->is_cut = true;
        return;
    }
    add_turn(arena, kind, ranked);
    add_turns(arena, kind, ranks, 0, 0);
    kind->is_cut = kind->turns.count > TURNS_MAX;
}

/* ---- the tree ---- */

static size_t module_of(struct cm_torch_order *order, struct cm_map *paths, struct cm_map *kinds,
                        struct cm_str path)
{
    bool added;
    uint64_t *found = cm_map_insert(paths, order->arena, path, &added);

    if (!added)
        return (size_t)*found;
    const size_t number = *found = order->modules.count;
    *CM_PUSH(order->arena, &order->modules) = (struct module){0};
    char *alike = cm_arena_alloc(order->arena, path.size + 2);
    size_t size = 0;
    for (size_t i = 0; i < path.size;) {
        struct cm_str name = {path.data + i, 0};
        while (i + name.size < path.size && name.data[name.size] != '.')
            name.size++;
        if (is_number(name))
            alike[size++] = '*';
        else
            for (size_t k = 0; k < name.size; k++)
                alike[size++] = name.data[k];
        alike[size++] = '.';
        i += name.size + 1;
    }
    uint64_t *kind = cm_map_insert(kinds, order->arena, (struct cm_str){alike, size}, &added);
    const struct cm_str name = cm_str_after_last(path, '.');
    if (added) {
        *kind = order->kinds.count;
        *CM_PUSH(order->arena, &order->kinds) = (struct kind){.called = name};
    }
    order->modules.items[number].kind = (size_t)*kind;
    if (path.size == 0)
        return number;
    const size_t parent = module_of(order, paths, kinds, cm_str_before_last(path, '.'));
    struct module *above = &order->modules.items[parent];
    struct kind *of = &order->kinds.items[above->kind];
    size_t rank = 0;
    while (rank < of->names.count && !cm_str_equal(of->names.items[rank], name))
        rank++;
    if (rank == of->names.count && !is_number(name) && rank < LISTED_MAX)
        *CM_PUSH(order->arena, &of->names) = name;
    *CM_PUSH(order->arena, &above->members) = (struct member){name, true, number, rank};
    return number;
}

static void find_row(struct cm_torch_order *order, struct module *module)
{
    struct cm_str names[LISTED_MAX];
    size_t count = 0;

    module->ranked = CM_NEW_ARRAY(order->arena, struct ranked, module->members.count + 1);
    for (size_t i = 0; i < module->members.count && count < LISTED_MAX; i++)
        if (!module->members.items[i].is_module)
            names[count++] = module->members.items[i].name;
    const size_t row = row_of(0, CM_STR(""), names, count);
    module->row = row < CM_COUNT(rows) ? rows[row] : NULL;
    for (size_t i = 0; i < count && count > 1 && !module->row; i++) {
        int64_t place;
        bool sure = true;
        if (!recurrent_place(names[i], &place))
            guess(names[i], &sure);
        order->is_usual = order->is_usual && sure;
        order->turns = sure ? order->turns : 0; /* parameters are not tried in other orders */
    }
}

struct cm_torch_order *cm_torch_order_new(struct cm_arena *arena,
                                          const struct cm_torch_weight *weights, size_t count)
{
    struct cm_torch_order *order = CM_NEW(arena, struct cm_torch_order);
    struct cm_map paths = {0}, kinds = {0};

    *order = (struct cm_torch_order){arena, weights, count, .turns = 1, .is_usual = true};
    module_of(order, &paths, &kinds, CM_STR(""));
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = weights[i].name;
        size_t cut = name.size - cm_str_after_last(name, '.').size, depth = 0;
        for (size_t k = 0; k < cut; k++)
            depth += name.data[k] == '.';
        if (depth > DEPTH_MAX)
            cut = 0;
        const size_t module =
            module_of(order, &paths, &kinds, (struct cm_str){name.data, cut ? cut - 1 : 0});
        *CM_PUSH(arena, &order->modules.items[module].members) =
            (struct member){{name.data + cut, name.size - cut}, false, i, 0};
    }
    for (size_t i = 0; i < order->kinds.count; i++) {
        struct kind *kind = &order->kinds.items[i];
        decide(arena, kind);
        order->is_usual = order->is_usual && kind->is_usual;
        order->turns *= kind->turns.count ? kind->turns.count : 1;
        if (kind->is_cut || order->turns > TURNS_MAX || order->turns > WORK_MAX / (count + 1))
            order->turns = 0;
    }
    for (size_t i = 0; i < order->modules.count; i++)
        find_row(order, &order->modules.items[i]);
    order->now = CM_NEW_ARRAY(arena, size_t, order->kinds.count + 1);
    return order;
}

size_t cm_torch_orders(const struct cm_torch_order *order)
{
    return order->turns ? order->turns : 1;
}

bool cm_torch_order_is_usual(const struct cm_torch_order *order)
{
    return order->is_usual;
}

bool cm_torch_order_is_complete(const struct cm_torch_order *order)
{
    return order->turns > 0;
}

/* ---- walking it ---- */

/* The members of a module, parameters or modules, in their order. */
static size_t rank_members(const struct cm_torch_order *order, const struct module *module,
                           bool modules)
{
    const struct kind *kind = &order->kinds.items[module->kind];
    const char *row = modules ? kind->row : module->row;
    size_t n = 0;

    for (size_t i = 0; i < module->members.count; i++) {
        const struct member *member = &module->members.items[i];
        bool sure;
        int64_t key;

        if (member->is_module != modules)
            continue;
        if (modules && is_number(member->name))
            (void)split_number(member->name, &key);
        else if (modules && kind->turns.count)
            key = (int64_t)kind->turns.items[order->now[module->kind]].ranks[member->rank];
        else if (row)
            key = place_in(row, member->name);
        else if (modules || !recurrent_place(member->name, &key))
            key = guess(member->name, &sure);
        module->ranked[n++] = (struct ranked){key, i};
    }
    if (n)
        qsort(module->ranked, n, sizeof *module->ranked, by_key);
    return n;
}

static void walk_module(const struct cm_torch_order *order, size_t number,
                        struct cm_torch_weight *out, size_t *count)
{
    const struct module *module = &order->modules.items[number];

    for (int modules = 0; modules < 2; modules++) {
        const size_t n = rank_members(order, module, modules);
        for (size_t i = 0; i < n; i++) {
            const struct member *member = &module->members.items[module->ranked[i].which];
            if (modules)
                walk_module(order, member->what, out, count);
            else
                out[(*count)++] = order->weights[member->what];
        }
    }
}

void cm_torch_order_get(const struct cm_torch_order *order, size_t turn,
                        struct cm_torch_weight *out)
{
    size_t count = 0;

    for (size_t i = 0; i < order->kinds.count; i++) {
        const size_t n = order->kinds.items[i].turns.count;
        order->now[i] = n && order->turns ? turn % n : 0;
        turn /= n && order->turns ? n : 1;
    }
    walk_module(order, 0, out, &count);
}
