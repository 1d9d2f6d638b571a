import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { Picker } from "../../ui/picker.tsx";
import { Picked } from "../../ui/picked.tsx";
import style from "../../ui/ui.module.css";
import { providersQuery } from "./api.ts";

/** Providers that are found by name, each taken away again with its button. */
export function ProvidersField({
  label,
  hint,
  value,
  onChange,
  readOnly = false,
}: {
  label: string;
  hint?: string;
  /** Ids of providers. */
  value: readonly string[];
  onChange: (ids: readonly string[]) => void;
  readOnly?: boolean;
}) {
  const id = useId();
  const { data } = useQuery(providersQuery);
  const items = (data?.data ?? []).map(({ id: value, name: label }) => ({
    value,
    label,
    note: label === value ? "" : value,
  }));
  const nameOf = (each: string): string => items.find((item) => item.value === each)?.label ?? each;
  return (
    <div className={style.field}>
      <span id={id} className={style.fieldName}>
        {label}
      </span>
      <Picked
        labelledBy={id}
        items={value.map((each) => [each, nameOf(each)])}
        onRemove={readOnly ? undefined : (gone) => onChange(value.filter((each) => each !== gone))}
      />
      {readOnly ? null : (
        <Picker
          label={label}
          value=""
          shown="Add a provider"
          groups={[{ value: "", items: items.filter((item) => !value.includes(item.value)) }]}
          onChange={(chosen) => onChange([...value, chosen])}
          search="Search providers"
          none="No other provider has that in its name."
        />
      )}
      {hint === undefined ? null : <span className={style.hint}>{hint}</span>}
    </div>
  );
}
