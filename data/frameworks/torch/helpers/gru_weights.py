def gru_weights(w, r, b):
    """Weights with gates in the framework's order, one direction after the other."""

    def ordered(gates):
        z, r, n = gates.chunk(3)
        return torch.cat([r, z, n])

    out = []
    for d in range(w.shape[0]):
        out += [ordered(w[d]), ordered(r[d])]
        if b is not None:
            out += [ordered(part) for part in b[d].chunk(2)]
    return out
