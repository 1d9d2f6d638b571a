import type { AttemptRecord } from "../insights/generation-record.ts";

const rounded = (milliseconds: number): number => Math.round(Math.max(0, milliseconds) * 100) / 100;

/** Where a request's time went, in milliseconds (contract: `Server-Timing` and the metadata frame's `timings`). */
export interface Timings {
  /** Own work before the first upstream call. */
  gw: number;
  upstream: { provider: string; dur: number }[];
  /** Own work after the upstream's last byte. */
  post: number;
  total: number;
}

/** Times from the marks of a request; a stream whose head is about to leave has no `post` yet. */
export function timingsOf(marks: {
  startedMs: number;
  firstSendMs: number;
  endMs: number;
  upstreamEndMs: number;
  attempts: readonly AttemptRecord[];
}): Timings {
  return {
    gw: rounded(marks.firstSendMs - marks.startedMs),
    upstream: marks.attempts.map(({ provider, durationMs }) => ({ provider, dur: rounded(durationMs) })),
    post: rounded(marks.endMs - marks.upstreamEndMs),
    total: rounded(marks.endMs - marks.startedMs),
  };
}

/** The header's text (W3C Server Timing). */
export function serverTimingText({ gw, upstream, post, total }: Timings): string {
  let text = `gw;dur=${gw}`;
  for (const { provider, dur } of upstream) text += `, upstream;dur=${dur};desc="${provider.replace(/["\\]/g, "")}"`;
  return `${text}, post;dur=${post}, total;dur=${total}`;
}
