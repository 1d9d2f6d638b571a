import { lazy } from "react";
import { LazyPopup } from "./lazy-popup.tsx";
import style from "./picker.module.css";

const load = () => import("./picker-popup.tsx");
const Popup = lazy(async () => ({ default: (await load()).PickerPopup }));

/** One of what there is to choose from, with what speaks for or against it. */
export interface Choice {
  value: string;
  label: string;
  /** Shown below the label. */
  note: string;
  /** A figure beside the label. */
  price?: string;
}

/** Choices under a heading, in the form that the combobox takes. An empty heading is not shown. */
export interface ChoiceGroup {
  value: string;
  items: readonly Choice[];
}

/** What is chosen, and what there is to choose from. */
export interface PickerProps {
  /** What is chosen, in a word: `Model`. */
  label: string;
  value: string;
  /** The chosen one as the button shows it. */
  shown: string;
  groups: readonly ChoiceGroup[];
  onChange: (value: string) => void;
  /** The name of the field that searches, such as `Search models`. */
  search: string;
  /** Says that nothing has the searched text in its name. */
  none: string;
  /** What else can be done, at the end of the list. */
  last?: readonly [name: string, act: () => void];
}

/** The chosen one, on the button that opens the list. */
export const PickerFace = ({ shown }: Pick<PickerProps, "shown">) => (
  <>
    <span className={style["name"]}>{shown}</span>
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d="M4 6l4 4 4-4" fill="none" stroke="currentColor" strokeWidth="1.6" />
    </svg>
  </>
);

/** Chooses one of many by a few letters of its name. */
export const Picker = (props: PickerProps) => (
  <LazyPopup
    load={load}
    role="combobox"
    aria-expanded="false"
    aria-haspopup="listbox"
    aria-controls={undefined}
    className={style["trigger"]}
    aria-label={`${props.label}: ${props.shown}`}
  >
    <PickerFace shown={props.shown} />
    <Popup {...props} />
  </LazyPopup>
);
