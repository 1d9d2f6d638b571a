import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Field, Input, Select, listOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { type Budget, type MadeBudget, type NewBudget, changeBudget, createBudget } from "./api.ts";
import { LimitFields, periodOf } from "./limit-fields.tsx";
import { SubjectField } from "./subject-field.tsx";

const scopes = [
  ["workspace", "the whole workspace"],
  ["team", "one team"],
  ["key", "one key"],
  ["user", "one person"],
  ["model", "one model"],
  ["provider", "one provider"],
  ["customer", "one customer, or each"],
] as const;
const actions = [
  ["alert", "report it"],
  ["block", "report it and refuse what would cost more"],
] as const;

const start = (budget: Budget | undefined) => ({
  name: budget?.name ?? "Monthly budget",
  scope: "workspace" as (typeof scopes)[number][0],
  subject: "",
  period: budget?.period ?? ("monthly" as const),
  zone: "UTC",
  action: budget?.action ?? "block",
  limit: budget === undefined ? "" : String(budget.limit),
  thresholds: (budget?.thresholds ?? [50, 80, 100]).join(", "),
  emails: budget?.emails.join(", ") ?? "",
  webhook: budget?.webhook_url ?? "",
});

type Fields = ReturnType<typeof start>;

const changesOf = (
  fields: Fields,
): Omit<NewBudget, "scope" | "subject" | "period" | "time_zone"> => ({
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
  onDone,
}: {
  budget?: Budget | undefined;
  onDone: (made: MadeBudget | undefined) => void;
}) {
  const [fields, setFields] = useState(() => start(budget));
  const set = (changes: Partial<Fields>): void => setFields({ ...fields, ...changes });
  const { scope } = fields;
  const save = useMutation({
    meta: { done: "Budget saved" },
    mutationFn: async (): Promise<MadeBudget | undefined> => {
      if (budget !== undefined)
        return changeBudget({ id: budget.id, ...changesOf(fields) }).then(() => undefined);
      return createBudget({
        ...changesOf(fields),
        ...periodOf(fields),
        scope,
        subject: scope === "workspace" ? null : fields.subject,
      });
    },
    onSuccess: onDone,
  });
  const text = (
    name: "name" | "thresholds" | "emails" | "webhook",
    label: string,
    hint?: string,
    required = false,
  ) => (
    <Field
      param={name === "webhook" ? "webhook_url" : name}
      label={label}
      {...(hint === undefined ? {} : { hint })}
    >
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
      disabled={budget === undefined && scope !== "workspace" && fields.subject === ""}
      onSubmit={() => save.mutate()}
    >
      {text("name", "Name", undefined, true)}
      {budget !== undefined ? null : (
        <>
          <Field label="For">
            {(id) => (
              <Select
                id={id}
                value={scope}
                options={scopes}
                onChange={(chosen) => set({ scope: chosen, subject: "" })}
              />
            )}
          </Field>
          {scope === "workspace" ? null : (
            <SubjectField
              key={scope}
              scope={scope}
              value={fields.subject}
              onChange={(subject) => set({ subject })}
            />
          )}
        </>
      )}
      <LimitFields draft={fields} onChange={set} isSettled={budget !== undefined} />
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
