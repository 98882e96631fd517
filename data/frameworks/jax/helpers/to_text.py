# needs: concrete
def to_text(x):
    """Numbers as texts."""
    x = concrete(x)

    def text(value):
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, int):
            return str(value)
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "INF" if value > 0 else "-INF"
        for digits in range(1, 18):
            short = f"{value:.{digits}g}"
            if np.array(float(short)).astype(x.dtype).item() == value:
                return short
        return repr(value)

    texts = [text(value) for value in x.flatten().tolist()]
    return np.array(texts, dtype=object).reshape(x.shape)
