def to_small(x, name):
    """Whole numbers of two or four bits, held in eight."""
    bits = int(name[-1])
    if name.startswith("u"):
        return (x.to(torch.int64) & ((1 << bits) - 1)).to(torch.uint8)
    half = 1 << (bits - 1)
    return ((x.to(torch.int64) + half) % (2 * half) - half).to(torch.int8)
