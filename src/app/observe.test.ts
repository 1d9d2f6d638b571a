import { expect, test } from "bun:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { observeErrors } from "./observe.ts";

function scene() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const at =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push(`${level} ${message}${"err" in fields ? " with stack" : ""}`);
  const logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const observe = observeErrors({ logger, metrics: createMetrics(), clock });
  const tell = (error: GatewayError): void =>
    observe(error, { traceId: "t", method: "POST", path: "/x" });
  return { clock, lines, tell };
}

test("a feature that this installation does not offer is logged at debug level", () => {
  const { lines, tell } = scene();
  tell(new GatewayError("not_configured", "This installation sends no mail."));
  expect(lines).toEqual(["debug This installation sends no mail."]);
});

test("an internal error is logged each time with its stack", () => {
  const { lines, tell } = scene();
  for (let count = 0; count < 2; count += 1)
    tell(new GatewayError("internal_server_error", "failed"));
  expect(lines).toEqual(["error failed with stack", "error failed with stack"]);
});

test("refusals during an outage are logged once a minute for each cause", () => {
  const { clock, lines, tell } = scene();
  for (let count = 0; count < 100; count += 1)
    tell(new GatewayError("service_unavailable", "no charges are taken"));
  expect(lines.filter((line) => line.startsWith("warn"))).toEqual(["warn no charges are taken"]);
  clock.advance(60_000);
  tell(new GatewayError("service_unavailable", "no charges are taken"));
  expect(lines.filter((line) => line.startsWith("warn"))).toHaveLength(2);
});
