import { expect, test } from "bun:test";
import type { AttemptRecord } from "../../insights/generation-record.ts";
import { serverTimingText, timingsOf } from "./answer-metadata.ts";

const attempt = (provider: string, durationMs: number): AttemptRecord => ({
  provider,
  model: "acme/large",
  upstreamModel: "large",
  status: 200,
  outcome: "served",
  reason: null,
  durationMs,
});

test("the time between and after attempts is post, and the parts add up to the total", () => {
  const timings = timingsOf({
    startedMs: 1_000,
    firstSendMs: 1_002.5,
    endMs: 1_060,
    attempts: [attempt("acme", 20.25), attempt("backup", 30.5)],
  });
  expect(timings).toEqual({
    gw: 2.5,
    upstream: [
      { provider: "acme", dur: 20.25 },
      { provider: "backup", dur: 30.5 },
    ],
    post: 6.75,
    total: 60,
  });
  expect(serverTimingText(timings)).toBe(
    'gw;dur=2.5, upstream;dur=20.25;desc="acme", upstream;dur=30.5;desc="backup", post;dur=6.75, total;dur=60',
  );
});

test("no part is negative after rounding", () => {
  const timings = timingsOf({
    startedMs: 0,
    firstSendMs: 1,
    endMs: 3,
    attempts: [attempt("acme", 2.004)],
  });
  expect([timings.post, timings.total]).toEqual([0, 3]);
});
