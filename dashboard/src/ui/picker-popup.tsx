import { Combobox } from "@base-ui/react/combobox";
import { type ReactNode, useState } from "react";
import style from "./picker.module.css";

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

/** What a list shows of its choices at most; a longer one is searched. */
const shownMax = 60;

/** The choices under their heading, each with its figure and note. */
const Group = (group: ChoiceGroup) => (
  <Combobox.Group key={group.value} items={group.items}>
    {group.value === "" ? null : (
      <Combobox.GroupLabel className={style["heading"] ?? ""}>{group.value}</Combobox.GroupLabel>
    )}
    <Combobox.Collection>
      {(item: Choice) => (
        <Combobox.Item key={item.value} value={item} className={style["item"] ?? ""}>
          <span className={style["name"]}>{item.label}</span>
          <span className={style["price"]}>{item.price}</span>
          <span className={style["note"]}>{item.note}</span>
        </Combobox.Item>
      )}
    </Combobox.Collection>
  </Combobox.Group>
);

/** The list to choose from, open from the start. */
export function PickerPopup({
  label,
  value,
  shown,
  face,
  groups,
  onChange,
  search,
  none,
  last,
}: PickerProps & { face: ReactNode }) {
  const [isOpen, setOpen] = useState(true);
  const known = groups.flatMap(({ items }) => items).find((item) => item.value === value);
  return (
    <Combobox.Root
      open={isOpen}
      onOpenChange={setOpen}
      items={groups}
      limit={shownMax}
      autoHighlight
      value={known ?? { value, label: shown, note: "" }}
      onValueChange={(next: Choice | null) => {
        if (next !== null && next.value !== value) onChange(next.value);
      }}
      itemToStringLabel={(item: Choice) => item.label}
      isItemEqualToValue={(one: Choice, other: Choice) => one.value === other.value}
    >
      <Combobox.Trigger className={style["trigger"] ?? ""} aria-label={`${label}: ${shown}`}>
        {face}
      </Combobox.Trigger>
      <Combobox.Portal>
        <Combobox.Positioner className={style["place"] ?? ""} align="start" sideOffset={4}>
          <Combobox.Popup className={style["popup"] ?? ""} aria-label={label}>
            <Combobox.Input
              className={style["search"] ?? ""}
              aria-label={search}
              placeholder={search}
            />
            <Combobox.Empty className={style["empty"] ?? ""}>{none}</Combobox.Empty>
            <Combobox.List className={style["list"] ?? ""}>{Group}</Combobox.List>
            {last === undefined ? null : (
              <button
                type="button"
                className={style["last"]}
                onClick={() => {
                  setOpen(false);
                  last[1]();
                }}
              >
                {last[0]}
              </button>
            )}
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  );
}
