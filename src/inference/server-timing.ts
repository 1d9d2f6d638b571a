import type { AttemptRecord } from "../insights/generation-record.ts";

const rounded = (milliseconds: number): number => Math.round(Math.max(0, milliseconds) * 100) / 100;

/** Where a request's time went, in milliseconds (contract: `Server-Timing` and the metadata frame's `timings`). */
export interface Timings {
  /** Own work before the first upstream call. */
  gw: number;
  upstream: { provider: string; dur: number }[];
  /** Own work after that: between attempts, and after the upstream's last byte. */
  post: number;
  /** The sum of all parts. */
  total: number;
}

/** Times from the marks of a request: what is no attempt and came after the first began is `post`, so that the parts make the total. */
export function timingsOf(marks: {
  startedMs: number;
  firstSendMs: number;
  endMs: number;
  attempts: readonly AttemptRecord[];
}): Timings {
  const gw = rounded(marks.firstSendMs - marks.startedMs);
  const upstream = marks.attempts.map(({ provider, durationMs }) => ({
    provider,
    dur: rounded(durationMs),
  }));
  const asked = upstream.reduce((sum, { dur }) => sum + dur, gw);
  const post = rounded(marks.endMs - marks.startedMs - asked);
  return { gw, upstream, post, total: rounded(asked + post) };
}

/** The header's text (W3C Server Timing). */
export function serverTimingText({ gw, upstream, post, total }: Timings): string {
  let text = `gw;dur=${gw}`;
  for (const { provider, dur } of upstream)
    text += `, upstream;dur=${dur};desc="${provider.replace(/["\\]/g, "")}"`;
  return `${text}, post;dur=${post}, total;dur=${total}`;
}
