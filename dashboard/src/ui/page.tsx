import { type ReactNode, useEffect, useLayoutEffect, useRef } from "react";
import style from "./page.module.css";

/**
 * Lets a page appear from top to bottom: what follows something that is still loading is not seen
 * before that has its height, so that nothing which is seen moves, in any order of the answers.
 * Once the page was whole nothing is hidden again.
 */
function useAppearing() {
  const head = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const page = head.current?.closest("main");
    const isWhole = (): boolean => page?.querySelector('[data-loading="true"]') === null;
    if (page === null || page === undefined || isWhole()) return;
    const end = (): void => {
      observer.disconnect();
      delete page.dataset["appearing"];
    };
    const observer = new MutationObserver(() => {
      if (isWhole()) end();
    });
    page.dataset["appearing"] = "true";
    observer.observe(page, { childList: true, subtree: true });
    return end;
  }, []);
  return head;
}

/** The head of a page: its name, and what can be done on it. */
export function PageHead({
  title,
  within,
  state,
  children,
}: {
  title: string;
  /** Leads to the list that has what the page is about. */
  within?: ReactNode;
  /** The state of what the page is about, beside its name. */
  state?: ReactNode;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} - Switchyard`;
  }, [title]);
  const head = useAppearing();
  return (
    <div className={style.head} ref={head}>
      {within === undefined ? (
        <h1>{title}</h1>
      ) : (
        <div className={style.path}>
          {within}
          <span aria-hidden="true">/</span>
          <h1>{title}</h1>
          {state}
        </div>
      )}
      <div className={style.actions}>{children}</div>
    </div>
  );
}

/** Two columns on wide screens, one on phones. */
export const Columns = ({ children }: { children: ReactNode }) => (
  <div className={style.columns}>{children}</div>
);
