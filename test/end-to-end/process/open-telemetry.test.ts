import { afterAll, expect, test } from "bun:test";
import { endProcesses, startProcess } from "../../support/process.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { postChat } from "./support/ask.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";

afterAll(endProcesses);

test("a process that ends has exported the traces and metrics of its requests", async () => {
  const upstream = await startFaultUpstream();
  const exports = new Map<string, string[]>();
  const collector = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      exports.set(pathname, [...(exports.get(pathname) ?? []), await request.text()]);
      return Response.json({});
    },
  });
  try {
    const gateway = await startProcess({
      yaml: acmeYaml(upstream.baseUrl),
      environment: {
        ...bootstrapVariables,
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      },
    });
    expect((await postChat(gateway)).status).toBe(200);
    expect(await gateway.terminate()).toBe(0);
    const [traces, metrics] = ["/v1/traces", "/v1/metrics"].map((path) =>
      (exports.get(path) ?? []).join(""),
    );
    expect(traces).toContain('"gen_ai.provider.name","value":{"stringValue":"acme"}');
    expect(traces).toContain('"gen_ai.usage.output_tokens"');
    for (const name of [
      "gen_ai.client.operation.duration",
      "gen_ai.client.token.usage",
      "switchyard_charged_nano_usd_total",
    ])
      expect(metrics).toContain(`"name":"${name}"`);
    expect(metrics).toContain('"service.instance.id"');
  } finally {
    upstream.stop();
    await collector.stop(true);
  }
});
