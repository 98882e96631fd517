# needs: concrete
def tf_idf_vectorizer(
    x, pool, counts, indexes, weights, mode, shortest, longest, skips
):
    """How often sequences of words occur, with gaps."""
    x = concrete(x)
    grams = {}
    for n, start in enumerate(counts, 1):
        end = counts[n] if n < len(counts) else len(pool)
        for i in range(start, end, n):
            grams[tuple(pool[i : i + n])] = len(grams)
    rows = [x.tolist()] if len(x.shape) == 1 else x.tolist()
    out = np.zeros((len(rows), max(indexes) + 1), np.float32)
    for r, row in enumerate(rows):
        for n in range(shortest, longest + 1):
            for gap in range(1, 2 if n == 1 else skips + 2):
                for i in range(len(row) - (n - 1) * gap):
                    gram = grams.get(tuple(row[i : i + (n - 1) * gap + 1 : gap]))
                    if gram is not None:
                        out[r, indexes[gram]] += 1
    if weights is not None and mode != "TF":
        scale = np.ones(out.shape[1], np.float32)
        for place, weight in zip(indexes, weights):
            scale[place] = weight
        out = (out > 0) * scale if mode == "IDF" else out * scale
    elif mode == "IDF":
        out = (out > 0).astype(np.float32)
    return jnp.array(out[0] if len(x.shape) == 1 else out)
