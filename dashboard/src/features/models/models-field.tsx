import { useQuery } from "@tanstack/react-query";
import { TextArea, listOf } from "../../ui/form.tsx";
import { Field } from "../../ui/parts.tsx";
import { Picker } from "../../ui/picker.tsx";
import { reachableQuery } from "./api.ts";
import { choiceOf } from "./model-choice.ts";

/** Model ids, one a line, which are found by name and need not be typed. */
export function ModelsField({
  label,
  hint,
  value,
  onChange,
}: {
  label: string;
  hint: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const models = useQuery(reachableQuery);
  const chosen = listOf(value);
  const items = (models.data?.data ?? [])
    .map(choiceOf)
    .filter((choice) => !chosen.includes(choice.value));
  return (
    <>
      <Field label={label} hint={hint}>
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
          label="Catalog"
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
