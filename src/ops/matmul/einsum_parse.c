/* Reading the equations of Einsum. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/einsum.h"

/* One side of a comma, as it is written. */
struct written {
    int letters_before, letters_after; /* of the dots */
    bool dots;
    unsigned char letters[CM_MAX_RANK];
};

static int letter_label(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= 'a' && c <= 'z' ? 26 + (c - 'a') : -1;
}

/* Reads up to a comma, an arrow or the end; *at is left there. */
static enum cm_status read_term(struct cm_str text, size_t *at, struct written *out,
                                struct cm_error *err)
{
    *out = (struct written){0};
    for (; *at < text.size; ++*at) {
        const char c = text.data[*at];
        if (c == ' ')
            continue;
        if (c == ',' || c == '-')
            return CM_OK;
        if (c == '.') {
            if (out->dots || text.size - *at < 3 || memcmp(text.data + *at, "...", 3) != 0)
                return cm_fail(err, CM_BAD_MODEL,
                               "equation '%.*s' has dots that are not an ellipsis",
                               CM_STR_FMT(text));
            out->dots = true;
            *at += 2;
            continue;
        }
        const int label = letter_label(c), count = out->letters_before + out->letters_after;
        if (label < 0 || count == CM_MAX_RANK)
            return cm_fail(err, CM_BAD_MODEL, "equation '%.*s' cannot be read at position %zu",
                           CM_STR_FMT(text), *at);
        out->letters[count] = (unsigned char)label;
        if (out->dots)
            out->letters_after++;
        else
            out->letters_before++;
    }
    return CM_OK;
}

/* Puts the labels of n axes in place of the dots. */
static void resolve(const struct written *written, int n, struct cm_einsum_term *out)
{
    out->rank = 0;
    for (int i = 0; i < written->letters_before; i++)
        out->labels[out->rank++] = written->letters[i];
    for (int i = 0; i < n; i++)
        out->labels[out->rank++] = (unsigned char)(CM_EINSUM_LABELS - n + i);
    for (int i = 0; i < written->letters_after; i++)
        out->labels[out->rank++] = written->letters[written->letters_before + i];
}

/* Without an arrow: the dots, then the letters that occur once, in order of the alphabet. */
static void implied_result(const int *uses, int dots, struct cm_einsum_term *out)
{
    struct written written = {.dots = true};
    for (int label = 0; label < CM_EINSUM_LETTERS; label++)
        if (uses[label] == 1)
            written.letters[written.letters_after++] = (unsigned char)label;
    resolve(&written, dots, out);
}

static enum cm_status read_result(struct cm_str text, size_t *at, const int *uses, int dots,
                                  struct cm_einsum_term *out, struct cm_error *err)
{
    struct written written;
    int seen[CM_EINSUM_LETTERS] = {0};
    if (text.size - *at < 2 || text.data[*at + 1] != '>')
        return cm_fail(err, CM_BAD_MODEL, "equation '%.*s' has a '-' without '>'",
                       CM_STR_FMT(text));
    *at += 2;
    CM_TRY(read_term(text, at, &written, err));
    if (*at < text.size)
        return cm_fail(err, CM_BAD_MODEL, "equation '%.*s' goes on after its result",
                       CM_STR_FMT(text));
    const int count = written.letters_before + written.letters_after;
    for (int i = 0; i < count; i++) {
        if (uses[written.letters[i]] == 0)
            return cm_fail(err, CM_BAD_MODEL,
                           "the result of equation '%.*s' has a letter that no operand has",
                           CM_STR_FMT(text));
        if (seen[written.letters[i]]++)
            return cm_fail(err, CM_BAD_MODEL, "the result of equation '%.*s' has a letter twice",
                           CM_STR_FMT(text));
    }
    if (written.dots && dots + count > CM_MAX_RANK)
        return cm_fail(err, CM_BAD_MODEL, "the result of equation '%.*s' has more than %d axes",
                       CM_STR_FMT(text), CM_MAX_RANK);
    resolve(&written, written.dots ? dots : 0, out);
    return CM_OK;
}

/* Reads operand i; adds to the uses of its letters and to the most axes that dots stand for. */
static enum cm_status read_operand(struct cm_str text, size_t *at, size_t i, int rank,
                                   struct cm_einsum_term *out, int *uses, int *dots, bool *vague,
                                   struct cm_error *err)
{
    struct written written;
    CM_TRY(read_term(text, at, &written, err));
    const int count = written.letters_before + written.letters_after;
    int covered = 0;
    if (rank == CM_RANK_UNKNOWN)
        *vague = *vague || written.dots;
    else if (rank < count || (!written.dots && rank != count))
        return cm_fail(err, CM_BAD_MODEL,
                       "input %zu has rank %d, its part of the equation has %d axes", i, rank,
                       count);
    else
        covered = rank - count;
    for (int j = 0; j < count; j++)
        uses[written.letters[j]]++;
    if (covered > *dots)
        *dots = covered;
    resolve(&written, covered, out);
    return CM_OK;
}

enum cm_status cm_einsum_parse(struct cm_str equation, size_t n_operands, const int *ranks,
                               struct cm_einsum_term *terms, bool *vague, struct cm_error *err)
{
    int uses[CM_EINSUM_LETTERS] = {0}, dots = 0, letters = 0;
    size_t at = 0;
    *vague = false;
    for (size_t i = 0; i < n_operands; i++) {
        CM_TRY(read_operand(equation, &at, i, ranks[i], &terms[i], uses, &dots, vague, err));
        const bool more = at < equation.size && equation.data[at] == ',';
        if (more != (i + 1 < n_operands))
            return cm_fail(err, CM_BAD_MODEL, "equation '%.*s' has %s operands than the node's %zu",
                           CM_STR_FMT(equation), more ? "more" : "fewer", n_operands);
        at += more;
    }
    if (at < equation.size)
        return read_result(equation, &at, uses, dots, &terms[n_operands], err);
    for (int label = 0; label < CM_EINSUM_LETTERS; label++)
        letters += uses[label] == 1;
    if (dots + letters > CM_MAX_RANK)
        return cm_fail(err, CM_BAD_MODEL, "the result of equation '%.*s' has more than %d axes",
                       CM_STR_FMT(equation), CM_MAX_RANK);
    implied_result(uses, dots, &terms[n_operands]);
    return CM_OK;
}
