import { lazy, type ReactNode } from "react";
import { LazyPopup } from "./lazy-popup.tsx";
import style from "./picker.module.css";
import type { PickerProps } from "./picker-popup.tsx";

const load = () => import("./picker-popup.tsx");
const Popup = lazy(async () => ({ default: (await load()).PickerPopup }));

/** The chosen one, on the button that opens the list. */
export const PickerFace = ({ shown }: Pick<PickerProps, "shown">) => (
  <>
    <span className={style["name"]}>{shown}</span>
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d="M4 6l4 4 4-4" fill="none" stroke="currentColor" strokeWidth="1.6" />
    </svg>
  </>
);

/** The button that opens the list of a choice, which `children` are. */
export const PickerTrigger = ({
  label,
  shown,
  load,
  face,
  children,
}: Pick<PickerProps, "label" | "shown"> & {
  load: () => Promise<unknown>;
  face: ReactNode;
  children: ReactNode;
}) => (
  <LazyPopup
    load={load}
    role="combobox"
    aria-expanded="false"
    aria-haspopup="listbox"
    aria-controls={undefined}
    className={style["trigger"]}
    aria-label={`${label}: ${shown}`}
  >
    {face}
    {children}
  </LazyPopup>
);

/** Chooses one of many by a few letters of its name. */
export function Picker(props: PickerProps) {
  const { label, shown } = props;
  const face = <PickerFace shown={shown} />;
  return (
    <PickerTrigger {...{ label, shown, load, face }}>
      <Popup {...props} face={face} />
    </PickerTrigger>
  );
}
