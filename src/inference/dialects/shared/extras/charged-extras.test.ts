import { expect, test } from "bun:test";
import { askedExtras } from "./charged-extras.ts";

test.each([
  [{ tools: [{ codeExecution: {} }, { functionDeclarations: [] }] }, undefined],
  [{ tools: [{ codeExecution: {}, googleSearch: {} }] }, ["web_search"]],
  [{ tools: [{ fileSearch: {} }] }, ["file_search"]],
  [{ tools: [{ type: "code_execution" }] }, ["code_execution"]],
])("tools that are charged apart in %j", (body, names) => {
  expect(askedExtras(body)?.tools.map(({ name }) => name)).toEqual(names as string[]);
});
