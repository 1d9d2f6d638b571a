import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Form, listOf } from "../../ui/form.tsx";
import { Field, Input, Select } from "../../ui/parts.tsx";
import { changeTeam, createTeam, type Team } from "./api.ts";

const periods = [
  ["daily", "a day"],
  ["weekly", "a week"],
  ["monthly", "a month"],
  ["total", "all time"],
] as const;

const start = (team: Team | undefined) => ({
  name: team?.name ?? "",
  limit: team?.limit === null || team === undefined ? "" : String(team.limit),
  period: team?.period ?? ("monthly" as Team["period"]),
  zone: team?.time_zone ?? "UTC",
  models: team?.allowed_models?.join(", ") ?? "",
});
type Fields = ReturnType<typeof start>;

/** Returns the limit of the fields. A period that is as before keeps the budget with its alerts. */
function limitOf({ limit, period, zone }: Fields, team: Team | undefined) {
  if (limit === "") return { limit: null };
  const isSame = team?.limit !== null && team?.period === period && team.time_zone === zone;
  const isZoned = period !== "total";
  return {
    limit: Number(limit),
    ...(isSame ? {} : { period, ...(isZoned && { time_zone: zone }) }),
  };
}

/** Creates a team, or changes one. */
export function TeamForm({ team, onDone }: { team?: Team | undefined; onDone: () => void }) {
  const [fields, setFields] = useState(() => start(team));
  const set = (changes: Partial<Fields>): void => setFields({ ...fields, ...changes });
  const save = useMutation({
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
  const text = (name: "name" | "zone" | "models", label: string, hint?: string) => (
    <Field label={label} {...(hint === undefined ? {} : { hint })}>
      {(id) => (
        <Input
          id={id}
          value={fields[name]}
          required={name !== "models"}
          onChange={({ target }) => set({ [name]: target.value })}
        />
      )}
    </Field>
  );
  return (
    <Form
      action={team === undefined ? "Create team" : "Save team"}
      work={save}
      onSubmit={() => save.mutate()}
    >
      {text("name", "Name")}
      <Field label="Limit in USD" hint="Of all its keys together. Empty: no limit.">
        {(id) => (
          <Input
            id={id}
            type="number"
            min="0.000001"
            step="any"
            value={fields.limit}
            onChange={({ target }) => set({ limit: target.value })}
          />
        )}
      </Field>
      {fields.limit === "" ? null : (
        <>
          <Field label="Period">
            {(id) => (
              <Select
                id={id}
                value={fields.period}
                options={periods}
                onChange={(period) => set({ period: period as Team["period"] })}
              />
            )}
          </Field>
          {fields.period === "total"
            ? null
            : text("zone", "Time zone", "Such as Europe/Berlin; periods begin there.")}
        </>
      )}
      {text("models", "Models", "Ids with commas between them. Empty: all.")}
    </Form>
  );
}
