// Calls models that `cameo compile MODEL -o NAME.wasm` made, in a browser or in Node.
// SPDX-License-Identifier: Apache-2.0
//
//     import { load } from "./model.mjs";
//     const model = await load(await (await fetch("digits.wasm")).arrayBuffer());
//     const { probability } = model.run({ image: new Float32Array(256) });
//
// A module imports nothing and describes itself: `cameo_compiled` is the address of a struct
// cm_compiled (src/mlir/runtime/compiled.h) with the names, types and shapes of inputs and outputs.
// Its own data end at `__heap_base`; what lies behind belongs to the caller, who lays out there the
// tensors (a pointer, a pointer to the shape and a size in bytes, 32 bits each), their contents, and
// the arena.

// As ONNX numbers them; types that JavaScript does not have are their bits.
const ARRAYS = {
  1: Float32Array, 2: Uint8Array, 3: Int8Array, 4: Uint16Array, 5: Int16Array, 6: Int32Array,
  7: BigInt64Array, 9: Uint8Array, 10: Uint16Array, 11: Float64Array, 12: Uint32Array,
  13: BigUint64Array, 14: Float32Array, 15: Float64Array, 16: Uint16Array,
};
const FIXED_ARENA = 1, OWN_WEIGHTS = 2, STEP = 4; // flags of struct cm_compiled
const ARENA_TOO_SMALL = 1, BAD_OUTPUT = 0x20000, CHECK_FAILED = 0x30000;
const ALIGNMENT = 64, PAGE = 65536, TENSOR_BYTES = 12, PORT_BYTES = 32;

const roundUp = (size, to = ALIGNMENT) => Math.ceil(size / to) * to;
const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

class Model {
  constructor(exports) {
    this.exports = exports;
    const at = exports.cameo_compiled.value, view = this.view();
    if (this.text(at) !== "cameo-c" || view.getUint32(at + 8, true) !== 1)
      throw new Error("this is not a model that cameo compiled");
    this.flags = view.getUint32(at + 12, true);
    if (!(this.flags & OWN_WEIGHTS)) throw new Error("the weights are not inside");
    this.name = this.text(view.getUint32(at + 16, true));
    this.inputs = this.ports(view.getUint32(at + 40, true), Number(view.getBigUint64(at + 24, true)));
    this.outputs = this.ports(view.getUint32(at + 44, true), Number(view.getBigUint64(at + 32, true)));
    this.arenaBytes = Number(view.getBigUint64(at + 48, true));
    this.free = roundUp(exports.__heap_base.value);
    if (this.flags & STEP) {
      this.state = this.free;
      this.free = roundUp(this.free + Number(view.getBigUint64(at + 72, true)));
      this.need(this.free);
      exports[`${this.name}_initialize`](this.state);
    }
  }

  // Views end when the memory grows, so that none is kept.
  view() {
    return new DataView(this.exports.memory.buffer);
  }

  need(end) {
    const missing = end - this.exports.memory.buffer.byteLength;
    if (missing > 0) this.exports.memory.grow(Math.ceil(missing / PAGE));
  }

  text(at) {
    const bytes = new Uint8Array(this.exports.memory.buffer, at);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)).slice());
  }

  ports(at, count) {
    const view = this.view(), ports = [];
    for (let i = 0; i < count; i++, at += PORT_BYTES) {
      const rank = view.getInt32(at + 16, true), dims = view.getUint32(at + 24, true);
      ports.push({
        name: this.text(view.getUint32(at, true)),
        type: view.getInt32(at + 8, true),
        bytes: view.getInt32(at + 12, true), // of an element
        // -1: known only when it runs
        shape: Array.from({ length: rank }, (_, d) => Number(view.getBigInt64(dims + 8 * d, true))),
      });
    }
    return ports;
  }

  // Lays out tensors with their shapes and room for their contents: where they begin and end.
  layOut(tensors, begin) {
    let at = roundUp(begin + TENSOR_BYTES * tensors.length);
    const places = tensors.map((tensor) => {
      const shape = at, data = roundUp(shape + 8 * tensor.shape.length);
      at = roundUp(data + tensor.size);
      return { shape, data };
    });
    this.need(at);
    const view = this.view();
    tensors.forEach((tensor, i) => {
      view.setUint32(begin + TENSOR_BYTES * i, places[i].data, true);
      view.setUint32(begin + TENSOR_BYTES * i + 4, places[i].shape, true);
      view.setUint32(begin + TENSOR_BYTES * i + 8, tensor.size, true);
      tensor.shape.forEach((size, d) => view.setBigInt64(places[i].shape + 8 * d, BigInt(size), true));
    });
    return { places, end: at };
  }

  // Inputs by name: an array of the type, or { data, shape } where the model leaves sizes open. Gives
  // the same of outputs: an array, or { data, shape }. A training step changes the state.
  run(given) {
    const inputs = this.inputs.map((port) => {
      const value = given[port.name];
      if (value === undefined) throw new Error(`there is no input '${port.name}'`);
      const data = value.data ?? value;
      if (!(data instanceof (ARRAYS[port.type] ?? Uint8Array)))
        throw new Error(`'${port.name}' must be of type ${(ARRAYS[port.type] ?? Uint8Array).name}`);
      return { data, shape: value.shape ?? port.shape, size: data.byteLength };
    });
    const outputs = this.outputs.map((port) => (
      { shape: port.shape, size: port.shape.some((d) => d < 0) ? 0 : product(port.shape) * port.bytes }));
    const from = this.layOut(inputs, this.free);
    inputs.forEach((input, i) => {
      const bytes = new Uint8Array(input.data.buffer, input.data.byteOffset, input.size);
      new Uint8Array(this.exports.memory.buffer).set(bytes, from.places[i].data);
    });
    for (let arenaBytes = this.arenaBytes; ;) {
      const to = this.layOut(outputs, from.end), arena = to.end;
      this.need(arena + arenaBytes);
      const call = this.exports[`${this.name}_${this.flags & STEP ? "step" : "run"}`];
      const code = call(...(this.flags & STEP ? [this.state] : []), this.free, from.end, arena, arenaBytes);
      const shapes = this.outputs.map((port, i) => port.shape.map(
        (_, d) => Number(this.view().getBigInt64(to.places[i].shape + 8 * d, true))));
      const short = code >= BAD_OUTPUT && code < CHECK_FAILED ? code - BAD_OUTPUT : -1;
      if (code === 0) return this.results(to.places, shapes);
      if (code === ARENA_TOO_SMALL && !(this.flags & FIXED_ARENA) && arenaBytes < 2 ** 30) {
        arenaBytes = 2 * arenaBytes + PAGE;
      } else if (short >= 0 && outputs[short].size < product(shapes[short]) * this.outputs[short].bytes) {
        outputs[short].size = product(shapes[short]) * this.outputs[short].bytes; // now it is known
      } else {
        throw new Error(this.text(this.exports[`${this.name}_error`](code)));
      }
    }
  }

  results(places, shapes) {
    const results = {};
    this.outputs.forEach((port, i) => {
      const of = ARRAYS[port.type] ?? Uint8Array;
      const bytes = product(shapes[i]) * port.bytes, at = places[i].data;
      const data = new of(this.exports.memory.buffer.slice(at, at + bytes));
      results[port.name] = port.shape.some((d) => d < 0) ? { data, shape: shapes[i] } : data;
    });
    return results;
  }
}

export async function load(bytes) {
  const { instance } = await WebAssembly.instantiate(bytes);
  return new Model(instance.exports);
}
