import { describe, expect, test } from "bun:test";
import { readOtlpSettings } from "./otlp-settings.ts";

describe("where telemetry is sent", () => {
  test("is nowhere without an endpoint", () =>
    expect(readOtlpSettings({})).toEqual({ serviceName: "switchyard" }));

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/" }, "http://c:4318"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/otel" }, "http://c:4318/otel"],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c", OTEL_SDK_DISABLED: "true" }, undefined],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, undefined],
  ])("%j is completed for both kinds: %p", (environment, base) => {
    const { traces, metrics } = readOtlpSettings(environment);
    expect(traces?.endpoint).toBe(base && `${base}/v1/traces`);
    expect(metrics?.endpoint).toBe(base && `${base}/v1/metrics`);
  });

  test.each([
    ["TRACES", "traces"],
    ["METRICS", "metrics"],
  ] as const)("of %s alone is said by their own variables", (name, signal) => {
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c" };
    const own = { ...base, [`OTEL_EXPORTER_OTLP_${name}_ENDPOINT`]: "http://t/own" };
    expect(readOtlpSettings(own)[signal]?.endpoint).toBe("http://t/own");
    const none = readOtlpSettings({ ...base, [`OTEL_${name}_EXPORTER`]: "none" });
    expect(none[signal]).toBeUndefined();
    expect(Object.keys(none)).toHaveLength(2);
  });

  test("takes headers as name=value pairs, percent-encoded, a kind's own last", () => {
    const { traces, metrics, serviceName } = readOtlpSettings({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20abc==, x-a=1,broken",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-a=2",
      OTEL_SERVICE_NAME: "edge",
    });
    expect(traces?.headers).toEqual({ authorization: "Basic abc==", "x-a": "2" });
    expect(metrics?.headers).toEqual({ authorization: "Basic abc==", "x-a": "1" });
    expect(serviceName).toBe("edge");
  });

  test("waits a minute between two exports of metrics, or as long as is said", () => {
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c" };
    expect(readOtlpSettings(base).metrics?.intervalMs).toBe(60_000);
    const often = { ...base, OTEL_METRIC_EXPORT_INTERVAL: "5000" };
    expect(readOtlpSettings(often).metrics?.intervalMs).toBe(5_000);
  });
});
