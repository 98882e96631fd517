# cameo check: every finding, the counts, and what the exit code says.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@"
    echo "[$?]"
}

cp "$TESTS/models/linear.onnx" "$TESTS/models/training_linreg_sgd.onnx" .
cat >bad.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y) {
    [first] a = Relu(x, x, x)
    [second] y = Ad(a, ghost)
}
END
try check linear.onnx
try check linear.onnx training_linreg_sgd.onnx
try check bad.onnxtxt linear.onnx
try check --json bad.onnxtxt
"$CAMEO" check --json linear.onnx bad.onnxtxt none.onnx 2>said.txt >found.json
echo "[$?]"
python3 -c '
import json
for entry in json.load(open("found.json")):
    print(entry["model"], entry.get("violations"), entry.get("error"))'
cat said.txt

echo "-- types: everything in one run, and what cannot run here"
cat >types.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (float[2,3] x, float[4,5] w) => (float[2,6] y, float[2,3] z, float[2,5] m) <float[2,3] c> {
    [product] m = MatMul(x, w)
    [relu] y = Relu(x)
    [own] c = local.Own(x)
    [sum] z = Add(c, x)
}
END
try check types.onnxtxt
try check --structure types.onnxtxt
try check --can-run --structure types.onnxtxt linear.onnx
try check --can-run --json training_linreg_sgd.onnx
cat >warned.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "" : 17]>
g (float[2] x) => (float[2] y) { y = Relu(x) }
END
try check warned.onnxtxt
try check --strict warned.onnxtxt

echo "-- SARIF"
cp types.onnxtxt 'odd name%.onnxtxt'
try check --can-run --sarif found.sarif 'odd name%.onnxtxt' warned.onnxtxt
cat >sarif.py <<'END'
# The parts of the SARIF 2.1.0 schema that a log of ours has, by hand.
import json
import re

log = json.load(open("found.sarif"))
assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
(run,) = log["runs"]
driver = run["tool"]["driver"]
assert driver["name"] == "cameo" and driver["version"]
ids = [rule["id"] for rule in driver["rules"]]
assert len(set(ids)) == len(ids)
for rule in driver["rules"]:
    assert rule["shortDescription"]["text"] and rule["help"]["text"]
    assert rule["defaultConfiguration"]["level"] in ("error", "warning")
for result in run["results"]:
    assert ids[result["ruleIndex"]] == result["ruleId"]
    assert result["level"] in ("error", "warning")
    (location,) = result["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri)
    assert location["physicalLocation"]["region"]["startLine"] == 1
    logical = location.get("logicalLocations", [{}])[0]
    print(uri, result["ruleId"], result["level"], logical.get("kind"), logical.get("name"))
    print("   ", result["message"]["text"])
assert set(log) == {"version", "$schema", "runs"}
assert set(run) == {"tool", "results", "invocations"}
print(run["invocations"])
END
python3 sarif.py
try check --sarif nowhere/found.sarif linear.onnx
echo '-- SARIF of a command that refuses a model, and of one that does not'
try run 'odd name%.onnxtxt' --sarif found.sarif
python3 sarif.py
try infer linear.onnx -o typed.onnx --sarif found.sarif
python3 sarif.py

echo "-- a training that cannot run here"
cat >training.onnxtxt <<'END'
<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1, "local" : 1]>
main (float[N] x) => (float[N] y) <float[1] w = {2}> {
   y = Mul (x, w)
}
training {
   algorithm: step (float[N] t) => (float[1] w1) {
      d = Sub (y, t)
      [own] e = local.Own (d)
      loss = ReduceSumSquare <keepdims = 0> (e)
      dw = ai.onnx.preview.training.Gradient <xs = ["w"], y = "loss"> (w)
      w1 = Sub (w, dw)
   },
   update_binding: ["w": "w1"]
}
END
try check --can-run training.onnxtxt
