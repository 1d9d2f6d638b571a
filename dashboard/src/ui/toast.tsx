import { useEffect, useSyncExternalStore } from "react";
import style from "./ui.module.css";

/** How long it is shown what was done. */
const shownMs = 6_000;

let shown: string | undefined;
let end: ReturnType<typeof setTimeout> | undefined;
const onChanges = new Set<() => void>();

function show(text: string | undefined): void {
  shown = text;
  for (const onChange of onChanges) onChange();
}

/** Says what was done, where the page itself does not show it. */
export function say(text: string): void {
  clearTimeout(end);
  end = setTimeout(() => show(undefined), shownMs);
  show(text);
}

const subscribe = (onChange: () => void): (() => void) => {
  onChanges.add(onChange);
  return () => onChanges.delete(onChange);
};

/** What was done last, over the page for a few seconds, or until Esc is pressed. */
export function Toast() {
  const text = useSyncExternalStore(subscribe, () => shown);
  useEffect(() => {
    const close = ({ key }: KeyboardEvent): void => {
      if (key === "Escape") show(undefined);
    };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  return (
    <div className={style.toasts} aria-live="polite">
      {text === undefined ? null : <div className={style.toast}>{text}</div>}
    </div>
  );
}
