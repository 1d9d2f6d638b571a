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

/** How much of a whole is used, as a bar with its figures in words beside it. */
export function Bar({
  label,
  share,
  marks = [],
  isProgress = false,
}: {
  label: string;
  share: number;
  marks?: readonly number[];
  /** Whether all of it is the aim, not the end of what may be used. */
  isProgress?: boolean;
}) {
  const full = isProgress ? style.barDone : style.barFull;
  const percent = Math.max(0, Math.min(100, Math.round(share * 100)));
  return (
    <svg
      className={style.bar}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: ${Math.round(share * 100)} % ${isProgress ? "done" : "used"}`}
    >
      <rect width="100" height="6" rx="1" className={style.barRest} />
      <rect width={percent} height="6" rx="1" className={share >= 1 ? full : style.barUsed} />
      {marks
        .filter((mark) => mark < 100)
        .map((mark) => (
          <rect key={mark} x={mark} width="0.6" height="6" className={style.barMark} />
        ))}
    </svg>
  );
}
