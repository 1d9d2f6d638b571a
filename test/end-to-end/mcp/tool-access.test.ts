import { expect, test } from "bun:test";
import { endpoints } from "../../../src/endpoints/index.ts";
import { tools } from "../../../src/mcp/tools/index.ts";
import { toolContract } from "./tool-contract.ts";

test("every tool has a row of the contract, and every row a tool, with the same scope", () => {
  const declared = Object.fromEntries(tools.map(({ name, scope, operators }) => [name, { scope, ...(operators && { operators }) }]));
  const wanted = Object.fromEntries(Object.entries(toolContract).map(([name, { scope, operators }]) =>
    [name, { scope, ...(operators && { operators }) }]));
  expect(declared).toEqual(wanted);
});

test("a tool's endpoint is in the table, and asks for the tool's own scope", () => {
  for (const { name, scope, operators, endpoint: wanted } of tools) {
    if (wanted === undefined) continue;
    const endpoint = endpoints.find(({ method, path }) => `${method} ${path}` === wanted);
    const needs = endpoint?.access.anonymous || endpoint?.access.open ? null : endpoint?.access.managementScope;
    expect([name, needs]).toEqual([name, operators ? "write:management-keys" : scope]);
  }
});
