// Triangles that turn a spectrum into mel bands: column i rises from edge i to edge i + 1, and falls to
// edge i + 2.
@let index %zero = 0
@let index %one = 1
@for name in ["bins", "length", "rate", "low", "high"]
@set x = name == "bins" ? num_mel_bins : name == "length" ? dft_length : name == "rate" ? sample_rate : name == "low" ? lower_edge_hertz : upper_edge_hertz
@do check_length(x, 1)
%given_${name} = tensor.extract ${x}[${["%zero" for b in range(rank(x))]}] : ${type(x)}
@end
@let index %bins = index(${elem(num_mel_bins)} %given_bins)
@let index %length = index(${elem(dft_length)} %given_length)
@let f64 %rate = f64(${elem(sample_rate)} %given_rate)
@let i1(index) %is_size = %bins >= 0 && %length >= 0
cf.assert %is_size, "${place()}: a size is negative"
@let index %rows = %length / 2 + 1
@for name in ["low", "high"]
@let f64 %scaled_${name} = 1 + f64(${elem(lower_edge_hertz)} %given_${name}) / 700
%log_${name} = math.log10 %scaled_${name} : f64
@let f64 %mel_${name} = 2595 * %log_${name}
@end
@let index %count = %bins + 2
@let f64 %step = %mel_high - %mel_low
%edges_empty = tensor.empty(%count) : tensor<?xf64>
%edges = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%edges_empty : tensor<?xf64>) {
^bb0(%old: f64):
  %i = linalg.index 0 : index
@let f64 %mel = f64(index %i) * %step / f64(index %count) + %mel_low
@let f64 %hertz = 700 * (pow(10, %mel / 2595) - 1)
@let f64 %edge = floor((f64(index %length) + 1) * %hertz / %rate)
  linalg.yield %edge : f64
} -> tensor<?xf64>
@let f64 %limit = f64(index %rows)
scf.for %i = %zero to %bins step %one {
@let index %i1 = %i + 1
@let index %i2 = %i + 2
  %e0 = tensor.extract %edges[%i] : tensor<?xf64>
  %e1 = tensor.extract %edges[%i1] : tensor<?xf64>
  %e2 = tensor.extract %edges[%i2] : tensor<?xf64>
@let i1(f64) %fits = %e0 >= 0 && %e0 <= %e1 && %e1 < %limit && %e2 >= 0 && %e2 <= %limit
  cf.assert %fits, "${place()}: a band is outside the spectrum"
}
%empty = tensor.empty(${[a == 0 ? "%rows" : "%bins" for a in range(2) if not known(dim(output, a))]}) : ${type(output)}
%output = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%empty : ${type(output)}) {
^bb0(%old: ${scalar(output)}):
  %row = linalg.index 0 : index
  %at0 = linalg.index 1 : index
@let index %at1 = %at0 + 1
@let index %at2 = %at0 + 2
  %f0 = tensor.extract %edges[%at0] : tensor<?xf64>
  %f1 = tensor.extract %edges[%at1] : tensor<?xf64>
  %f2 = tensor.extract %edges[%at2] : tensor<?xf64>
@let f64 %j = f64(index %row)
@let f64 %up = %f0 == %f1 ? 1 : (%j - %f0) / (%f1 - %f0)
@let f64 %down = (%f2 - %j) / (%f2 - %f1)
@let f64 %none = 0
@let i1(f64) %rises = %j >= %f0 && %j <= %f1
@let i1(f64) %falls = %j >= %f1 && %j < %f2
  %a = arith.select %rises, %up, %none : f64
  %value = arith.select %falls, %down, %a : f64
@let f64 %cut = ${is_float(output) ? "%value" : "trunc(" + "%value" + ")"}
@do store_real("%cut", "f64", elem(output), "%stored")
  linalg.yield %stored : ${scalar(output)}
} -> ${type(output)}
