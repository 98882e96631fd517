// Several tables side by side, each cut or filled with zeros to the width that is said.
@set widths = attr("inputdimensions")
@set rows = dim(Y, 0)
@set total = sum(widths)
@set n = known(rows) ? none : size(X[0], 0)
@let f32 %none = 0
%empty = tensor.empty(${known(rows) ? [] : [n]}) : ${tensor([rows, total], "f32")}
%at0 = linalg.fill ins(%none : f32) outs(%empty : ${tensor([rows, total], "f32")}) -> ${tensor([rows, total], "f32")}
@set place_of = 0
@for k in range(len(X))
@set x = X[k]
@if not known(dim(x, 0)) and k > 0
@set have = size(x, 0)
@set want = size(X[0], 0)
@let i1(index) %fits${k} = ${have} == ${want}
cf.assert %fits${k}, "${place()}: its inputs differ in their number of rows"
@end
@set w = widths[k]
@set P = tensor([rows, w], "f32")
%part_empty${k} = tensor.empty(${known(rows) ? [] : [n]}) : ${P}
%part${k} = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    outs(%part_empty${k} : ${P}) {
^bb0(%old${k}: f32):
  %row${k} = linalg.index 0 : index
  %column${k} = linalg.index 1 : index
@if rank(x) == 2
@set width = size(x, 1)
@let i1(index) %inside${k} = %column${k} < ${width}
@let index %c${k} = %inside${k} ? %column${k} : 0
  %fetched${k} = scf.if %inside${k} -> (${scalar(x)}) {
    %there${k} = tensor.extract ${x}[%row${k}, %c${k}] : ${type(x)}
    scf.yield %there${k} : ${scalar(x)}
  } else {
@let ${elem(x)} %zero${k} = 0
    scf.yield %zero${k} : ${scalar(x)}
  }
@let f32 %number${k} = f32(${elem(x)} %fetched${k})
@else
  %fetched${k} = tensor.extract ${x}[%row${k}] : ${type(x)}
@let f32 %first${k} = f32(${elem(x)} %fetched${k})
@let i1(index) %inside${k} = %column${k} == 0
@let f32 %number${k} = %inside${k} ? %first${k} : 0
@end
  linalg.yield %number${k} : f32
} -> ${P}
%at${k + 1} = tensor.insert_slice %part${k} into %at${k}[0, ${place_of}] [${known(rows) ? rows : n}, ${w}] [1, 1] : ${P} into ${tensor([rows, total], "f32")}
@set place_of = place_of + w
@end
%Y = tensor.cast %at${len(X)} : ${tensor([rows, total], "f32")} to ${type(Y)}
