import type { ReactNode } from "react";
import { localDay, localTime, utc, zoneName } from "../lib/time.ts";
import style from "./ui.module.css";

/** A state, as a word and a colour. */
export function Status({
  kind,
  children,
}: {
  kind?: "good" | "warning" | "bad" | undefined;
  children: ReactNode;
}) {
  return (
    <span className={`${style.status} ${kind === undefined ? "" : style[kind]}`}>{children}</span>
  );
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
