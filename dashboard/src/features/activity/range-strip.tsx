import { useQuery } from "@tanstack/react-query";
import { count, countOf, localTime, requestCost, usd, utc } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { Card } from "../../ui/card.tsx";
import { Awaiting, Loaded, Problem, Stale } from "../../ui/loaded.tsx";
import {
  type ActivityFilters,
  type Failures,
  type Histogram,
  failuresQuery,
  type Change,
} from "./api.ts";
import { useProviderNames } from "../provider-keys/provider-names.tsx";
import style from "./activity.module.css";

const height = 48;
const minuteMs = 60_000;

/** Requests over the range as bars, those that failed in another colour. A bar narrows the range to it. */
function Bars({ histogram, onFilter }: { histogram: Histogram; onFilter: Change }) {
  const { data, from, to, bucket_seconds: seconds, totals } = histogram;
  const stepMs = seconds * 1_000;
  const startMs = Math.floor(Date.parse(from) / stepMs) * stepMs;
  const buckets = Math.max(1, Math.ceil((Date.parse(to) - startMs) / stepMs));
  const most = Math.max(1, ...data.map(({ requests }) => requests));
  const narrow = (bucket: string): void => {
    if (stepMs <= minuteMs) return;
    const endMs = Date.parse(bucket) + stepMs;
    onFilter({ range: undefined, from: bucket, to: new Date(endMs).toISOString() });
  };
  return (
    <svg
      viewBox={`0 0 ${buckets * 8} ${height}`}
      preserveAspectRatio="none"
      width="100%"
      height={height}
      role="img"
      aria-label={`${countOf(totals.requests, "request")}, of which ${totals.errors} failed`}
    >
      {data.map(({ bucket, requests, errors }) => {
        const x = ((Date.parse(bucket) - startMs) / stepMs) * 8;
        const [tall, bad] = [Math.max(2, (requests / most) * height), (errors / most) * height];
        return (
          // biome-ignore lint/a11y/noStaticElementInteractions: the range field does the same by keyboard.
          <g key={bucket} onClick={() => narrow(bucket)}>
            <title>{`${localTime(bucket)} (${utc(bucket)}): ${countOf(requests, "request")}, ${count(errors)} failed`}</title>
            <rect x={x} y="0" width="8" height={height} fill="transparent" />
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
  );
}

/** The sums of the requests over the range, and when they came. */
function Sums({ histogram, onFilter }: { histogram: Histogram; onFilter: Change }) {
  const { totals, complete, counted_from: countedFrom } = histogram;
  const sums = [
    ["Requests", count(totals.requests)],
    ["Failed", count(totals.errors)],
    ["Tokens", count(totals.tokens)],
    ["Cost", totals.cost < 0.005 ? requestCost(totals.cost) : usd(totals.cost)],
    ...(complete ? [] : [["Counted from", localTime(countedFrom)] as const]),
  ] as const;
  return (
    <div className={style.strip}>
      <dl className={style.sums}>
        {sums.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Bars histogram={histogram} onFilter={onFilter} />
    </div>
  );
}

const failuresShown = 6;

/** Failures by provider and code, as buttons that filter the list, and refused requests by reason. */
function FailureList({ failures, onFilter }: { failures: Failures; onFilter: Change }) {
  const nameOf = useProviderNames();
  const groups = new Map<string, Failures["data"][number]>();
  for (const row of failures.data) {
    const name = `${row.provider} ${row.code ?? row.status}`;
    const known = groups.get(name);
    groups.set(name, { ...row, requests: row.requests + (known?.requests ?? 0) });
  }
  const kinds = [...groups].toSorted(([, one], [, other]) => other.requests - one.requests);
  const refused = new Map<string, { status: number; requests: number }>();
  for (const { code, http_status: status, requests } of failures.refused)
    refused.set(code, { status, requests: requests + (refused.get(code)?.requests ?? 0) });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it on phones (axe, scrollable-region-focusable).
    <ul className={style.failures} aria-label="What failed" tabIndex={0}>
      {kinds.slice(0, failuresShown).map(([name, { provider, code, status, requests }]) => (
        <li key={name}>
          <button
            type="button"
            className={style.failure}
            onClick={() =>
              onFilter({ provider: provider ?? undefined, status, error: code ?? undefined })
            }
          >
            {`${count(requests)} × ${provider === null ? "no provider" : nameOf(provider)}: ${wordOf(code ?? status)}`}
          </button>
        </li>
      ))}
      {groups.size > failuresShown ? <li>{groups.size - failuresShown} more kinds</li> : null}
      {[...refused].map(([code, { status, requests }]) => (
        <li
          key={code}
          className={`${style.failure} ${style.refused}`}
          title="Refused before a provider was asked. Refused requests leave no record."
        >
          {`${count(requests)} refused with ${status}: ${wordOf(code)}`}
        </li>
      ))}
    </ul>
  );
}

/** What the requests of the range add up to, and which failures are among them. */
export function RangeStrip({
  filters,
  histogram,
  onFilter,
}: {
  filters: ActivityFilters;
  histogram: Parameters<typeof Loaded<Histogram>>[0]["query"];
  onFilter: Change;
}) {
  const failures = useQuery(failuresQuery(filters));
  const { data } = failures;
  return (
    <Card label="Figures of the range">
      <Loaded query={histogram} height={height}>
        {(read) => <Sums histogram={read} onFilter={onFilter} />}
      </Loaded>
      <Awaiting queries={[failures]} />
      {data === undefined ? (
        failures.error === null ? null : (
          <Problem
            what="The failures"
            error={failures.error}
            retry={() => void failures.refetch()}
          />
        )
      ) : (
        <>
          <Stale queries={[failures]} />
          {data.data.length === 0 && data.refused.length === 0 ? null : (
            <FailureList failures={data} onFilter={onFilter} />
          )}
        </>
      )}
    </Card>
  );
}
