import type { ReactNode } from "react";
import { ApiError, isWorthRetrying } from "../lib/api.ts";
import { remedyOf } from "../lib/remedies.ts";
import { localClock, utc } from "../lib/time.ts";
import { Button } from "./button.tsx";
import style from "./ui.module.css";

/** Says that there is nothing, why, and what to do. */
export function Empty({ children, action }: { children: ReactNode; action?: ReactNode }) {
  return (
    <div className={style.empty}>
      <p>{children}</p>
      {action}
    </div>
  );
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** Says what could not be read; the rest of the page lives on. */
export function Problem({
  what,
  error,
  retry,
  traceId: known,
}: {
  /** What could not be read, where no title of a card says it. */
  what?: string | undefined;
  error: unknown;
  retry?: () => void;
  traceId?: string | undefined;
}) {
  const traceId = error instanceof ApiError ? error.traceId : (known ?? null);
  const remedy = remedyOf(error);
  return (
    <div className={style.problem} role="alert">
      {what === undefined ? null : <strong>{what} could not be read.</strong>}
      <p>
        {messageOf(error)}
        {remedy === undefined ? null : (
          <>
            {" "}
            <a href={remedy.href}>{remedy.label}</a>
          </>
        )}
      </p>
      {traceId === null ? null : <code>{traceId}</code>}
      {retry === undefined ? null : (
        <Button look="plain" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

/** Keeps the room of what is being loaded, so that nothing jumps. */
export function Skeleton({ height }: { height: number }) {
  return (
    <div
      className={style.skeleton}
      style={{ height }}
      data-loading="true"
      role="status"
      aria-label="Loading"
    />
  );
}

/** Whether the first answer of a query, good or bad, is still to come. */
export const isAwaited = ({
  isLoading,
  isFetched,
}: {
  isLoading: boolean;
  isFetched: boolean;
}): boolean => isLoading && !isFetched;

/** Keeps back what follows on the page until queries have answered, where that decides its place. */
export function Awaiting({ queries }: { queries: readonly Parameters<typeof isAwaited>[0][] }) {
  return queries.some(isAwaited) ? <span data-loading="true" hidden /> : null;
}

/** The state of a query whose data may be older than the last attempt to read them. */
interface Aging {
  data: unknown;
  error: unknown;
  /** When the data were read; 0 where they never were. */
  dataUpdatedAt: number;
  refetch: () => unknown;
}

/** Says how old figures are that stay, since they could not be read again. */
export function Stale({ queries }: { queries: readonly Aging[] }) {
  const stale = queries.filter(({ data, error }) => data !== undefined && error !== null);
  const [oldest] = stale.toSorted((one, other) => one.dataUpdatedAt - other.dataUpdatedAt);
  if (oldest === undefined) return null;
  const at = new Date(oldest.dataUpdatedAt).toISOString();
  return (
    <div className={style.stale} role="status">
      <span>
        As of{" "}
        <time dateTime={at} title={utc(at)}>
          {localClock(at)}
        </time>
        {isWorthRetrying(oldest.error) ? ", retrying" : ""}. {messageOf(oldest.error)}
      </span>
      <Button
        look="plain"
        onClick={() => {
          for (const { refetch } of stale) void refetch();
        }}
      >
        Try again
      </Button>
    </div>
  );
}

/** What a query is: loading, failed, there, or there with its age since it could not be read again. */
export function Loaded<Data>({
  query,
  what,
  height,
  children,
}: {
  query: Omit<Aging, "data"> & { data: Data | undefined };
  what?: string;
  height: number;
  children: (data: Data) => ReactNode;
}) {
  if (query.data !== undefined)
    return (
      <>
        <Stale queries={[query]} />
        {children(query.data)}
      </>
    );
  if (query.error !== null)
    return <Problem what={what} error={query.error} retry={() => void query.refetch()} />;
  return <Skeleton height={height} />;
}
