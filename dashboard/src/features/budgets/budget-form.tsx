import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Field, Input, Select } from "../../ui/parts.tsx";
import { Form, listOf } from "../../ui/form.tsx";
import { type Budget, type MadeBudget, type NewBudget, changeBudget, createBudget } from "./api.ts";

const scopes = [
  ["workspace", "the whole workspace"],
  ["team", "one team"],
  ["key", "one key"],
  ["user", "one person"],
  ["model", "one model"],
  ["provider", "one provider"],
  ["customer", "one customer"],
] as const;
const periods = [
  ["daily", "a day (UTC)"],
  ["weekly", "a week, from Monday (UTC)"],
  ["monthly", "a month (UTC)"],
  ["total", "all time"],
] as const;
const actions = [
  ["alert", "report it"],
  ["block", "report it and refuse what would cost more"],
] as const;

const start = (budget: Budget | undefined) => ({
  name: budget?.name ?? "Monthly budget",
  scope: budget?.scope ?? "workspace",
  subject: budget?.subject ?? "",
  period: budget?.period ?? "monthly",
  action: budget?.action ?? "block",
  limit: budget === undefined ? "" : String(budget.limit),
  thresholds: (budget?.thresholds ?? [50, 80, 100]).join(", "),
  emails: budget?.emails.join(", ") ?? "",
  webhook: budget?.webhook_url ?? "",
});

type Fields = ReturnType<typeof start>;

const changesOf = (fields: Fields): Omit<NewBudget, "scope" | "subject" | "period"> => ({
  name: fields.name,
  action: fields.action,
  limit: Number(fields.limit),
  thresholds: listOf(fields.thresholds).map(Number),
  emails: listOf(fields.emails),
  webhook_url: fields.webhook === "" ? null : fields.webhook,
});

/** Makes a budget, or changes one; what a budget is about is settled when it is made. */
export function BudgetForm({
  budget,
  keys,
  onDone,
}: {
  budget?: Budget | undefined;
  keys: readonly (readonly [string, string])[];
  onDone: (made: MadeBudget | undefined) => void;
}) {
  const [fields, setFields] = useState(() => start(budget));
  const set = (changes: Partial<Fields>): void => setFields({ ...fields, ...changes });
  const save = useMutation({
    mutationFn: async (): Promise<MadeBudget | undefined> => {
      if (budget !== undefined)
        return changeBudget({ id: budget.id, ...changesOf(fields) }).then(() => undefined);
      const { scope, subject, period } = fields;
      return createBudget({
        ...changesOf(fields),
        scope,
        subject: scope === "workspace" ? null : subject,
        period,
      });
    },
    onSuccess: onDone,
  });
  const text = (
    name: "name" | "thresholds" | "emails" | "webhook" | "subject",
    label: string,
    hint?: string,
    required = false,
  ) => (
    <Field label={label} {...(hint === undefined ? {} : { hint })}>
      {(id) => (
        <Input
          id={id}
          value={fields[name]}
          required={required}
          onChange={(event) => set({ [name]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <Form
      action={budget === undefined ? "Create budget" : "Save budget"}
      work={save}
      onSubmit={() => save.mutate()}
    >
      {text("name", "Name", undefined, true)}
      {budget !== undefined ? null : (
        <>
          <Field label="For">
            {(id) => (
              <Select
                id={id}
                value={fields.scope}
                options={scopes}
                onChange={(scope) =>
                  set({
                    scope: scope,
                    subject: scope === "key" ? (keys[0]?.[0] ?? "") : "",
                  })
                }
              />
            )}
          </Field>
          {fields.scope === "key" ? (
            <Field label="Key">
              {(id) => (
                <Select
                  id={id}
                  value={fields.subject}
                  options={keys}
                  onChange={(subject) => set({ subject })}
                />
              )}
            </Field>
          ) : fields.scope === "workspace" ? null : (
            text("subject", `Id of the ${fields.scope}`, undefined, true)
          )}
          <Field label="Period">
            {(id) => (
              <Select
                id={id}
                value={fields.period}
                options={periods}
                onChange={(period) => set({ period: period as Budget["period"] })}
              />
            )}
          </Field>
        </>
      )}
      <Field label="Limit in USD">
        {(id) => (
          <Input
            id={id}
            type="number"
            min="0.000001"
            step="any"
            required
            value={fields.limit}
            onChange={(event) => set({ limit: event.target.value })}
          />
        )}
      </Field>
      <Field
        label="When it is spent"
        hint="A refused request is answered 402 and names this budget."
      >
        {(id) => (
          <Select
            id={id}
            value={fields.action}
            options={actions}
            onChange={(action) => set({ action: action as Budget["action"] })}
          />
        )}
      </Field>
      {text("thresholds", "Report at percent", "Each once a period, such as 50, 80, 100.", true)}
      {text("emails", "Mail to", "People of this workspace, separated by commas.")}
      {text(
        "webhook",
        "Webhook",
        "An https address. Messages are signed with a secret that is shown once.",
      )}
    </Form>
  );
}
