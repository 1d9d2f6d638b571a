import { expect, test } from "bun:test";
import { classifyStatus } from "./upstream-failure.ts";

const date = "Thu, 26 Nov 2026 06:00:00 GMT";

test.each<[string, { retryAfter?: string; date?: string }, number | undefined]>([
  ["seconds", { retryAfter: "7" }, 7],
  ["a fraction of a second", { retryAfter: "0.2" }, 1],
  ["a date", { retryAfter: "Thu, 26 Nov 2026 06:01:30 GMT", date }, 90],
  ["a date in the past", { retryAfter: "Thu, 26 Nov 2026 05:00:00 GMT", date }, undefined],
  ["a date without a Date header", { retryAfter: "Thu, 26 Nov 2026 06:01:30 GMT" }, undefined],
  ["text", { retryAfter: "soon", date }, undefined],
  ["no value", { date }, undefined],
])("Retry-After with %s (RFC 9110, section 10.2.3)", (_, { retryAfter, ...others }, seconds) => {
  const headers = { ...others, ...(retryAfter !== undefined && { "retry-after": retryAfter }) };
  const failure = classifyStatus({ status: 429, message: null, upstreamCode: null, headers });
  expect(failure.retryAfterSeconds).toBe(seconds);
});
