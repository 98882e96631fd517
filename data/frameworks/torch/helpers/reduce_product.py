def reduce_product(x, dims, keep):
    for d in sorted((d % x.dim() for d in dims), reverse=True):
        x = x.prod(dim=d, keepdim=keep, dtype=x.dtype)
    return x
