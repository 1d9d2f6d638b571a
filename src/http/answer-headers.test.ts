import { expect, test } from "bun:test";
import { AnswerHeaders } from "./answer-headers.ts";

const tier = { "x-ratelimit-tier": "pro", "x-ratelimit-limit": "1200" };
const json = { "content-type": "application/json" };

const answersOf = (headers: AnswerHeaders): [Record<string, string>, Record<string, string>] => [
  Object.fromEntries(headers.response("{}", 200).headers),
  { ...headers.all },
];

test("responses have the shared headers and their own, and no headers of other responses", () => {
  const expected = (trace: string) => ({ "request-id": trace, ...tier, ...json });
  for (const trace of ["one", "two", "three"]) {
    const headers = new AnswerHeaders({ "request-id": trace });
    headers.share(tier);
    headers.share(json);
    if (trace === "two") headers.set("retry-after", "1");
    const own = trace === "two" ? { "retry-after": "1" } : {};
    for (const written of answersOf(headers))
      expect(written).toEqual({ ...expected(trace), ...own });
  }
});

test("a response's own header replaces a shared one, in text and stream responses", async () => {
  const headers = new AnswerHeaders();
  headers.set("x-ratelimit-limit", "5");
  headers.share(tier);
  const stream = new ReadableStream<string>({
    start(controller) {
      controller.enqueue("text");
      controller.close();
    },
  });
  const response = headers.response(stream, 201);
  expect([response.status, await response.text()]).toEqual([201, "text"]);
  expect(response.headers.get("x-ratelimit-limit")).toBe("5");
  expect(headers.all["x-ratelimit-limit"]).toBe("5");
});

test("headers can be changed before and after sharing more, and a copy is independent", () => {
  const headers = new AnswerHeaders({ "request-id": "one" });
  headers.share(tier);
  const copy = headers.copy();
  headers.all["allow"] = "GET";
  headers.share(json);
  delete headers.all["x-ratelimit-tier"];
  copy.set("x-own", "1");
  for (const written of answersOf(headers))
    expect(written).toEqual({
      "request-id": "one",
      "x-ratelimit-limit": "1200",
      allow: "GET",
      ...json,
    });
  for (const written of answersOf(copy))
    expect(written).toEqual({ "request-id": "one", ...tier, "x-own": "1" });
});
