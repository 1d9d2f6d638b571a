import { Combobox } from "@base-ui/react/combobox";
import { type Choice, type ChoiceGroup, Chosen, type ModelPickerProps } from "./model-picker.tsx";
import own from "./model-picker.module.css";

const shownMax = 60;

/** The list to choose from, open from the start. */
export function ModelPickerPopup({ label, value, groups, onChange }: ModelPickerProps) {
  const known = groups.flatMap(({ items }) => items).find((item) => item.value === value);
  const chosen: Choice = known ?? { value, label: value, note: "", price: "" };
  return (
    <Combobox.Root
      defaultOpen
      items={groups}
      limit={shownMax}
      autoHighlight
      value={chosen}
      onValueChange={(next: Choice | null) => {
        if (next !== null) onChange(next.value);
      }}
      itemToStringLabel={(item: Choice) => item.label}
      isItemEqualToValue={(one: Choice, other: Choice) => one.value === other.value}
    >
      <Combobox.Trigger className={own["trigger"] ?? ""} aria-label={`${label}: ${value}`}>
        <Chosen value={value} />
      </Combobox.Trigger>
      <Combobox.Portal>
        <Combobox.Positioner className={own["place"] ?? ""} align="start" sideOffset={4}>
          <Combobox.Popup className={own["popup"] ?? ""} aria-label={label}>
            <Combobox.Input
              className={own["search"] ?? ""}
              aria-label="Search models"
              placeholder="Search by name"
            />
            <Combobox.Empty className={own["empty"] ?? ""}>
              Nothing that you reach has that in its name.
            </Combobox.Empty>
            <Combobox.List className={own["list"] ?? ""}>
              {(group: ChoiceGroup) => (
                <Combobox.Group key={group.value} items={group.items}>
                  <Combobox.GroupLabel className={own["heading"] ?? ""}>
                    {group.value}
                  </Combobox.GroupLabel>
                  <Combobox.Collection>
                    {(item: Choice) => (
                      <Combobox.Item key={item.value} value={item} className={own["item"] ?? ""}>
                        <span className={own["name"]}>{item.label}</span>
                        <span className={own["price"]}>{item.price}</span>
                        <span className={own["note"]}>{item.note}</span>
                      </Combobox.Item>
                    )}
                  </Combobox.Collection>
                </Combobox.Group>
              )}
            </Combobox.List>
          </Combobox.Popup>
        </Combobox.Positioner>
      </Combobox.Portal>
    </Combobox.Root>
  );
}
