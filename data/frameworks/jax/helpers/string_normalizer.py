def string_normalizer(x, change, case_sensitive, stopwords):
    """Texts without stop words, in upper or lower case."""
    fold = str if case_sensitive else str.lower
    stop = {fold(word) for word in stopwords}
    case = {"LOWER": str.lower, "UPPER": str.upper}.get(change, str)
    rows = x.reshape(-1, x.shape[-1]).tolist()
    rows = [[case(t) for t in row if fold(t) not in stop] for row in rows]
    rows = [row or [""] for row in rows]
    return np.array(rows, dtype=object).reshape(*x.shape[:-1], -1)
