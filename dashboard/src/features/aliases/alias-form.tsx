import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { type Alias, changeAlias, createAlias } from "./api.ts";
import { targetOf, textOf } from "./target.ts";
import { TargetField } from "./target-field.tsx";

/** Creates an alias of the workspace, or changes one. */
export function AliasForm({ alias, onDone }: { alias?: Alias | undefined; onDone: () => void }) {
  const [name, setName] = useState(alias?.name ?? "");
  const [target, setTarget] = useState(textOf(alias?.target));
  const [description, setDescription] = useState(alias?.description ?? "");
  const save = useMutation({
    meta: { done: "Alias saved" },
    mutationFn: async () => {
      const body = {
        name,
        target: targetOf(target),
        description: description === "" ? null : description,
      };
      return alias === undefined ? createAlias(body) : changeAlias(body);
    },
    onSuccess: onDone,
  });
  return (
    <Form
      action={alias === undefined ? "Create alias" : "Save alias"}
      work={save}
      onSubmit={() => save.mutate()}
    >
      <Field
        param="name"
        label="Name"
        hint="What programs send as the model, such as fast. It never changes."
      >
        {(id) => (
          <Input
            id={id}
            value={name}
            required
            readOnly={alias !== undefined}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <TargetField value={target} onChange={setTarget} />
      <Field param="description" label="Description" hint="May be empty.">
        {(id) => (
          <Input
            id={id}
            value={description}
            maxLength={2_000}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </Field>
    </Form>
  );
}
