import { expect, test } from "bun:test";
import { mergeRouting, type PresetConfig } from "./preset.ts";
import type { JsonFields } from "../../platform/kernel/json/json-members.ts";

const idOf = (name: string): string => (name === "Acme Inference" ? "acme" : name.toLowerCase());

/** Contract, reasoning rule 5: what the preset says, what the request says, and what holds. */
const table: [PresetConfig, unknown, JsonFields | undefined][] = [
  [{}, undefined, undefined],
  [{}, { only: ["a"] }, undefined],
  [{ provider: { only: ["a"] } }, undefined, { only: ["a"] }],
  [{ provider: { only: ["a"] } }, null, { only: ["a"] }],
  [{ provider: { order: ["a", "b"] } }, { order: ["c", "B"] }, { order: ["c", "B", "a"] }],
  [{ provider: { ignore: ["a"] } }, { ignore: ["b"] }, { ignore: ["b", "a"] }],
  [{ provider: { ignore: ["a"] } }, { only: ["b"] }, { ignore: ["a"], only: ["b"] }],
  [{ provider: { only: ["a", "b"] } }, { only: ["B", "c"] }, { only: ["B"] }],
  [{ provider: { only: ["Acme Inference", "b"] } }, { only: ["acme"] }, { only: ["acme"] }],
  [{ provider: { only: ["a"] } }, { only: ["b"] }, { only: [] }],
  [{ provider: { only: ["a"] } }, { only: null }, { only: ["a"] }],
  [
    { provider: { require_params: ["tools"] }, require_params: ["seed", "tools"] },
    {},
    { require_params: ["tools", "seed"] },
  ],
  [
    { require_params: ["tools"] },
    { require_params: ["top_k"] },
    { require_params: ["top_k", "tools"] },
  ],
  [{ min_context: 10 }, undefined, { min_context: 10 }],
  [{ min_context: 10, provider: { min_context: 20 } }, {}, { min_context: 20 }],
  [{ min_context: 10 }, { min_context: 5 }, { min_context: 10 }],
  [{ min_context: 10 }, { min_context: 30 }, { min_context: 30 }],
  [
    { provider: { sort: "price", zdr: false } },
    { sort: "latency", zdr: true },
    { sort: "latency", zdr: true },
  ],
  [{ provider: { zdr: true } }, { zdr: false }, { zdr: true }],
  [
    { provider: { max_price: { prompt: "1" } } },
    { max_price: { completion: "2" } },
    { max_price: { completion: "2" } },
  ],
  [
    { provider: { quantizations: ["fp8"] } },
    { quantizations: ["fp16"] },
    { quantizations: ["fp16"] },
  ],
  [{ provider: { only: ["a"] } }, "wrong", undefined],
  [{ provider: { only: ["a"] } }, { only: "wrong" }, { only: "wrong" }],
  [{ min_context: 10 }, { min_context: "wrong" }, { min_context: "wrong" }],
];

test.each(table)("mergeRouting merges the preset %j with the request %j", (config, own, merged) => {
  expect(mergeRouting(config, own, idOf)).toEqual(merged);
});
