import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { startGateway, testManagementKey, type TestGateway } from "../../support/gateway.ts";
import { at } from "./at.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sandbox: true });
});
afterAll(() => gateway.stop());

const demand = (zdr: boolean): Promise<Response> =>
  fetch(`${gateway.baseUrl}/security/privacy`, {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ zdr }),
  });
afterEach(async () => {
  expect((await demand(false)).status).toBe(200);
});

type Fields = Record<string, unknown>;

const requests = {
  "/chat/completions": {
    model: "sandbox/chat:free",
    messages: [{ role: "user", content: "Hi" }],
  },
  "/messages": {
    model: "sandbox/chat:free",
    max_tokens: 50,
    messages: [{ role: "user", content: "Hi" }],
  },
  "/responses": { model: "sandbox/chat:free", input: "Hi" },
  "/embeddings": { model: "sandbox/embed:free", input: "Hi" },
} as const;
type Path = keyof typeof requests;

/** Sends a request, and returns the end user and the program of its record. */
async function senderOf(path: Path, fields: Fields, agent = "App/1.0"): Promise<unknown[]> {
  const answer = await gateway.post(
    path,
    { ...requests[path], ...fields },
    { headers: { "user-agent": agent } },
  );
  await answer.text();
  const id = answer.headers.get("x-service-trace-id");
  const record = await (await gateway.get(`/generation/gen_${id}`)).json();
  return [at(record, "data.external_user"), at(record, "data.user_agent")];
}

const named: [path: Path, fields: Fields, user: string | null][] = [
  ["/chat/completions", { user: "u-1" }, "u-1"],
  ["/chat/completions", { user: "u-1", stream: true }, "u-1"],
  ["/chat/completions", { safety_identifier: "s-1" }, "s-1"],
  // As budgets of customers count it.
  ["/chat/completions", { user: "u-1", safety_identifier: "s-1" }, "s-1"],
  ["/chat/completions", { metadata: { user_id: "order 7" } }, null],
  ["/chat/completions", {}, null],
  ["/messages", { metadata: { user_id: "m-1" } }, "m-1"],
  ["/messages", { metadata: { user_id: "m-1" }, stream: true }, "m-1"],
  ["/messages", { metadata: { user_id: null } }, null],
  ["/messages", {}, null],
  ["/responses", { user: "u-1" }, "u-1"],
  ["/responses", { safety_identifier: "s-1", stream: true }, "s-1"],
  ["/embeddings", { user: "u-1" }, "u-1"],
];

test.each(named)("the record of %s with %p names its end user and its program", async (...row) => {
  const [path, fields, user] = row;
  expect(await senderOf(path, fields)).toEqual([user, "App/1.0"]);
});

test.each([
  ["\u0000a\r\nb\u007f", "ab"],
  ["x".repeat(300), "x".repeat(200)],
  [`${"x".repeat(199)}😀`, `${"x".repeat(199)}\ufffd`],
  ["\n", null],
  ["", null],
])("of the end user %j, %j is kept", async (user, kept) => {
  expect(await senderOf("/chat/completions", { user })).toEqual([kept, "App/1.0"]);
});

test("a long User-Agent is cut", async () => {
  const agent = `App/${"1".repeat(400)}`;
  expect(await senderOf("/responses", {}, agent)).toEqual([null, agent.slice(0, 256)]);
});

test.each(Object.keys(requests) as Path[])(
  "neither is kept of %s under zero data retention",
  async (path) => {
    const fields = { user: "u-1", metadata: { user_id: "m-1" } };
    expect(await senderOf(path, { ...fields, provider: { zdr: true } })).toEqual([null, null]);
    expect((await demand(true)).status).toBe(200);
    expect(await senderOf(path, fields)).toEqual([null, null]);
  },
);

test("the record of a request that nobody could serve names them too", async () => {
  const fields = { user: "u-1", provider: { only: ["nobody"] } };
  expect(await senderOf("/chat/completions", fields)).toEqual(["u-1", "App/1.0"]);
});
