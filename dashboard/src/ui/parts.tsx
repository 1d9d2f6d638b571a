import type { ButtonHTMLAttributes, InputHTMLAttributes, ReactNode } from "react";
import { useId, useState } from "react";
import { ApiError, isWorthRetrying } from "../lib/api.ts";
import { remedyOf } from "../lib/remedies.ts";
import { localClock, localDay, localTime, utc, zoneName } from "../lib/time.ts";
import style from "./ui.module.css";

const join = (...names: readonly (string | false | undefined)[]): string =>
  names.filter(Boolean).join(" ");

/** A button; what it does stands on it. */
export function Button({
  look,
  className,
  ...props
}: ButtonHTMLAttributes<HTMLButtonElement> & { look?: "plain" | "danger" | undefined }) {
  return (
    <button
      type="button"
      {...props}
      className={join(style.button, look && style[look], className)}
    />
  );
}

/** The look of a button for a link that leads to what a page is about. */
export const linkLook = join(style.button, style.plain);

/** A surface with a title and what belongs to it. */
export function Card({
  title,
  label = title,
  actions,
  children,
  flush,
}: {
  title?: string;
  /** The name of a card without a title, for assistive technology. */
  label?: string | undefined;
  actions?: ReactNode;
  children: ReactNode;
  flush?: boolean;
}) {
  return (
    <section className={style.card} aria-label={label}>
      {title === undefined ? null : (
        <div className={style.cardHead}>
          <h2>{title}</h2>
          {actions}
        </div>
      )}
      {flush ? children : <div className={style.cardBody}>{children}</div>}
    </section>
  );
}

/** Figures in a row, each with what it is compared with. */
export function Stats({ children }: { children: ReactNode }) {
  return <div className={style.stats}>{children}</div>;
}

export function Stat({ name, value, note }: { name: string; value: string; note?: ReactNode }) {
  return (
    <div className={style.stat}>
      <div className={style.statName}>{name}</div>
      <div className={style.statValue}>{value}</div>
      <div className={style.statNote}>{note}</div>
    </div>
  );
}

/** A state, as a word and a colour. */
export function Status({
  kind,
  children,
}: {
  kind?: "good" | "warning" | "bad" | undefined;
  children: ReactNode;
}) {
  return <span className={join(style.status, kind && style[kind])}>{children}</span>;
}

/**
 * A moment in the person's zone, or only its day, with UTC on hover; `never` says what an unknown
 * one means.
 */
export function Moment({
  at,
  never = "–",
  dayOnly = false,
}: {
  at: string | null | undefined;
  never?: string;
  dayOnly?: boolean;
}) {
  if (at === null || at === undefined) return <>{never}</>;
  return (
    <time dateTime={at} title={utc(at)} data-zone={dayOnly ? undefined : zoneName()}>
      {dayOnly ? localDay(at) : localTime(at)}
    </time>
  );
}

/** A name that people chose, of any length, for a cell of a table. */
export const Name = ({ children }: { children: string }) => (
  <span className={style.name} title={children}>
    {children}
  </span>
);

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

/** A query of a list that is read page by page. */
interface PagesQuery {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
}

/** The button that reads the next page of a list, with a note; nothing at the end of the list. */
export function NextPage({
  query,
  label = "Show older",
  note = "There is more.",
}: {
  query: PagesQuery;
  label?: string;
  note?: string;
}) {
  if (!query.hasNextPage) return null;
  return (
    <Empty
      action={
        <Button
          look="plain"
          disabled={query.isFetchingNextPage}
          onClick={() => void query.fetchNextPage()}
        >
          {label}
        </Button>
      }
    >
      {note}
    </Empty>
  );
}

/** A list that is read page by page: loading, failed, or its rows so far. */
export function LoadedPages<Row>({
  query,
  height,
  children,
}: {
  query: PagesQuery & {
    data: { pages: readonly { data: readonly Row[] }[] } | undefined;
    error: unknown;
    dataUpdatedAt: number;
    refetch: () => unknown;
  };
  height: number;
  children: (rows: readonly Row[]) => ReactNode;
}) {
  const rows = query.data?.pages.flatMap(({ data }) => data);
  return (
    <Loaded query={{ ...query, data: rows }} height={height}>
      {(shown) => (
        <>
          {children(shown)}
          <NextPage query={query} label="Show more" note={`${shown.length} so far.`} />
        </>
      )}
    </Loaded>
  );
}

/** A field with its label and what to know about it. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: string;
  children: (id: string) => ReactNode;
}) {
  const id = useId();
  return (
    <div className={style.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint === undefined ? null : <span className={style.hint}>{hint}</span>}
    </div>
  );
}

/** A line of text to type. */
export function Input(props: InputHTMLAttributes<HTMLInputElement>) {
  return <input {...props} className={style.input} />;
}

/** A choice of a few. */
export function Select<Value extends string>({
  id,
  value,
  onChange,
  options,
  label,
}: {
  id?: string;
  value: Value;
  onChange: (value: Value) => void;
  options: readonly (readonly [Value, string])[];
  label?: string;
}) {
  const choose = (text: string): void => {
    const chosen = options.find(([key]) => key === text);
    if (chosen !== undefined) onChange(chosen[0]);
  };
  return (
    <select
      id={id}
      aria-label={label}
      className={style.input}
      value={value}
      onChange={(event) => choose(event.target.value)}
    >
      {options.map(([key, text]) => (
        <option key={key} value={key}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Copies a text, and remembers which one was copied. */
function useCopy(text: string): readonly [isCopied: boolean, copy: () => void] {
  const [copied, setCopied] = useState<string>();
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => setCopied(text));
  };
  return [copied === text, copy];
}

/** An id as programs send it, with a button that copies it. */
export function Id({ children: id }: { children: string }) {
  const [isCopied, copy] = useCopy(id);
  return (
    <span className={style.id}>
      <code>{id}</code>
      <button
        type="button"
        className={style.copyId}
        aria-label={isCopied ? `Copied ${id}` : `Copy ${id}`}
        title={isCopied ? "Copied" : "Copy"}
        onClick={copy}
      >
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d={isCopied ? "M5 13l4 4L19 7" : "M9 9h11v11H9zM5 15H4V4h11v1"} />
        </svg>
      </button>
    </span>
  );
}

/** Text to copy, with a button that says when it was copied. */
export function Code({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, copy] = useCopy(text);
  return (
    <pre className={style.code}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it (axe, scrollable-region-focusable). */}
      <code tabIndex={0}>{text}</code>
      <Button look="plain" className={style.copy} onClick={copy}>
        {isCopied ? "Copied" : label}
      </Button>
    </pre>
  );
}

/** Buttons beside each other. */
export function Actions({ children }: { children: ReactNode }) {
  return <div className={style.actions}>{children}</div>;
}

/** Facts as names and values. */
export function Facts({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className={style.facts}>
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
