def dft(x, length, axis, inverse, one_sided):
    """A Fourier transform; the last axis holds real and imaginary parts."""
    axis = axis % x.dim()
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    full = (
        torch.view_as_complex(wide.contiguous()) if x.shape[-1] == 2 else wide[..., 0]
    )
    if inverse and one_sided:
        return torch.fft.irfft(full, length, axis).unsqueeze(-1).to(x.dtype)
    if inverse:
        y = torch.fft.ifft(full, length, axis)
    elif one_sided:
        y = torch.fft.fft(full, length, axis)
        y = y.narrow(axis, 0, y.shape[axis] // 2 + 1)
    else:
        y = torch.fft.fft(full, length, axis)
    return torch.view_as_real(y.resolve_conj()).to(x.dtype)
