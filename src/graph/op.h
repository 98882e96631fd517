/* What an operator provides: the one contract between operators and engines. Operators include this
 * and nothing of an engine; engines include this and no operator.
 *
 * A struct cm_op says what one operator means, in its newest version: how types follow, how results
 * are computed, how gradients flow, which body of simpler operators it stands for. Any part may be
 * absent; then the function body is used, and without one the user is told what is missing.
 * docs/adding-an-operator.md walks through a whole one. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_OP_H
#define CM_GRAPH_OP_H

#include "graph/builder.h"
#include "graph/dims/dim_math.h"
#include "graph/graph.h"

struct cm_infer;
struct cm_call;
struct cm_grad;
struct cm_body;
struct cm_require;

typedef enum cm_status cm_infer_fn(struct cm_infer *in);
typedef enum cm_status cm_prepare_fn(struct cm_call *call);
typedef enum cm_status cm_run_fn(struct cm_call *call);
typedef enum cm_status cm_grad_fn(struct cm_grad *g);
typedef bool cm_grad_fits_fn(const struct cm_node *node);
typedef enum cm_status cm_body_fn(struct cm_body *b);
typedef void cm_require_fn(struct cm_require *r); /* graph/require.h */

enum cm_effect {
    CM_RANDOM = 1, /* draws from cm_call_random: never duplicated, folded, merged or recomputed */
    CM_OUTPUT_SIZE_AT_RUN = 2, /* run allocates its outputs with cm_call_allocate */
    CM_REPLACED = 4,           /* a pass puts other nodes in its place before anything runs */
    CM_REGION = 8, /* stands for its one body, a closed graph: made by passes, never read from a
                      file. The executor runs it by a kernel that takes it, else step by step */
    CM_WHOLE_MODEL = 16, /* names nodes of its own in messages: it is not blamed for them */
};

/* How the memory of an output may relate to that of an input. */
enum cm_sharing {
    CM_SHARE_NOTHING,
    CM_SHARE_OVERWRITE, /* may be written over the input, if nobody else needs that: same size, read
                           before written, element by element */
    CM_SHARE_VIEW,      /* is the input's bytes under another shape; run is not called when they are
                           shared */
};
typedef enum cm_sharing cm_share_fn(const struct cm_node *node, int output, int input);

/* Of an operator that leaves elements out: where in input 0 those of an output begin, counted in
 * elements, if they lie there one after the other, in their order; -1: they do not, or nobody knows
 * yet. Asked when the operator is prepared; run is not called for outputs that are views so. */
typedef int64_t cm_stretch_fn(const struct cm_call *call, int output);

/* Which memory layouts a kernel takes and gives. */
enum cm_layout_rule {
    CM_LAYOUT_PLAIN = 0, /* row-major in, row-major out */
    CM_LAYOUT_SAME,      /* any, the same for all operands and results: element by element */
    CM_LAYOUT_CHOSEN,    /* prepare says with cm_call_want_layout and cm_call_give_layout */
};

/* ---- Elementwise operators: output 0 from all operands, broadcast, element by element. ---- */

enum { CM_ELEMENT_PARAMETERS = 4 };

/* A run of elements on its way through an operator. Operand i is `count` elements, or one that
 * repeats where step[i] is 0; NULL where absent. If none has step 1, count is 1. Narrow floats
 * (float16, float8, ..) come and leave as float: whoever walks the tensors converts them, and
 * rounds after each operator. */
struct cm_elements {
    int64_t count;
    int n_in;
    const void *const *in;
    const int64_t *step; /* 1 or 0 */
    void *out; /* may be the memory of an operand with step 1 whose elements are as wide */
};

/* How one node computes its elements: found once, run for every block of them. */
struct cm_element_loop {
    void (*run)(const struct cm_element_loop *loop, const struct cm_elements *elements);
    const void *arg;                 /* what run must know: a row of a table, one of its loops */
    double p[CM_ELEMENT_PARAMETERS]; /* attributes as numbers */
};

/* Fills loop for a node whose operands and result have these element types (an absent operand
 * CM_UNDEFINED); false: with these types the node has no such loop. */
typedef bool cm_elementwise_fn(const struct cm_node *node, const enum cm_dtype *in,
                               enum cm_dtype out, struct cm_element_loop *loop);

/* ---- Facts: what other folders must know of an operator, so that they need not know its name.
 * ----
 */

/* How much a run of a node handles, in elements. */
struct cm_amount {
    double in, out; /* of all operands, of all results */
    double chars;   /* characters of the strings among the operands */
    double all;     /* the element counts of the operands, multiplied */
    double two;     /* the two largest of these counts, multiplied */
};
/* The elements that a run reads and writes and the products that it adds up, at most. */
typedef double cm_work_fn(const struct cm_node *node, const struct cm_amount *amount);
cm_work_fn cm_work_linear;  /* each element a few times */
cm_work_fn cm_work_product; /* a matrix product */
cm_work_fn cm_work_any;     /* each element with each other: what an operator without a rule gets */

/* Floating-point operations of the products in a run, a multiplication and an addition each
 * counted; what else an operator does to an element is not. Shapes are those of the run; NULL where
 * absent. */
typedef double cm_flops_fn(const struct cm_node *node, const struct cm_tensor *const *in, int n_in,
                           const struct cm_tensor *const *out, int n_out);
cm_flops_fn cm_flops_conv; /* each result: one product with the weights (input 1) of its channel */

/* What training changes. A mode switches it on: an operand, or an attribute. */
struct cm_training_form {
    int mode_input; /* the last operand, a boolean scalar, absent: off; 0: no such operand */
    const char *mode_attribute;              /* an integer, absent: 0, off; NULL: none */
    int statistics_input, statistics_output; /* the first running statistic, and its next value */
    int n_statistics;
    /* Of an operator that draws only in training mode: the output that says what was drawn, and a
     * body of standard operators for the others, which finds that output in struct cm_body.out. */
    int draw_output;
    cm_body_fn *from_draw;
};

/* Operands that are compared with each other as scores of classes and class numbers. */
struct cm_class_labels {
    int scores, labels;
    int class_axis;      /* of the scores */
    const char *ignored; /* attribute: a label that stands for no class; NULL: none */
};

/* How tensors that a layer learns enter a node, where their place alone does not tell. */
enum cm_entry {
    CM_ENTERS_BY_PLACE = 0, /* an operand of layer.weights is one */
    CM_ENTERS_AS_SHIFT,     /* if it is broadcast over the samples of the other operand .. */
    CM_ENTERS_AS_SCALE,     /* .. and the same for a factor */
    CM_ENTERS_AS_TABLE,     /* operand 0, of which operand 1 names rows */
    CM_ENTERS_AS_PART,      /* beside the other operands, as a token at the head of a sequence */
    CM_ENTERS_AFTER_NORM,   /* operands 1 and 2 scale and shift what the node has normalized */
};

/* An operand whose elements are positions in another one. */
struct cm_indexing {
    int indices, table;
    const char *axis; /* attribute: the axis of the table; NULL: several axes, each from 0 on */
};

/* The operand of which a body's input holds a slice at a time; -1: of none. */
typedef int cm_sliced_fn(const struct cm_node *node, size_t body, size_t input);

/* The output of a body that is its input's value in the next iteration, where the operand of the
 * input's number is the first value; -1: of none. */
typedef int cm_next_fn(const struct cm_node *node, size_t input);

/* What an operator is. The functions say what it means; the groups after `arg` are facts that other
 * folders read instead of its name. An absent function or fact is always the safe answer. */
struct cm_op {
    const char *domain, *name; /* as in the schema table; domain "" is ai.onnx */
    cm_infer_fn *infer;        /* types, shapes, known values of the outputs */
    cm_prepare_fn
        *prepare; /* optional: reads attributes, asks for scratch memory, packs, chooses layouts */
    cm_run_fn *run;   /* reference kernel, every legal input; does not allocate */
    cm_grad_fn *grad; /* emits nodes computing input gradients; cm_grad_none: none, on purpose */
    cm_grad_fits_fn
        *grad_fits;   /* absent: grad is for every node; else the body of others is used */
    cm_body_fn *body; /* builds a body that depends on attributes, types, present operands */
    cm_require_fn
        *require; /* what it refuses when it runs and its body does not; absent: nothing */
    cm_elementwise_fn *elementwise; /* set: it is elementwise; says which loop computes it */
    unsigned effects;               /* enum cm_effect */
    const void *arg;                /* what differs within a family */

    /* How outputs and operands lie in memory. */
    struct {
        cm_share_fn *share;     /* absent: outputs share nothing */
        cm_stretch_fn *stretch; /* absent: no output is a stretch of an input */
        enum cm_layout_rule layouts;
    } memory;
    /* How much a run computes. */
    struct {
        cm_work_fn *work;   /* absent: cm_work_any */
        cm_flops_fn *flops; /* absent: it has no products */
    } cost;
    const struct cm_training_form *training; /* absent: the same in training */
    /* Where the operator takes the tensors that a layer learns. */
    struct {
        unsigned weights;    /* CM_OPERAND(i): a layer's weight, bias, scale, shift or table */
        enum cm_entry entry; /* how it enters */
        int gates; /* of a recurrent layer: its gates, each a block of rows in operands 1 to 3 in
                      ONNX's order (4: i o f c, 3: z r h); absent: it is none */
    } layer;
    /* Where the elements of the outputs come from. */
    struct {
        bool kept;    /* output 0 has the elements of input 0, each once, as far as its type can */
        bool is_copy; /* output 0 is input 0 under another name */
        bool is_constant;     /* the result is what an attribute says: value, value_float, .. */
        uint32_t picked_from; /* bit i: outputs hold elements of input i as they are, some left out
                                 or repeated; absent: those of no input */
        const struct cm_indexing *indexing; /* absent: no operand holds positions */
        const char *zero_attribute;         /* a tensor; absent: a float 0 */
        bool is_quantized;                  /* it makes or reads quantized values */
    } values;
    /* Which numbers are scores, labels or probabilities of classes. */
    struct {
        const struct cm_class_labels *labels; /* absent: no operand holds class numbers */
        const char *probability_axis; /* attribute: the axis along which results add up to 1 */
        bool is_logistic; /* each result is the probability that its operand is a score of */
    } scores;
    /* How operands and outputs enter and leave the bodies of a node. */
    struct {
        cm_sliced_fn *sliced; /* absent: no body's input is a slice */
        cm_next_fn *next;     /* absent: nothing goes from one iteration to the next */
    } bodies;
};

#define CM_OPERAND(i) (1u << (i))

/* Defines an operator of ai.onnx; the build finds lines that start with CM_OP and lists them. */
#define CM_OP(Name, ...)                                                                           \
    extern const struct cm_op cm_op_##Name;                                                        \
    const struct cm_op cm_op_##Name = {.domain = "", .name = #Name, __VA_ARGS__}
/* The same in another domain; Ident is the domain as an identifier. */
#define CM_OP_IN(Ident, Domain, Name, ...)                                                         \
    extern const struct cm_op cm_op_##Ident##_##Name;                                              \
    const struct cm_op cm_op_##Ident##_##Name = {.domain = Domain, .name = #Name, __VA_ARGS__}

extern const struct cm_op *const cm_op_list[];
extern const size_t cm_op_count;

/* ---- Inference: the rule reads facts of inputs and writes facts of outputs. ---- */

/* Runs a body's inference: args are facts of its inputs, outs (count n_outs) receive facts of its
 * outputs. */
typedef enum cm_status cm_infer_body_fn(struct cm_infer *in, size_t body,
                                        const struct cm_fact *args, size_t n_args,
                                        struct cm_fact *outs, size_t n_outs);

/* Finds the contents of an input whose fact does not hold them yet; NULL when they are not
 * constant. */
typedef const struct cm_tensor *cm_infer_constant_fn(struct cm_infer *in, int i);

struct cm_infer {
    const struct cm_node *node; /* for attributes */
    struct cm_arena *arena;     /* results live here */
    struct cm_symbols *symbols;
    const struct cm_fact *in; /* n_in facts; type NULL where the operand is absent */
    struct cm_fact *out;      /* n_out facts to fill; those not wanted may be left empty */
    int n_in, n_out;
    cm_infer_body_fn *infer_body;
    cm_infer_constant_fn *find_constant; /* may be NULL */
    enum cm_status
        status; /* of reading a constant that turned out broken; checked after the rule */
    struct cm_error *err;
};

/* The type of input i: NULL when absent. */
const struct cm_type *cm_infer_type(const struct cm_infer *in, int i);
/* The contents of input i, when they can never change; NULL otherwise. */
const struct cm_tensor *cm_infer_constant(const struct cm_infer *in, int i);
/* What is known of integer input i of rank 0 or 1, constants included; false when nothing is, not
 * even its length. */
bool cm_infer_known(struct cm_infer *in, int i, struct cm_known *out);

enum cm_status cm_infer_set(struct cm_infer *in, int o, const struct cm_type *type) CM_MUST_CHECK;
enum cm_status cm_infer_set_tensor(struct cm_infer *in, int o, enum cm_dtype dtype, int rank,
                                   const struct cm_dim *dims) CM_MUST_CHECK;
/* Values known already; items are copied. */
void cm_infer_set_known(struct cm_infer *in, int o, int rank, size_t count,
                        const struct cm_quantity *items);
/* "node 'x' (Op): " comes from whoever called the rule. */
enum cm_status cm_infer_fail(struct cm_infer *in, const char *format, ...) CM_PRINTF(2, 3);
/* Attribute `name` as an axis of a tensor of this rank; may_be_rank admits the rank itself. */
enum cm_status cm_infer_axis(struct cm_infer *in, int64_t axis, int rank, bool may_be_rank,
                             int *out) CM_MUST_CHECK;

/* Refuses input i where its rank is known and not in [least, most]; most may be CM_MAX_RANK. */
enum cm_status cm_infer_rank(struct cm_infer *in, int i, int least, int most) CM_MUST_CHECK;
/* Refuses input i where it is a matrix or more: it lists numbers, or is one. */
enum cm_status cm_infer_list(struct cm_infer *in, int i) CM_MUST_CHECK;
/* The same where it must be one number. */
enum cm_status cm_infer_number(struct cm_infer *in, int i) CM_MUST_CHECK;

/* Facts of the outputs of body `name`, its inputs being args; what changes between iterations is
 * passed as a type alone. */
enum cm_status cm_infer_body(struct cm_infer *in, const char *name, const struct cm_fact *args,
                             size_t n_args, struct cm_fact *outs, size_t n_outs) CM_MUST_CHECK;

/* Rules that many share. */
enum cm_status cm_infer_like_input(struct cm_infer *in); /* every output is like input 0 */
enum cm_status
cm_infer_broadcast(struct cm_infer *in); /* output 0: all inputs broadcast together */
enum cm_status cm_infer_broadcast_bool(struct cm_infer *in);
/* The broadcast shape of several inputs, with the element type given. */
enum cm_status cm_infer_broadcast_as(struct cm_infer *in, enum cm_dtype dtype) CM_MUST_CHECK;

/* ---- Running: prepare once per shapes, then run as often as there is data. ---- */

struct cm_random;

/* State that kernels share in a session. It begins zeroed; the session makes it for the first
 * kernel that asks, and releases it after the states of all prepared nodes. */
struct cm_session_state {
    size_t size;
    void (*init)(void *state);    /* quick, as other runs wait; absent: zeros will do */
    void (*release)(void *state); /* absent: it holds nothing but its memory */
};

/* What an engine gives to kernels. graph/eval.c has a plain one, exec/ the fast one. */
struct cm_engine {
    void *(*state)(struct cm_call *call,
                   size_t size); /* zeroed, lives as long as the prepared node */
    void (*scratch)(struct cm_call *call, size_t size); /* makes call->scratch that large in run */
    enum cm_status (*allocate)(struct cm_call *call, int o, enum cm_dtype dtype,
                               const struct cm_shape *shape);
    enum cm_status (*run_body)(struct cm_call *call, size_t body, const struct cm_datum *const *in,
                               size_t n_in, struct cm_datum *out, size_t n_out);
    struct cm_random *(*random)(struct cm_call *call);
    void (*want_layout)(struct cm_call *call, int i, const struct cm_layout *layout);
    void (*give_layout)(struct cm_call *call, int o, const struct cm_layout *layout);
    void (*defer)(struct cm_call *call, cm_cleanup_fn *fn, void *what);
    void *(*session_state)(struct cm_call *call, const struct cm_session_state *kind);
};

/* How engines keep such states: a list, newest first. */
struct cm_kept_state {
    const struct cm_session_state *kind;
    struct cm_kept_state *next;
    _Alignas(CM_TENSOR_ALIGNMENT) unsigned char state[];
};
/* The state of a kind, made if it is not there; NULL without memory. For one thread at a time. */
void *cm_kept_state_get(struct cm_kept_state **states, const struct cm_session_state *kind);
void cm_kept_states_free(struct cm_kept_state **states);

struct cm_call {
    const struct cm_node *node;
    const struct cm_op *op;
    int n_in, n_out;
    /* Tensors: NULL where absent, not wanted, or not a tensor. In prepare the shapes are right and
     * data is NULL unless constant. */
    const struct cm_tensor *const *in;
    struct cm_tensor *const *out;
    /* Values of any kind: NULL where absent or not wanted. Outputs are empty; run fills them, items
     * from cm_malloc. */
    const struct cm_datum *const *in_datum;
    struct cm_datum *const *out_datum;
    const void
        *arg;      /* that of the kernel of a backend, see struct cm_kernel; NULL: the operator's */
    void *state;   /* what prepare made with cm_call_state */
    void *scratch; /* what prepare asked for with cm_call_scratch, or cm_no_scratch; contents mean
                      nothing */
    const struct cm_engine *engine;
    void *engine_data;
    struct cm_error *err;
};

void *cm_call_state(struct cm_call *call, size_t size);  /* in prepare */
void cm_call_scratch(struct cm_call *call, size_t size); /* in prepare */
/* Where scratch points when none was asked for, so that kernels may add to it: nobody reads or
 * writes it. */
extern unsigned char cm_no_scratch[];
/* In accepts and prepare: calls fn(what) when the state of the prepared node goes. For what a state
 * holds that is not its memory; say it before there is anything to lose. */
void cm_call_defer(struct cm_call *call, cm_cleanup_fn *fn, void *what);
/* In accepts and prepare: the session's state of this kind; NULL without memory for it. Kernels of
 * several threads may use it at once. */
void *cm_call_session_state(struct cm_call *call, const struct cm_session_state *kind);
void cm_call_want_layout(struct cm_call *call, int i,
                         const struct cm_layout *layout); /* in prepare */
void cm_call_give_layout(struct cm_call *call, int o,
                         const struct cm_layout *layout); /* in prepare */
/* In run, for CM_OUTPUT_SIZE_AT_RUN: gives output o its memory. */
enum cm_status cm_call_allocate(struct cm_call *call, int o, enum cm_dtype dtype,
                                const struct cm_shape *shape) CM_MUST_CHECK;
/* Runs a body of the node on values; out is filled with new references, which the caller drops. */
enum cm_status cm_call_run_body(struct cm_call *call, size_t body, const struct cm_datum *const *in,
                                size_t n_in, struct cm_datum *out, size_t n_out) CM_MUST_CHECK;
/* Input i as the one number or truth value it must be: fails where it has no element, or several.
 * An absent input leaves *out as it was. Kernels that size their outputs as they run read scalars
 * this way alone: no inference rule has seen the shapes they meet. */
enum cm_status cm_call_int(struct cm_call *call, int i, int64_t *out) CM_MUST_CHECK;
enum cm_status cm_call_real(struct cm_call *call, int i, double *out) CM_MUST_CHECK;
enum cm_status cm_call_bool(struct cm_call *call, int i, bool *out) CM_MUST_CHECK;
/* The same of a value that is no input, a body's result: a condition. */
enum cm_status cm_datum_bool(const struct cm_datum *datum, bool *out,
                             struct cm_error *err) CM_MUST_CHECK;
/* Fails because the result of a call would have an axis too many. */
enum cm_status cm_call_fail_rank(struct cm_call *call);
/* The node's stream of random numbers: seeded by attribute `seed` when it has one, else by the run.
 */
struct cm_random *cm_call_random(struct cm_call *call);
/* How engines begin a node's stream: numpy's way from its attribute `seed`, else from (seed,
 * stream). */
void cm_node_seed_random(const struct cm_node *node, uint64_t seed, uint64_t stream,
                         struct cm_random *out);
enum cm_status cm_call_fail(struct cm_call *call, enum cm_status status, const char *format, ...)
    CM_PRINTF(3, 4);
/* Is input i a constant or an initializer that no run changes, so that it may be packed once? */
bool cm_call_is_constant(const struct cm_call *call, int i);
/* For accepts of struct cm_kernel (graph/backend.h): notes the reason and returns false. */
bool cm_call_decline(struct cm_call *call, const char *format, ...) CM_PRINTF(2, 3);
/* The same where the type of an operand or a result is the reason, or that it has no elements. */
bool cm_call_decline_type(struct cm_call *call, const struct cm_tensor *tensor);
bool cm_call_decline_empty(struct cm_call *call, const struct cm_tensor *tensor);
/* "operand 'A'" or "result 'Y'", as the operator's schema names them; "operand 2" where the schema
 * has no name for each of them. */
struct cm_operand_text {
    char text[80];
};
struct cm_operand_text cm_call_describe(const struct cm_call *call, const struct cm_tensor *tensor);

/* ---- Gradients: the rule reads forward values and incoming gradients and emits nodes. ---- */

/* Emits, where build stands, the gradients of ys (weighted by seeds) by xs; grads[i] is 0 where no
 * path leads. Given by autodiff/. */
typedef enum cm_status cm_differentiate_fn(struct cm_builder *build, const cm_value *ys,
                                           const cm_value *seeds, size_t n_ys, const cm_value *xs,
                                           size_t n_xs, cm_value *grads);

struct cm_grad {
    struct cm_builder
        build; /* where nodes are emitted; cm_emit(g, ..) works on any struct with this member */
    struct cm_node *node;       /* the forward node */
    const cm_value *incoming;   /* per output: the gradient that reached it; 0: none did */
    int n_incoming;             /* outputs the node had when the rule was called */
    cm_value *result;           /* per input: what cm_grad_set put there */
    const cm_value *captured;   /* outer values that the node's bodies read */
    const bool *captured_moves; /* per captured value: does a gradient for it count? */
    cm_value *captured_result;  /* per captured value: what cm_grad_set_captured put there */
    size_t n_captured;
    cm_differentiate_fn *differentiate; /* for rules that build bodies */
};

cm_value cm_grad_input(const struct cm_grad *g, int i);
cm_value cm_grad_output(const struct cm_grad *g, int o);
/* The gradient of output o; zeros of its shape when none reached it. */
cm_value cm_grad_incoming(struct cm_grad *g, int o);
bool cm_grad_wants(const struct cm_grad *g,
                   int i); /* is input i there and of a type with gradients? */
/* Output o of the forward node, asked for if the model did not: MaxPool's indices, Dropout's mask.
 */
cm_value cm_grad_extra_output(struct cm_grad *g, int o);
/* Puts another operator in place of the forward one, with the same inputs and leading outputs and
 * n_outputs in all: for what the backward pass needs and ONNX's operator does not give (batch
 * statistics, gates). Then cm_grad_output finds the new ones. */
enum cm_status cm_grad_replace_forward(struct cm_grad *g, const char *domain, const char *op_type,
                                       size_t n_outputs) CM_MUST_CHECK;
/* Sets the gradient of input i, summed over axes that were broadcast if its shape is larger. Fails
 * if an emit before it did. */
enum cm_status cm_grad_set(struct cm_grad *g, int i, cm_value gradient) CM_MUST_CHECK;
/* Control flow: sets the gradient of captured value number c. */
enum cm_status cm_grad_set_captured(struct cm_grad *g, size_t c, cm_value gradient) CM_MUST_CHECK;
/* Zeros of the shape of a float tensor, or of each item of a sequence, or of what an optional has.
 */
cm_value cm_build_zeros_like(struct cm_builder *build, cm_value like);
/* The sum of two gradients of one value, tensor or sequence. */
cm_value cm_build_gradient_sum(struct cm_builder *build, cm_value a, cm_value b);
enum cm_status
cm_grad_none(struct cm_grad *g); /* the rule of operators that have no gradient, on purpose */

/* ---- Bodies: an operator as a graph of others, for the attributes, types and operands at hand.
 * ---- */

struct cm_body {
    struct cm_builder build;
    const struct cm_node *node; /* the call: attributes, facts of operands */
    const cm_value *in;         /* the operands inside the body; 0: absent */
    cm_value *out;              /* what cm_body_return put there */
};

cm_value cm_body_input(const struct cm_body *b, int i);
bool cm_body_wants(const struct cm_body *b, int o); /* is output o of the call wanted? */
/* Says what output o is; fails if an emit before it did. */
enum cm_status cm_body_return(struct cm_body *b, int o, cm_value value) CM_MUST_CHECK;
/* "There is no body for this case", with the reason. */
enum cm_status cm_body_decline(struct cm_body *b, const char *format, ...) CM_PRINTF(2, 3);

#endif
