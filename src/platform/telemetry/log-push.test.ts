import { afterAll, beforeAll, expect, test } from "bun:test";
import { createLogPush } from "./log-push.ts";

interface LogExport {
  resourceLogs: {
    resource: { attributes: { key: string; value: object }[] };
    scopeLogs: { logRecords: Record<string, unknown>[] }[];
  }[];
}

let collector: Bun.Server<undefined>;
let status = 200;
const arrived: { path: string; tenant: string | null; body: LogExport }[] = [];
beforeAll(() => {
  collector = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      arrived.push({
        path: new URL(request.url).pathname,
        tenant: request.headers.get("x-tenant"),
        body: (await request.json()) as LogExport,
      });
      return new Response("{}", { status, headers: { "content-type": "application/json" } });
    },
  });
});
afterAll(() => collector.stop(true));

const traceId = "0af7651916cd43dd8448eb211c80319c";
const push = (onExportError?: (error: unknown) => void) =>
  createLogPush({
    serviceName: "gateway",
    version: "1.2.3",
    instanceId: "node-1",
    resource: { "deployment.environment.name": "test" },
    target: {
      endpoint: `http://127.0.0.1:${collector.port}/v1/logs`,
      headers: { "x-tenant": "t1" },
    },
    ...(onExportError && { onExportError }),
  });

test("lines arrive as records in the trace of their request, also those from before the modules were loaded", async () => {
  const logs = push();
  const timeMs = Date.UTC(2026, 10, 28, 12, 0, 0, 250);
  logs.emit({
    timeMs,
    status: 200,
    fields: { trace_id: traceId, surface: "chat", streamed: true, first_token_ms: undefined },
  });
  logs.emit({
    timeMs,
    status: 503,
    fields: { trace_id: traceId, method: "POST", path: "/chat/completions" },
  });
  await logs.shutdown();
  const [sent] = arrived.splice(0);
  expect([sent?.path, sent?.tenant]).toEqual(["/v1/logs", "t1"]);
  const [resource] = sent?.body.resourceLogs ?? [];
  expect(resource?.resource.attributes).toEqual(
    expect.arrayContaining([
      { key: "service.name", value: { stringValue: "gateway" } },
      { key: "service.instance.id", value: { stringValue: "node-1" } },
      { key: "deployment.environment.name", value: { stringValue: "test" } },
    ]),
  );
  const records = resource?.scopeLogs.flatMap(({ logRecords }) => logRecords) ?? [];
  expect(records).toMatchObject([
    {
      timeUnixNano: `${timeMs}000000`,
      traceId,
      severityText: "INFO",
      body: { stringValue: "chat 200" },
      attributes: [
        { key: "trace_id", value: { stringValue: traceId } },
        { key: "surface", value: { stringValue: "chat" } },
        { key: "streamed", value: { boolValue: true } },
      ],
    },
    { severityText: "ERROR", body: { stringValue: "POST /chat/completions 503" } },
  ]);
});

test("a collector that refuses is reported, and ending goes on", async () => {
  status = 400;
  const failures: unknown[] = [];
  const logs = push((error) => void failures.push(error));
  logs.emit({ timeMs: 0, status: 200, fields: { trace_id: traceId } });
  await logs.shutdown();
  expect(failures).toHaveLength(1);
});
