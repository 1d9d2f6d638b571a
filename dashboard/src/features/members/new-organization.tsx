import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useEnterWorkspace } from "../../lib/session.ts";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { createOrganization } from "./api.ts";

/** Makes an organisation and enters its workspace. */
export function NewOrganization({
  onMade,
  look,
}: {
  onMade?: () => void;
  look?: "plain" | undefined;
}) {
  const enter = useEnterWorkspace();
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: createOrganization,
    onSuccess: async ({ workspace_id: workspace }) => {
      await enter.mutateAsync(workspace);
      setName("");
      onMade?.();
    },
  });
  return (
    <Form
      look={look}
      action="Create organisation"
      work={create}
      onSubmit={() => create.mutate(name)}
    >
      <Field param="name" label="Name" hint="Its members share keys, credits and budgets.">
        {(id) => (
          <Input
            id={id}
            value={name}
            onChange={(event) => setName(event.target.value)}
            required
            maxLength={200}
          />
        )}
      </Field>
    </Form>
  );
}
