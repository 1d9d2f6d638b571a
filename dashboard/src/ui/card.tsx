import type { ReactNode } from "react";
import style from "./ui.module.css";

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
