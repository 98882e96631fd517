def feature_vectorizer(inputs, sizes):
    """Columns side by side, cut or filled up to declared widths."""
    out = []
    for i, x in enumerate(inputs):
        x = (
            x.float().reshape(x.shape[0], -1)
            if x.dim() > 1
            else x.float().reshape(1, -1)
        )
        size = sizes[i] if i < len(sizes) else x.shape[1]
        out.append(F.pad(x, (0, size - x.shape[1])))
    return torch.cat(out, 1)
