import { expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, testLlmKey } from "../../support/gateway.ts";

/** A checkout of github.com/openresponses/openresponses with its packages installed. */
const suite = process.env["OPEN_RESPONSES_SUITE"] ?? "";

/** What the gateway does not offer, and says so. */
const notOffered = /WebSocket/;

/**
 * Passes requests on with the header by which a validator asks for the metadata within the last
 * event.
 */
const withInlineMetadata = (origin: string) =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("x-service-metadata-frame", "inline");
      return fetch(origin + pathname + search, {
        method: request.method,
        headers,
        body: (await request.text()) || null,
      });
    },
  });

const title = "the Open Responses compliance suite (needs OPEN_RESPONSES_SUITE, a checkout of it)";

test.skipIf(suite === "")(
  title,
  async () => {
    const gateway = await startGateway({ sandbox: true });
    const shim = withInlineMetadata(gateway.origin);
    const child = Bun.spawn(
      [
        process.execPath,
        "run",
        join(suite, "bin/compliance-test.ts"),
        "--base-url",
        `http://127.0.0.1:${shim.port}/v1`,
        "--api-key",
        testLlmKey,
        "--model",
        "sandbox/chat:free",
        "--json",
      ],
      { cwd: suite, stderr: "ignore" },
    );
    const report = JSON.parse(await new Response(child.stdout).text()) as {
      results: { name: string; status: string }[];
    };
    await shim.stop(true);
    await gateway.stop();
    const failed = report.results.filter(
      ({ status, name }) => status === "failed" && !notOffered.test(name),
    );
    expect(failed).toEqual([]);
    expect(
      report.results.filter(({ status }) => status === "passed").length,
    ).toBeGreaterThanOrEqual(8);
  },
  300_000,
);
