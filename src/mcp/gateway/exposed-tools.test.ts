import { expect, test } from "bun:test";
import { exposedTools, type ReadServer, type ToolLimits } from "./exposed-tools.ts";
import { hashOf } from "./upstream-server.ts";

const read = (id: string, names: readonly string[], allowed: readonly string[] | null = null) =>
  ({
    server: {
      id,
      name: id,
      workspaceId: null,
      target: { transport: "streamable_http", url: "https://example.com/mcp" },
      auth: { type: "none" },
      allowedTools: allowed,
      priceNanoUsd: 0n,
      timeoutMs: 1_000,
      resultBytesMax: 1_024,
      createdAtMs: null,
      updatedAtMs: null,
    },
    tools: names.map((name) => {
      const definition = { name, inputSchema: { type: "object" } };
      return { definition, hash: hashOf(definition) };
    }),
    error: null,
    checkedAtMs: null,
  }) satisfies ReadServer;

const everything: ToolLimits = { keys: [null], request: null };

test("two thousand forged names find nothing but what is listed", () => {
  const servers = [
    read("a", ["read", "b__read", "x".repeat(90)]),
    read("a-b", ["read"], []),
    read("b", ["read", "drop"], ["read"]),
  ];
  const exposed = exposedTools(servers, {
    limits: {
      keys: [
        ["a", "b"],
        ["a/read", "a/b__read", "b"],
      ],
      request: null,
    },
    prefixed: true,
  });
  expect([...exposed.keys()]).toEqual(["a__read", "a__b__read", "b__read"]);
  const parts = ["a", "b", "a-b", "read", "drop", "b__read", "x".repeat(90), "", "..", "A", "%61"];
  const joints = ["__", "_", "-", "/", ".", ":", "\n", "\0", "__a__", "__b__", " ", "__read__"];
  const forged = parts.flatMap((left) =>
    joints.flatMap((joint) => parts.flatMap((right) => [left + joint + right, right + joint])),
  );
  expect(forged.length).toBeGreaterThan(2_000);
  const found = new Set(forged.filter((name) => exposed.has(name)));
  expect([...found].sort()).toEqual(["a__b__read", "a__read", "b__read"]);
  for (const name of found)
    expect(`${exposed.get(name)?.server.id}__${exposed.get(name)?.definition.name}`).toBe(name);
});

test("tools whose names would be equal stay apart, and each is its own", () => {
  const exposed = exposedTools([read("a", ["b__c", "b.c", "b c"]), read("a", ["b__c"])], {
    limits: everything,
    prefixed: true,
  });
  const names = [...exposed.keys()];
  expect(new Set(names).size).toBe(names.length);
  expect(names.every((name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name))).toBe(true);
  for (const [name, tool] of exposed) expect(tool.name).toBe(name);
});

test("an empty list of a request leaves nothing", () => {
  const exposed = exposedTools([read("a", ["read"])], {
    limits: { keys: [null], request: [] },
    prefixed: false,
  });
  expect(exposed.size).toBe(0);
});
