import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { errorOf } from "./error-envelope-of.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

test.each([
  "/api",
  "/api/v1",
  "/api/v1/",
  "/api/v1/nothing",
  "/v1/nothing",
  "/api/v2/models",
  "/api/v1/v1/models",
  "/presets",
  "/api/v1/models/",
  "/api/v1/generation/",
  "/api/v1/models/acme/large/more",
  "/api/v1/keys/",
  "/api/v1/docs",
])("%p is not an endpoint and returns 404", async (path) => {
  for (const method of ["GET", "POST", "DELETE"]) {
    const error = await errorOf(await fetch(gateway.origin + path, { method }));
    expect(error).toMatchObject({
      status: 404,
      code: "not_found",
      type: "not_found_error",
      param: null,
    });
    expect(error.headers.get("x-should-retry")).toBe("false");
  }
});

test.each([
  ["GET", "/chat/completions", "POST"],
  ["DELETE", "/chat/completions", "POST"],
  ["PUT", "/keys", "GET, HEAD, POST"],
  ["PATCH", "/credits", "GET, HEAD"],
  ["POST", "/models/acme/large", "GET, HEAD"],
  ["POST", "/models/count", "GET, HEAD"],
  ["DELETE", "/generation/gen_1", "GET, HEAD"],
  ["OPTIONS", "/credits", "GET, HEAD"],
])("%s %s returns 405 that names the allowed methods", async (method, path, allow) => {
  for (const base of ["/api/v1", "/v1"]) {
    const error = await errorOf(await fetch(gateway.origin + base + path, { method }));
    expect(error).toMatchObject({
      status: 405,
      code: "method_not_allowed",
      type: "invalid_request_error",
    });
    expect(error.headers.get("allow")?.split(", ").sort().join(", ")).toBe(allow);
  }
});

test("HEAD responds like GET without a body", async () => {
  const [head, get] = await Promise.all(
    ["HEAD", "GET"].map((method) => fetch(`${gateway.baseUrl}/models`, { method })),
  );
  expect(head?.status).toBe(200);
  expect(await head?.text()).toBe("");
  expect(head?.headers.get("content-length")).toBe(String((await get?.text())?.length));
});

test.each([
  ["/models/100%25", 404],
  ["/models/%25E0%25A4%25A", 404],
  ["/models/%E0%A4%A", 404],
  ["/models/acme%252Flarge", 404],
  ["/generation/%25", 404],
  ["/generation/%00", 404],
  ["/logos/..%2f..%2fetc%2fpasswd", 404],
])(
  "a path with invalid percent-encoding, %s, returns the same error as an unknown record",
  async (path, status) => {
    expect(await errorOf(await gateway.get(path))).toMatchObject({ status, code: "not_found" });
  },
);

/** Sends bytes as they are and reads what comes back until the connection ends. */
function sendRaw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(gateway.origin).port), "127.0.0.1", () =>
      socket.write(text),
    );
    let answer = "";
    socket.on("data", (bytes) => (answer += String(bytes)));
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}

test.each([
  ["GET /nowhere", "bad host"],
  ["GET /api/v1/credits", "bad host"],
  ["GET /api/v1/keys?include_disabled=true", "[::zz"],
  ["GET /api/v1/models?sort=name", "a b c"],
  ["GET /healthz", "user@host"],
  ["GET /healthz", "a/b"],
  ["GET /healthz", "a\r\nHost: b"],
  ["GET /healthz", "a:80x"],
])("%s with the invalid host %p returns 400 and closes the connection", async (line, host) => {
  const answer = await sendRaw(`${line} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(answer).toStartWith("HTTP/1.1 400 ");
  expect(answer).toMatch(/x-service-trace-id: [0-9a-f]{32}/);
  expect(answer).toMatch(/content-type: application\/json/i);
  expect(answer).toMatch(/connection: close/i);
});

test.each(["Content-Length: 2\r\nContent-Length: 2", "Content-Length: 2\r\nExpect: a-miracle"])(
  "a request with %p returns 400",
  async (lines) => {
    expect(
      await sendRaw(`POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n{}`),
    ).toStartWith("HTTP/1.1 400 ");
  },
);

test.each(["a", "a:8787", "[::1]:8787", "127.0.0.1:", ""])(
  "GET /healthz with the host %p returns 200",
  async (host) => {
    expect(
      await sendRaw(`GET /healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    ).toStartWith("HTTP/1.1 200 ");
  },
);
