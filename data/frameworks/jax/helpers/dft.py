def dft(x, length, axis, inverse, one_sided):
    """A Fourier transform; the last axis holds real and imaginary parts."""
    axis = axis % x.ndim
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    full = wide[..., 0]
    if x.shape[-1] == 2:
        full = lax.complex(wide[..., 0], wide[..., 1])
    if inverse and one_sided:
        return jnp.fft.irfft(full, length, axis)[..., None].astype(x.dtype)
    y = (jnp.fft.ifft if inverse else jnp.fft.fft)(full, length, axis)
    if one_sided:
        y = lax.slice_in_dim(y, 0, y.shape[axis] // 2 + 1, axis=axis)
    return jnp.stack([y.real, y.imag], -1).astype(x.dtype)
