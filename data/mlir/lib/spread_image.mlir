// The image that a transposed convolution of x is a plain one of: zeros between the elements of x
// and around them. Gives image, image_dims and image_sizes.
@macro x, strides, spans, before, counts
@set r = rank(x) - 2
@set T = elem(x)
@do numbers(x)
@let ${T} %nothing = 0
// Padding that takes away more than a window spans takes away zeros in front, too.
@for i in range(r)
@let index %low${i} = max(${spans[i]} - 1 - ${before[i]}, 0)
@let index %crop${i} = max(${before[i]} + 1 - ${spans[i]}, 0)
@let index %need${i} = ${counts[i]} + ${spans[i]} - 1
@let index %whole${i} = max(%low${i} + (${numbers[i + 2]} - 1) * ${strides[i]} + 1, %crop${i} + %need${i})
@end
@set loose = tensor([none for n in numbers], T)
@set ones = join([1 for n in numbers], ", ")
@for i in range(2)
@let index %outer${i} = ${numbers[i]}
@end
%empty = tensor.empty(%outer0, %outer1, ${["%whole" + i for i in range(r)]}) : ${loose}
%filled = linalg.fill ins(%nothing : ${bare(T)}) outs(%empty : ${loose}) -> ${loose}
%spread = tensor.insert_slice ${x} into %filled[0, 0, ${["%low" + i for i in range(r)]}][${numbers}][1, 1, ${strides}] : ${type(x)} into ${loose}
@set image_dims = dims(x)[0:2] + [counts[i] >= 0 and spans[i] >= 0 ? counts[i] + spans[i] - 1 : none for i in range(r)]
@set image_sizes = numbers[0:2] + [known(image_dims[i + 2]) ? image_dims[i + 2] : "%need" + i for i in range(r)]
@set image = fresh()
${image} = tensor.extract_slice %spread[0, 0, ${["%crop" + i for i in range(r)]}][${image_sizes}][${ones}] : ${loose} to ${tensor(image_dims, T)}
@give image, image_dims, image_sizes
