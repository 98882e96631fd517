// y = what has been written to memory of lib/fresh_memory, of type W, in y's own type.
@macro memory, dims, W, sizes, y
%wide = bufferization.to_tensor ${memory} restrict writable : ${memref(dims, W)}
@do rounded("%wide", dims, W, sizes, elem(y), "%rounded")
${y} = tensor.cast %rounded : ${tensor(dims, elem(y))} to ${type(y)}
