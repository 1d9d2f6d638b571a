import { assert } from "../platform/lib/assert.ts";
import { dayMs } from "../platform/lib/clock.ts";
import type { Deprecation } from "./endpoint.ts";

/** What the contract promises between the announcement and the end. */
const noticeDaysMin = 365;

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and a `Link` to the way out, as every answer of such an endpoint has them. */
export function deprecationHeaders({ since, until, link }: Deprecation): Record<string, string> {
  const sinceMs = Date.parse(`${since}T00:00:00Z`);
  const headers: Record<string, string> = { deprecation: `@${sinceMs / 1000}` };
  if (until !== undefined) {
    const untilMs = Date.parse(`${until}T00:00:00Z`);
    assert(
      untilMs - sinceMs >= noticeDaysMin * dayMs,
      `an endpoint that is deprecated since ${since} ends a year later at the earliest`,
    );
    headers["sunset"] = new Date(untilMs).toUTCString();
  }
  if (link !== undefined) headers["link"] = `<${link}>; rel="deprecation"`;
  return headers;
}
