import { type ReactNode, lazy } from "react";
import { LazyPopup } from "./lazy-popup.tsx";
import style from "./ui.module.css";

const load = () => import("./row-menu-popup.tsx");
const Popup = lazy(async () => ({ default: (await load()).RowMenuPopup }));

/** The name of a row, and what can be done with it. */
export interface RowMenuProps {
  /** Names the row: `Actions of Night watch`. */
  label: string;
  actions: readonly (readonly [name: string, act: () => void])[];
  /** What the button shows; absent shows three dots. */
  face?: ReactNode;
  className?: string | undefined;
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
export function RowMenu(props: RowMenuProps) {
  const { label, face = <ThreeDots />, className = style.close } = props;
  return (
    <LazyPopup load={load} className={className} aria-label={label} aria-haspopup="menu">
      {face}
      <Popup {...props} />
    </LazyPopup>
  );
}
