// Which digit is it? node read.mjs digits.wasm unseen.npy: an image of 16 x 16 floats behind the 128
// bytes of a .npy's header.
// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { load } from "./model.mjs";

const [file, picture] = process.argv.slice(2);
const model = await load(await readFile(file));
const bytes = await readFile(picture);
const image = new Float32Array(bytes.buffer.slice(bytes.byteOffset + 128, bytes.byteOffset + 128 + 4 * 256));
const { probability } = model.run({ image });
const best = probability.indexOf(Math.max(...probability));
console.log(`${best}, ${(100 * probability[best]).toFixed(2)} %`);
