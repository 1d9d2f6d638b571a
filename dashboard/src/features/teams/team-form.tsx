import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Field, Input, listOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { LimitFields, periodOf } from "../budgets/limit-fields.tsx";
import { ModelsField } from "../models/models-field.tsx";
import { changeTeam, createTeam, type Team } from "./api.ts";

const start = (team: Team | undefined) => ({
  name: team?.name ?? "",
  limit: team?.limit === null || team === undefined ? "" : String(team.limit),
  period: team?.period ?? ("monthly" as Team["period"]),
  zone: team?.time_zone ?? "UTC",
  models: team?.allowed_models?.join("\n") ?? "",
});
type Fields = ReturnType<typeof start>;

/** Returns the limit of the fields. A period that is as before keeps the budget with its alerts. */
function limitOf(fields: Fields, team: Team | undefined) {
  const { limit, period, zone } = fields;
  if (limit === "") return { limit: null };
  const isSame = team?.limit !== null && team?.period === period && team.time_zone === zone;
  return { limit: Number(limit), ...(isSame ? {} : periodOf(fields)) };
}

/** Creates a team, or changes one. */
export function TeamForm({ team, onDone }: { team?: Team | undefined; onDone: () => void }) {
  const [fields, setFields] = useState(() => start(team));
  const set = (changes: Partial<Fields>): void => setFields({ ...fields, ...changes });
  const save = useMutation({
    meta: { done: "Team saved" },
    mutationFn: () => {
      const models = listOf(fields.models);
      const body = {
        name: fields.name,
        allowed_models: models.length === 0 ? null : models,
        ...limitOf(fields, team),
      };
      return team === undefined ? createTeam(body) : changeTeam({ id: team.id, ...body });
    },
    onSuccess: onDone,
  });
  return (
    <Form
      action={team === undefined ? "Create team" : "Save team"}
      work={save}
      onSubmit={() => save.mutate()}
    >
      <Field param="name" label="Name">
        {(id) => (
          <Input
            id={id}
            value={fields.name}
            required
            onChange={({ target }) => set({ name: target.value })}
          />
        )}
      </Field>
      <LimitFields
        draft={fields}
        onChange={set}
        hint="Of all its keys together. Empty: no limit."
      />
      <ModelsField
        label="Models"
        hint="One a line. Empty: all."
        value={fields.models}
        onChange={(models) => set({ models })}
      />
    </Form>
  );
}
