import { afterAll, beforeAll, expect, test } from "bun:test";
import { request } from "node:http";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { at } from "./at.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ sockets: { enabled: false, lanes: 1 } });
});
afterAll(() => gateway.stop());

/** Asks for a WebSocket as clients do (RFC 6455, section 4.1). */
function upgrade(
  path: string,
): Promise<{ status: number; upgrade: string | undefined; retry: unknown; body: unknown }> {
  return new Promise((resolve, reject) => {
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    const asked = request(gateway.origin + path, { headers });
    asked.on("error", reject);
    asked.on("response", (response) => {
      let text = "";
      response.on("data", (part) => (text += String(part)));
      const {
        statusCode: status = 0,
        headers: { upgrade: protocol, "x-should-retry": retry },
      } = response;
      response.on("end", () =>
        resolve({ status, upgrade: protocol, retry, body: JSON.parse(text) }),
      );
    });
    asked.end();
  });
}

const paths = ["/v1/responses", "/api/v1/responses", "/v1/chat/completions"];
test.each(paths)(
  "a WebSocket on %s returns 426 at once, so that clients continue over HTTP",
  async (path) => {
    const { body, ...head } = await upgrade(path);
    expect(head).toEqual({ status: 426, upgrade: "HTTP/1.1", retry: "false" });
    expect(at(body, "error.code")).toBe("upgrade_required");
  },
);

test("GET without an upgrade returns 405", async () => {
  expect((await gateway.get("/responses")).status).toBe(405);
});

test("a WebSocket on an unknown path returns 404", async () => {
  expect((await upgrade("/v1/nothing")).status).toBe(404);
});
