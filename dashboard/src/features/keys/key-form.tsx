import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Check, Field, Input, Select, TextArea, listOf, numberOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { useSession } from "../../lib/session.ts";
import style from "../../ui/ui.module.css";
import { ModelsField } from "../models/models-field.tsx";
import {
  type Key,
  type KeyFields,
  type MadeKey,
  changeKey,
  createChild,
  createKey,
} from "./api.ts";

const resets = [
  ["", "for as long as the key is here"],
  ["daily", "24 hours, rolling"],
  ["weekly", "7 days, rolling"],
  ["monthly", "30 days, rolling"],
] as const;
const lives = [
  ["", "never"],
  ["1", "in 1 day"],
  ["30", "in 30 days"],
  ["90", "in 90 days"],
  ["365", "in a year"],
] as const;
const dayMs = 86_400_000;

type Reset = (typeof resets)[number][0];
const resetOf = (key: Key | undefined): Reset =>
  key === undefined ? "monthly" : (key.limit_reset ?? "");

const start = (key: Key | undefined) => ({
  name: key?.name ?? "",
  limit: key?.limit?.toString() ?? "",
  reset: resetOf(key),
  days: "keep",
  rate: "",
  tpm: key?.tpm?.toString() ?? "",
  models: key?.allowed_models?.join("\n") ?? "",
  endpoints: key?.allowed_endpoints?.join("\n") ?? "",
  tools: key?.allowed_tools?.join("\n") ?? "",
  byok: key?.include_byok_in_limit ?? false,
  operator: key?.operator ?? false,
});

type Texts = ReturnType<typeof start>;

/** A list as typed; undefined where a new key is to have the service's own default. */
const listed = (text: string, isNew: boolean): string[] | null | undefined => {
  const items = listOf(text);
  return items.length > 0 ? items : isNew ? undefined : null;
};

function fieldsOf(
  { name, limit, reset, days, rate, tpm, byok, ...lists }: Texts,
  isNew: boolean,
): KeyFields {
  const amount = numberOf(limit) ?? null;
  const allowed = {
    allowed_models: listed(lists.models, isNew),
    allowed_endpoints: listed(lists.endpoints, isNew),
    allowed_tools: listed(lists.tools, isNew),
  };
  return {
    name,
    limit: amount,
    limit_reset: amount === null || reset === "" ? null : reset,
    include_byok_in_limit: byok,
    tpm: numberOf(tpm) ?? null,
    ...(Object.fromEntries(
      Object.entries(allowed).filter(([, list]) => list !== undefined),
    ) as Pick<KeyFields, keyof typeof allowed>),
    ...(rate === "" ? {} : { rate_limit: Number(rate) }),
    ...(days === "keep"
      ? {}
      : {
          expires_at:
            days === "" ? null : new Date(Date.now() + Number(days) * dayMs).toISOString(),
        }),
  };
}

/** Whether a key of this workspace can have the person's rights as an operator. */
function useGivesOperator(): boolean {
  const { data } = useSession();
  return data?.user.operator === true && data.workspace.organization_id === null;
}

/** Makes a key, one below another key, or changes one. */
export function KeyForm({
  changed,
  parent,
  onMade,
  onChanged,
}: {
  changed?: Key | undefined;
  parent?: Key | undefined;
  onMade: (made: MadeKey) => void;
  onChanged: () => void;
}) {
  const isNew = changed === undefined;
  // A key below another one never has them.
  const mayBeOperator =
    useGivesOperator() && parent === undefined && changed?.parent_key_id === undefined;
  const [texts, setTexts] = useState(() => start(changed));
  const set =
    (name: keyof Texts) =>
    (value: string): void =>
      setTexts({ ...texts, [name]: value });
  const save = useMutation({
    meta: { done: "Key saved" },
    mutationFn: async (): Promise<MadeKey | undefined> => {
      const rights = mayBeOperator ? { operator: texts.operator } : {};
      const body = { ...fieldsOf(texts, isNew), ...rights };
      if (!isNew) return changeKey(changed.hash, body).then(() => undefined);
      return parent === undefined ? createKey(body) : createChild({ hash: parent.hash, body });
    },
    onSuccess: (made) => (made === undefined ? onChanged() : onMade(made)),
  });
  const number = (name: "limit" | "rate" | "tpm", label: string, hint: string) => (
    <Field param={name === "rate" ? "rate_limit" : name} label={label} hint={hint}>
      {(id) => (
        <Input
          id={id}
          type="number"
          min="0"
          step={name === "limit" ? "any" : "1"}
          value={texts[name]}
          onChange={(event) => set(name)(event.target.value)}
        />
      )}
    </Field>
  );
  const lines = (name: "endpoints" | "tools", label: string, hint: string) => (
    <Field param={`allowed_${name}`} label={label} hint={hint}>
      {(id) => (
        <TextArea id={id} value={texts[name]} onChange={(event) => set(name)(event.target.value)} />
      )}
    </Field>
  );
  return (
    <Form action={isNew ? "Create key" : "Save key"} work={save} onSubmit={() => save.mutate()}>
      {parent === undefined ? null : (
        <p>It is within the bounds of {parent.name}, counts against them, and ends with it.</p>
      )}
      <Field param="name" label="Name" hint="What you will know it by: an app, an agent, a person.">
        {(id) => (
          <Input
            id={id}
            value={texts.name}
            onChange={(event) => set("name")(event.target.value)}
            required
            maxLength={200}
          />
        )}
      </Field>
      <div className={style.grid}>
        {number(
          "limit",
          "Spending cap in USD",
          "Requests are refused beyond it. Empty means no cap.",
        )}
        <Field label="The cap is for">
          {(id) => <Select id={id} value={texts.reset} options={resets} onChange={set("reset")} />}
        </Field>
        <Field param="expires_at" label="Expires">
          {(id) => (
            <Select
              id={id}
              value={texts.days === "keep" && isNew ? "" : texts.days}
              options={isNew ? lives : [["keep", "as it is"], ...lives]}
              onChange={set("days")}
            />
          )}
        </Field>
      </div>
      {mayBeOperator ? (
        <Check
          label="Operator's rights"
          hint="It may use the tools for operators over MCP. This needs a sign-in of the last 15 minutes."
          checked={texts.operator}
          onChange={(operator) => setTexts({ ...texts, operator })}
        />
      ) : null}
      <details>
        <summary>More limits</summary>
        <div className={style.form}>
          <div className={style.grid}>
            {number(
              "rate",
              "Requests a minute",
              isNew ? "Empty means the plan's." : `Now ${changed.rate_limit}. Empty keeps it.`,
            )}
            {number("tpm", "Tokens a minute", "Empty means no ceiling.")}
          </div>
          <Check
            label="Count requests that your own provider keys pay in the cap"
            checked={texts.byok}
            onChange={(byok) => setTexts({ ...texts, byok })}
          />
          <ModelsField
            label="Allowed models"
            hint="One a line. Empty means every model."
            value={texts.models}
            onChange={set("models")}
          />
          {lines(
            "endpoints",
            "Allowed endpoints",
            isNew
              ? "Paths, one a line. Empty means inference."
              : "Paths, one a line. Empty means every endpoint.",
          )}
          {lines(
            "tools",
            "Allowed tools",
            "MCP servers (docs) and tools of them (docs/search), one a line. Empty means every tool.",
          )}
        </div>
      </details>
    </Form>
  );
}
