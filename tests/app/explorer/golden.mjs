/** The comparison in Node.js: node golden.mjs FOLDER, with cases.json and numbers.bin. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as interpreter from "../../../src/lloydformer/app/explorer/page/interpreter/index.js";
import { compared } from "./golden_compare.mjs";

const folder = process.argv[2];
const bytes = readFileSync(join(folder, "numbers.bin"));
const numbers = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
const cases = JSON.parse(readFileSync(join(folder, "cases.json"), "utf-8"));
process.stdout.write(JSON.stringify(compared(cases, numbers, interpreter)));
