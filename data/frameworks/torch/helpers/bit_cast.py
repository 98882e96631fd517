def bit_cast(x, source, target):
    """The same bits as another type, where one of them is held in a wider one."""
    held = {"uint16": torch.int16, "uint32": torch.int32, "uint64": torch.int64}
    native = {
        "float": torch.float32,
        "double": torch.float64,
        "float16": torch.float16,
        "bfloat16": torch.bfloat16,
        **{f"int{n}": getattr(torch, f"int{n}") for n in (8, 16, 32, 64)},
        "uint8": torch.uint8,
        **held,
    }
    if source in held:
        x = x.to(native[source])
    x = x.view(native[target])
    if target in ("uint16", "uint32"):
        bits = int(target[4:])
        return (x.to(torch.int64) & ((1 << bits) - 1)).to(
            torch.int32 if bits == 16 else torch.int64
        )
    return x
