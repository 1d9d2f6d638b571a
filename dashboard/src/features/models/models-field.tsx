import { useQuery } from "@tanstack/react-query";
import { Field, TextArea, listOf } from "../../ui/fields.tsx";
import { Picker } from "../../ui/picker.tsx";
import { reachableQuery } from "./api.ts";
import { choiceOf } from "./model-choice.ts";

/** Model ids, one a line, which are found by name and need not be typed. */
export function ModelsField({
  label,
  hint,
  value,
  onChange,
  among,
}: {
  label: string;
  hint: string;
  value: string;
  onChange: (value: string) => void;
  /** The models that may be chosen; absent for all of the catalog. */
  among?: readonly string[];
}) {
  const models = useQuery(reachableQuery);
  const chosen = listOf(value);
  const items = (models.data?.data ?? [])
    .map(choiceOf)
    .filter(({ value: id }) => !chosen.includes(id) && (among?.includes(id) ?? true));
  return (
    <>
      <Field param="allowed_models" label={label} hint={hint}>
        {(id) => (
          <TextArea
            id={id}
            value={value}
            spellCheck={false}
            onChange={(event) => onChange(event.target.value)}
          />
        )}
      </Field>
      <div>
        <Picker
          label={among === undefined ? "Catalog" : "Of the members"}
          value=""
          shown="Add a model"
          groups={[{ value: "", items }]}
          onChange={(id) => onChange([...chosen, id].join("\n"))}
          search="Search models"
          none="No other model has that in its name."
        />
      </div>
    </>
  );
}
