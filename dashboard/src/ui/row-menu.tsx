import { lazy } from "react";
import { LazyPopup } from "./lazy-popup.tsx";
import style from "./ui.module.css";
import type { RowMenuProps } from "./row-menu-popup.tsx";

const load = () => import("./row-menu-popup.tsx");
const Popup = lazy(async () => ({ default: (await load()).RowMenuPopup }));

/** The sign of a menu. */
const ThreeDots = () => (
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
export function RowMenu({
  label,
  actions,
  face = <ThreeDots />,
  className = style.close,
}: RowMenuProps) {
  return (
    <LazyPopup load={load} className={className} aria-label={label} aria-haspopup="menu">
      {face}
      <Popup {...{ label, actions, face, className }} />
    </LazyPopup>
  );
}
