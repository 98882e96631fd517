// Runs compiled models in Node: run.mjs MODEL.MJS MANIFEST OUT, see check_targets.py.
// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [loader, manifest, out] = process.argv.slice(2);
const { load } = await import(pathToFileURL(loader));
const written = [];

// Bytes as the array that the type of the port asks for.
function arrayOf(bytes, port) {
  const of = { f4: Float32Array, f8: Float64Array, i8: BigInt64Array, u8: BigUint64Array, i4: Int32Array,
               u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array }[port.array];
  return new of(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

for (const item of JSON.parse(readFileSync(manifest, "utf8"))) {
  const lines = { code: 0, error: "", outputs: [] };
  try {
    const module = readFileSync(item.file);
    const imports = WebAssembly.Module.imports(new WebAssembly.Module(module));
    if (imports.length) throw new Error(`it imports ${imports.map((i) => i.name)}`);
    const model = await load(module);
    for (const turn of item.turns) {
      const given = {};
      model.inputs.forEach((port, i) => {
        given[port.name] = { data: arrayOf(readFileSync(turn[i].file), turn[i]), shape: turn[i].shape };
      });
      const results = model.run(given);
      lines.outputs.push(model.outputs.map((port) => {
        const value = results[port.name], data = value.data ?? value;
        return { name: port.name, shape: value.shape ?? port.shape,
                 bytes: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
      }));
    }
  } catch (error) {
    lines.error = String(error.message ?? error);
  }
  written.push(lines);
}
writeFileSync(out, JSON.stringify(written));
