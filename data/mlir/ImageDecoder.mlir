// The decoders are libraries, and a compiled model needs none.
@refuse "compressed images are not decoded by a compiled model: give it the pixels"
