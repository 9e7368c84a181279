// Runs the search of the built site in Node.js, with the worker that browsers run.
// node site_search.mjs WORKER.js INDEX.js QUESTIONS.json prints a list of addresses per question.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [worker, index, questions] = process.argv.slice(2);
let listen;
let answer;
Object.assign(globalThis, {
  self: globalThis,
  addEventListener: (_, handler) => (listen = handler),
  postMessage: (message) => answer(message),
});
const ask = (message) =>
  new Promise((resolve) => {
    answer = resolve;
    listen({ data: message });
  });

vm.runInThisContext(readFileSync(worker, "utf8"));
vm.runInThisContext(readFileSync(index, "utf8"));
const { config, docs } = globalThis.__index;
await ask({ type: 0, data: { config, docs, options: { suggest: true } } });
const found = {};
for (const question of JSON.parse(readFileSync(questions, "utf8"))) {
  const { data } = await ask({ type: 2, data: question });
  // A result is a page with its sections; the address of a section has an anchor.
  found[question] = data.items.map((sections) => sections[0].location.split("#")[0]);
}
console.log(JSON.stringify(found));
