import { count, localTime, utc } from "../../lib/format.ts";
import { Facts } from "../../ui/parts.tsx";
import { requestCost, usd } from "../../lib/format.ts";
import type { Histogram } from "./api.ts";

const height = 56;

/**
 * Requests over the range as bars, those that failed in another colour, with their sums in words.
 */
export function ActivityHistogram({ histogram }: { histogram: Histogram }) {
  const {
    data,
    from,
    to,
    bucket_seconds: seconds,
    totals,
    complete,
    counted_from: countedFrom,
  } = histogram;
  const [startMs, stepMs] = [
    Math.floor(Date.parse(from) / (seconds * 1_000)) * seconds * 1_000,
    seconds * 1_000,
  ];
  const buckets = Math.max(1, Math.ceil((Date.parse(to) - startMs) / stepMs));
  const most = Math.max(1, ...data.map(({ requests }) => requests));
  return (
    <div>
      <svg
        viewBox={`0 0 ${buckets * 8} ${height}`}
        preserveAspectRatio="none"
        width="100%"
        height={height}
        role="img"
        aria-label={`${totals.requests} requests, of which ${totals.errors} failed`}
      >
        {data.map(({ bucket, requests, errors }) => {
          const x = ((Date.parse(bucket) - startMs) / stepMs) * 8;
          const [tall, bad] = [Math.max(2, (requests / most) * height), (errors / most) * height];
          return (
            <g key={bucket}>
              <title>{`${localTime(bucket)} (${utc(bucket)}): ${count(requests)} requests, ${count(errors)} failed`}</title>
              <rect x={x} y={height - tall} width="7" height={tall} fill="var(--series-1)" />
              {errors > 0 ? (
                <rect
                  x={x}
                  y={height - Math.max(2, bad)}
                  width="7"
                  height={Math.max(2, bad)}
                  fill="var(--bad)"
                />
              ) : null}
            </g>
          );
        })}
      </svg>
      <Facts
        rows={[
          ["Requests", count(totals.requests)],
          ["Failed", count(totals.errors)],
          ["Tokens", count(totals.tokens)],
          ["Cost", totals.cost < 0.005 ? requestCost(totals.cost) : usd(totals.cost)],
          ...(complete ? [] : [["Counted from", localTime(countedFrom)] as const]),
        ]}
      />
    </div>
  );
}
