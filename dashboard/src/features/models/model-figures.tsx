import { useQuery } from "@tanstack/react-query";
import { useScope } from "../../lib/session.ts";
import { count, countOf, duration, localTime, share as shareOf, utc } from "../../lib/format.ts";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Table } from "../../ui/table.tsx";
import { ProviderName } from "../provider-keys/provider-names.tsx";
import style from "../../ui/ui.module.css";
import { type LatencyBucket, type Uptime, latencyQuery, metricsQuery, uptimeQuery } from "./api.ts";

const height = 40;

const percentText = (share: number | null): string => (share === null ? "–" : shareOf(share, 1));

/** Ninety days as bars: the taller, the more attempts found the provider there. */
function UptimeBars({ provider, uptime, buckets }: Uptime) {
  const tried = buckets.filter(({ attempts }) => attempts > 0).length;
  return (
    <svg
      viewBox={`0 0 ${buckets.length * 4} ${height}`}
      preserveAspectRatio="none"
      width="100%"
      height={height}
      role="img"
      aria-label={`${provider}: ${percentText(uptime)} of attempts answered, on ${tried} of ${countOf(buckets.length, "day")}`}
    >
      {buckets.map(({ date, attempts, uptime: share }, index) => (
        <g key={date}>
          <title>{`${date} UTC: ${attempts === 0 ? "not tried" : `${percentText(share)} of ${countOf(attempts, "attempt")}`}`}</title>
          <rect
            x={index * 4}
            y={share === null ? height - 4 : height * (1 - Math.max(0.1, share))}
            width="3"
            height={share === null ? 4 : height * Math.max(0.1, share)}
            fill={
              share === null
                ? "var(--series-other)"
                : share >= 0.99
                  ? "var(--good)"
                  : share >= 0.9
                    ? "var(--warning)"
                    : "var(--bad)"
            }
          />
        </g>
      ))}
    </svg>
  );
}

/** The longest duration within which 95 % of the requests of a span were answered. */
const longestOf = (buckets: readonly LatencyBucket[]): number =>
  Math.max(1, ...buckets.map(({ total }) => total.p95 ?? 0));

/** Says what the bars of durations are, and how long the tallest one is. */
const LatencyKey = ({ buckets }: { buckets: readonly LatencyBucket[] }) => (
  <ul className={style["key"]}>
    <li>
      <span className={style["swatch"]} style={{ background: "var(--series-1)" }} />
      half of the requests
    </li>
    <li>
      <span className={style["swatch"]} style={{ background: "var(--series-other)" }} />
      95 % of them, at most {duration(longestOf(buckets))}
    </li>
  </ul>
);

/** The median and the slowest of twenty, as two bars for each span of time. */
function LatencyBars({ buckets }: { buckets: readonly LatencyBucket[] }) {
  const most = longestOf(buckets);
  return (
    <svg
      viewBox={`0 0 ${buckets.length * 8} ${height * 2}`}
      preserveAspectRatio="none"
      width="100%"
      height={height * 2}
      role="img"
      aria-label={`Duration of ${buckets.reduce((sum, { samples }) => sum + samples, 0)} sampled requests, at most ${duration(most)} at the 95th percentile`}
    >
      {buckets.map(({ bucket, samples, total }, index) => (
        <g key={bucket}>
          <title>{`${localTime(bucket)} (${utc(bucket)}): half within ${duration(total.p50)}, 95 % within ${duration(total.p95)}, ${count(samples)} sampled`}</title>
          <rect
            x={index * 8}
            y={height * 2 * (1 - (total.p95 ?? 0) / most)}
            width="7"
            height={height * 2 * ((total.p95 ?? 0) / most)}
            fill="var(--series-other)"
          />
          <rect
            x={index * 8}
            y={height * 2 * (1 - (total.p50 ?? 0) / most)}
            width="7"
            height={height * 2 * ((total.p50 ?? 0) / most)}
            fill="var(--series-1)"
          />
        </g>
      ))}
    </svg>
  );
}

/** How a model's providers answer: now, over 90 days, and to this workspace. */
export function ModelFigures({ id }: { id: string }) {
  const metrics = useQuery(metricsQuery(id));
  const uptime = useQuery(uptimeQuery(id));
  const seesRequests = useScope("read:analytics");
  const latency = useQuery({ ...latencyQuery(id), enabled: seesRequests });
  return (
    <>
      <Card title="Last five minutes" flush>
        <Loaded query={metrics} height={120}>
          {({ data }) => (
            <Table
              rows={data}
              rowKey={({ provider }) => provider}
              caption="Latency and throughput"
              columns={[
                {
                  head: "Provider",
                  phone: "title",
                  cell: ({ provider }) => <ProviderName id={provider} />,
                },
                {
                  head: "Requests",
                  number: true,
                  phone: "figure",
                  unit: ({ requests }) => (requests === 1 ? "request" : "requests"),
                  cell: ({ requests }) => count(requests),
                },
                {
                  head: "Failed",
                  number: true,
                  cell: ({ error_rate: share }) => percentText(share),
                },
                {
                  head: "First token, p50",
                  number: true,
                  phone: "when",
                  unit: ({ latency_ms: at }) => (at === null ? undefined : "to the first token"),
                  cell: ({ latency_ms: at }) => (at === null ? "no answer" : duration(at.p50)),
                },
                {
                  head: "p99",
                  number: true,
                  cell: ({ latency_ms: at }) => duration(at?.p99),
                },
                {
                  head: "Throughput",
                  number: true,
                  phone: "state",
                  cell: ({ throughput_tps: at }) =>
                    at === null ? (
                      <span className={style["notOnPhone"]}>–</span>
                    ) : (
                      `${count(at.p50)} tokens/s`
                    ),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
      <Card title="Uptime, 90 days (UTC)" flush>
        <Loaded query={uptime} height={120}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty>No provider serves it.</Empty>
            ) : (
              <Table
                rows={data}
                rowKey={({ provider }) => provider}
                caption="Uptime"
                columns={[
                  {
                    head: "Provider",
                    phone: "title",
                    cell: ({ provider }) => <ProviderName id={provider} />,
                  },
                  {
                    head: "Answered",
                    number: true,
                    phone: "figure",
                    cell: (each) => percentText(each.uptime),
                  },
                  { head: "By day", phone: "note", cell: (each) => <UptimeBars {...each} /> },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      {seesRequests ? (
        <Card title="Duration of your requests, 7 days">
          <Loaded query={latency} height={120}>
            {({ data }) =>
              data.length === 0 ? (
                <Empty>This workspace has asked for it in none of these days.</Empty>
              ) : (
                <>
                  <LatencyKey buckets={data} />
                  <LatencyBars buckets={data} />
                </>
              )
            }
          </Loaded>
        </Card>
      ) : null}
    </>
  );
}
