import { describe, expect, test } from "bun:test";
import { type DialectId, dialectIds } from "../src/inference/canonical/dialect-id.ts";
import { type Outcome, outcomeOf } from "./support/sdk-fields/field-outcome.ts";
import outcomes from "./support/sdk-fields/outcomes.json";
import { type RequestField, requestFields } from "./support/sdk-fields/request-fields.ts";

/**
 * What becomes of every optional field of the SDKs' request types, before an upstream of each
 * dialect: one letter for each, in the order of `dialectIds`. A newer SDK with a new field fails
 * here with the field's name and the row to add to outcomes.json.
 */
const table: Readonly<Record<string, Readonly<Record<string, string>>>> = outcomes;

const letters: Readonly<Record<Outcome, string>> = {
  sent: "s",
  named: "n",
  refused: "r",
  silent: "-",
};

/** Fields that may be left out without being named, and why. */
const unnamed: readonly (readonly [why: string, fields: RegExp])[] = [
  ["the gateway acts on it", /^(?:models?|provider|session_id|trace|plugins)\b/],
  ["the gateway asks for what it needs and answers as asked", /^stream(?:_options)?\b/],
  ["stored, or kept with the record, by the gateway", /^(?:store|metadata|user)\b/],
  ["the lifecycle of stored responses", /^(?:background|conversation|previous_response_id)$/],
  [
    "the sample is what an absent field means",
    /^(?:n|parallel_tool_calls|service_tier|tool_choice|reasoning|text|thinking|output_config|input|background_options)$/,
  ],
  [
    "the sample is empty",
    /(?:parameters|\[web_search\w*\]\.filters|\[(?:document|search_result)\]\.citations)$/,
  ],
  ["the default of a search", /\.external_web_access$|\.user_location\.type$/],
  ["a search goes back as its addresses", /^messages.*\[web_search_tool_result\]/],
  ["the default of the variant", /^(?:tools\[custom\]|input\[message\])\.type$|\.caller$/],
  ["needs a field beside it", /^(?:top_logprobs|function_call)$/],
  ["every dialect with schemas is strict", /\.strict$/],
  ["names an item of the client's", /^input\[[a-z_]+\]\.(?:id|status|call_id)$/],
  ["part of reasoning that only its maker reads", /\.reasoning_details\[/],
  ["a tool that a search has found is one text", /\[tool_reference\]\.cache_control/],
  [
    "an unknown lifetime is the provider's own",
    /\.(?:cache_control|prompt_cache_breakpoint)\.ttl$/,
  ],
  ["Claude shows summaries without being asked", /^reasoning\.(?:summary|enabled)$/],
];

const fields = await requestFields();

const rowOf = (field: RequestField, client: DialectId): string =>
  dialectIds.map((upstream) => letters[outcomeOf(field, { client, upstream })]).join("");

describe.each([...fields])("%s", (name, list) => {
  const client = name.split(" of ")[0] as DialectId;
  const rows = table[name] ?? {};
  const actual = new Map(list.map((field) => [field.path, rowOf(field, client)]));

  test("every field has its row, and what becomes of it is what the row says", () => {
    const other = [...actual].filter(([path, row]) => rows[path] !== row);
    expect(Object.fromEntries(other)).toEqual({});
    expect(Object.keys(rows).filter((path) => !actual.has(path))).toEqual([]);
  });

  test("no field is dropped without being named", () => {
    const dropped = [...actual].filter(
      ([path, row]) => row.includes("-") && !unnamed.some(([, known]) => known.test(path)),
    );
    expect(Object.fromEntries(dropped)).toEqual({});
  });
});

test("the types of three SDKs are read to the leaves", () => {
  expect(fields.size).toBe(6);
  for (const list of fields.values()) expect(list.length).toBeGreaterThan(80);
});
