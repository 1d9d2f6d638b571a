import { Suspense, lazy, useState } from "react";
import style from "./ui.module.css";

const load = () => import("./row-menu-popup.tsx");
// Loaded when a person comes near the first menu: most rows are only read.
const Popup = lazy(async () => ({ default: (await load()).RowMenuPopup }));

/** The name of a row, and what can be done with it. */
export interface RowMenuProps {
  /** Names the row: `Actions of Night watch`. */
  label: string;
  actions: readonly (readonly [name: string, act: () => void])[];
}

/** The sign of a menu. */
export const ThreeDots = () => (
  <svg viewBox="0 0 24 24" aria-hidden="true">
    <path
      d="M5 12h.01M12 12h.01M19 12h.01"
      stroke="currentColor"
      strokeWidth="3"
      strokeLinecap="round"
    />
  </svg>
);

/** What can be done with a row, behind one button, so that it covers no column. */
export function RowMenu({ label, actions }: RowMenuProps) {
  const [isOpened, setOpened] = useState(false);
  const closed = (
    <button
      type="button"
      className={style.close}
      aria-label={label}
      aria-haspopup="menu"
      onPointerEnter={() => void load()}
      onFocus={() => void load()}
      onClick={() => setOpened(true)}
    >
      <ThreeDots />
    </button>
  );
  return isOpened ? (
    <Suspense fallback={closed}>
      <Popup label={label} actions={actions} />
    </Suspense>
  ) : (
    closed
  );
}
