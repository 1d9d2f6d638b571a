import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ScriptedBackground } from "../../support/scripted-background.ts";
import {
  newResponse,
  question,
  queuedJob,
  recordOf,
  responseId,
} from "../../support/stored-responses.ts";
import { errorOf } from "./error-envelope-of.ts";
import {
  keys,
  startStoredResponses,
  type StoredResponsesGateway,
} from "./stored-responses-gateway.ts";

let stage: StoredResponsesGateway;
beforeAll(async () => {
  stage = await startStoredResponses(new ScriptedBackground().run);
});
afterAll(() => stage.stop());

let count = 0;
/** Keeps a response of the first workspace under an id of its own. */
async function keep(changes: Parameters<typeof newResponse>[1] = {}): Promise<string> {
  const id = responseId(++count);
  await stage.responses.insert(newResponse(id, changes));
  return id;
}

const json = async (method: string, path: string, key?: string): Promise<unknown> =>
  (await stage.ask(method, path, key)).json();

const routes: [string, (id: string) => [string, string]][] = [
  ["retrieving", (id) => ["GET", `/responses/${id}`]],
  ["replaying", (id) => ["GET", `/responses/${id}?stream=true`]],
  ["listing the input of", (id) => ["GET", `/responses/${id}/input_items`]],
  ["cancelling", (id) => ["POST", `/responses/${id}/cancel`]],
  ["deleting", (id) => ["DELETE", `/responses/${id}`]],
];

describe.each(routes)("%s a response", (_, request) => {
  const notFound = (id: string) => ({
    status: 404,
    code: "not_found",
    type: "not_found_error",
    param: null,
    message: `Response with id '${id}' not found.`,
  });

  test("of another workspace returns 404, the same as for an unknown one", async () => {
    const id = await keep({ background: true });
    const [method, path] = request(id);
    expect(await errorOf(await stage.ask(method, path, keys.stranger))).toMatchObject(notFound(id));
    expect(await json("GET", `/responses/${id}`)).toEqual(recordOf(id));
  });

  test.each([responseId(0xfff), "resp_1", "gen_1", "%25", "%00"])(
    "that does not exist (%s) returns 404",
    async (id) => {
      const [method, path] = request(id);
      expect(await errorOf(await stage.ask(method, path))).toMatchObject(
        notFound(decodeURIComponent(id)),
      );
    },
  );
});

test("a response is retrieved as stored, by every key of its workspace, under both base URLs", async () => {
  const id = await keep({
    record: { service_metadata: { requestId: "1" }, output_text: "Grüße 😀" },
  });
  const expected = JSON.stringify(
    recordOf(id, { service_metadata: { requestId: "1" }, output_text: "Grüße 😀" }),
  );
  for (const key of [keys.own, keys.colleague]) {
    const response = await stage.ask(
      "GET",
      `/responses/${id}?include[]=reasoning.encrypted_content&include=x&starting_after=3`,
      key,
    );
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.text()).toBe(expected);
  }
  const other = await fetch(`${stage.gateway.origin}/v1/responses/${id}`, {
    headers: { authorization: `Bearer ${keys.own}` },
  });
  expect(await other.text()).toBe(expected);
});

test("a running response has its current status", async () => {
  const id = responseId(++count);
  await stage.responses.insert(queuedJob(id));
  expect(await json("GET", `/responses/${id}`)).toEqual(
    recordOf(id, { status: "queued", output: [], completed_at: null }),
  );
});

describe("input items", () => {
  let path: string;
  beforeAll(async () => {
    const items = Array.from({ length: 30 }, (_, index) => ({
      ...question(`${index}`),
      id: `msg_${index}`,
    }));
    path = `/responses/${await keep({ inputItems: items })}/input_items`;
  });
  const ids = (first: number, last: number): string[] =>
    Array.from(
      { length: Math.abs(last - first) + 1 },
      (_, step) => `msg_${first + Math.sign(last - first) * step}`,
    );

  const pages: [string, string[], boolean][] = [
    ["", ids(29, 10), true],
    ["?after=msg_10", ids(9, 0), false],
    ["?order=asc&limit=3&include[]=message.input_image.image_url", ids(0, 2), true],
    ["?order=asc&limit=100&after=msg_27", ids(28, 29), false],
    ["?limit=1", ["msg_29"], true],
  ];
  test.each(pages)("return the page %p", async (query, expected, more) => {
    const page = (await json("GET", path + query)) as { data: { id: string; type: string }[] };
    expect(page).toMatchObject({
      object: "list",
      first_id: expected[0],
      last_id: expected.at(-1),
      has_more: more,
    });
    expect(page.data.map(({ id }) => id)).toEqual(expected);
    expect(new Set(page.data.map(({ type }) => type))).toEqual(new Set(["message"]));
  });

  test.each([
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=x", "limit"],
    ["limit=1.5", "limit"],
    ["limit=", "limit"],
    ["order=up", "order"],
    ["after=msg_none", "after"],
  ])("%s returns 400", async (query, param) => {
    expect(await errorOf(await stage.ask("GET", `${path}?${query}`))).toMatchObject({
      status: 400,
      code: "bad_request",
      param,
    });
  });

  test("without ids get ids that work as cursors", async () => {
    const bare = `/responses/${await keep({ inputItems: [question("1"), question("2")] })}/input_items?order=asc`;
    const {
      data: [first, second],
    } = (await json("GET", bare)) as { data: { id: string }[] };
    expect(await json("GET", `${bare}&after=${first?.id}`)).toMatchObject({
      data: [{ id: second?.id, content: [{ text: "2" }] }],
    });
  });
});

test("a deleted response returns 404", async () => {
  const id = await keep();
  expect(await json("DELETE", `/responses/${id}`)).toEqual({
    id,
    object: "response",
    deleted: true,
  });
  for (const [method, path] of routes.map(([, request]) => request(id))) {
    expect(await errorOf(await stage.ask(method, path))).toMatchObject({ status: 404 });
  }
});

test("only background responses can be cancelled or replayed", async () => {
  const id = await keep();
  expect(await errorOf(await stage.ask("POST", `/responses/${id}/cancel`))).toMatchObject({
    status: 400,
    code: "bad_request",
  });
  expect(await errorOf(await stage.ask("GET", `/responses/${id}?stream=true`))).toMatchObject({
    status: 400,
    param: "stream",
  });
  expect(await json("GET", `/responses/${id}?stream=false`)).toEqual(recordOf(id));
});

test.each([
  ["stream=yes", "stream"],
  ["stream=true&starting_after=x", "starting_after"],
  ["stream=true&starting_after=-1", "starting_after"],
])("%s returns 400", async (query, param) => {
  const id = await keep({ background: true });
  expect(await errorOf(await stage.ask("GET", `/responses/${id}?${query}`))).toMatchObject({
    status: 400,
    code: "bad_request",
    param,
  });
});
