import { type ReactNode, useEffect } from "react";
import style from "./page.module.css";

/** The head of a page: its name, and what can be done on it. */
export function PageHead({ title, children }: { title: string; children?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} - Switchyard`;
  }, [title]);
  return (
    <div className={style.head}>
      <h1>{title}</h1>
      <div>{children}</div>
    </div>
  );
}

/** Two columns on wide screens, one on phones. */
export const Columns = ({ children }: { children: ReactNode }) => (
  <div className={style.columns}>{children}</div>
);
