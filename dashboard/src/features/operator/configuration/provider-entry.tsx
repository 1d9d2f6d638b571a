import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { countOf, duration } from "../../../lib/format.ts";
import { Actions, Button } from "../../../ui/button.tsx";
import { Field, Input, Select, TextArea } from "../../../ui/fields.tsx";
import { Form } from "../../../ui/form.tsx";
import { Problem } from "../../../ui/loaded.tsx";
import { Status } from "../../../ui/values.tsx";
import style from "../../../ui/ui.module.css";
import { type Trial, putEntry, testEntry } from "./configuration-api.ts";
import own from "../operator.module.css";
import { type ModelDraft, type ProviderDraft, emptyModel, valueOf } from "./provider-draft.ts";

const dialects = [
  ["openai-chat", "OpenAI chat (vLLM, Ollama and most others)"],
  ["openai-responses", "OpenAI Responses"],
  ["anthropic-messages", "Anthropic Messages"],
  ["google-generate", "Google Gemini"],
  ["", "As the gateway knows it, or by surface below"],
] as const;
const outcomes = { passed: "good", failed: "bad", skipped: "warning" } as const;

/** What the provider answered, and its models to choose from. */
function TrialShown({ trial, onAdd }: { trial: Trial; onAdd: (name: string) => void }) {
  const { outcome, reason, latency_ms: latency, models } = trial;
  return (
    <div className={style.stack} role="status">
      <p>
        <Status kind={outcomes[outcome]}>
          {outcome === "passed" ? `answered in ${duration(latency)}` : outcome}
        </Status>{" "}
        {reason}
      </p>
      {models === null || models.length === 0 ? null : (
        <>
          <p>It lists {countOf(models.length, "model")}. Choose those to serve:</p>
          <div className={own["found"]}>
            {models.map((name) => (
              <Button key={name} look="plain" onClick={() => onAdd(name)}>
                {name}
              </Button>
            ))}
          </div>
        </>
      )}
    </div>
  );
}

function ModelFields({
  model,
  number,
  onChange,
  onRemove,
}: {
  model: ModelDraft;
  number: number;
  onChange: (change: Partial<ModelDraft>) => void;
  onRemove: () => void;
}) {
  const field = (name: Exclude<keyof ModelDraft, "rest">, label: string, placeholder: string) => (
    <Field label={label}>
      {(id) => (
        <Input
          id={id}
          value={model[name]}
          placeholder={placeholder}
          inputMode={name === "id" || name === "upstream" ? "text" : "decimal"}
          onChange={(event) => onChange({ [name]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <fieldset className={style.fieldset}>
      <legend>{model.id === "" ? `Model ${number}` : model.id}</legend>
      <div className={own["model"]}>
        {field("id", "Id in requests", "owner/model")}
        {field("upstream", "Name at the provider", model.id.split("/").slice(1).join("/"))}
        {field("prompt", "Input, USD per 1M", "0.50")}
        {field("completion", "Output, USD per 1M", "1.50")}
        {field("context", "Context, tokens", "131072")}
        <Button look="plain" aria-label={`Remove model ${number}`} onClick={onRemove}>
          Remove
        </Button>
      </div>
    </fieldset>
  );
}

/** Adds a provider, or changes one; it can be asked before anything is stored. */
export function ProviderEntry({
  stored,
  isNew,
  onSaved,
}: {
  stored: ProviderDraft;
  isNew: boolean;
  onSaved: () => void;
}) {
  const [draft, setDraft] = useState(stored);
  const change = (changes: Partial<ProviderDraft>): void =>
    setDraft((before) => ({ ...before, ...changes }));
  const test = useMutation({
    mutationFn: async () => testEntry({ id: draft.id, value: valueOf(draft) }),
  });
  const save = useMutation({
    meta: { done: "Provider saved" },
    mutationFn: async () => putEntry({ section: "providers", id: draft.id, value: valueOf(draft) }),
    onSuccess: onSaved,
  });
  const field = (
    name: "id" | "name" | "baseUrl" | "apiKey",
    label: string,
    { hint, ...props }: { hint?: string; placeholder?: string; type?: string; readOnly?: boolean },
  ) => (
    <Field label={label} {...(hint === undefined ? {} : { hint })}>
      {(id) => (
        <Input
          id={id}
          {...props}
          value={draft[name]}
          autoComplete="off"
          onChange={(event) => change({ [name]: event.target.value })}
        />
      )}
    </Field>
  );
  const setModel = (at: number, changes: Partial<ModelDraft>): void =>
    change({
      models: draft.models.map((model, index) => (index === at ? { ...model, ...changes } : model)),
    });
  const addModel = (name: string): void => {
    const model = { ...emptyModel, id: `${draft.id}/${name.split("/").at(-1)}`, upstream: name };
    change({ models: [...draft.models.filter(({ id }) => id !== ""), model] });
  };
  return (
    <Form
      action={isNew ? "Add provider" : "Save provider"}
      work={save}
      onSubmit={() => save.mutate()}
      disabled={draft.id === ""}
      more={
        <Button
          look="plain"
          disabled={draft.id === "" || test.isPending}
          onClick={() => test.mutate()}
        >
          {test.isPending ? "Testing" : "Test before saving"}
        </Button>
      }
    >
      <div className={style.grid}>
        {field("id", "Id", {
          hint: "Lower-case letters, digits and dashes.",
          placeholder: "acme",
          readOnly: !isNew,
        })}
        {field("name", "Name", { placeholder: "Acme Inference" })}
      </div>
      {field("baseUrl", "Base URL", {
        hint: "Up to the version, without /chat/completions. Empty for a provider that the gateway knows, such as groq.",
        placeholder: "https://api.example.com/v1",
      })}
      {field("apiKey", "API key", {
        type: "password",
        hint: "Stored encrypted; *** keeps the stored one. A server that asks for none takes any text. Empty leaves keys to callers.",
      })}
      <Field label="It speaks">
        {(id) => (
          <Select
            id={id}
            value={draft.dialect}
            options={[
              ...dialects,
              ...(dialects.some(([name]) => name === draft.dialect)
                ? []
                : [[draft.dialect, draft.dialect] as const]),
            ]}
            onChange={(dialect) => change({ dialect })}
          />
        )}
      </Field>
      {draft.models.map((model, index) => (
        <ModelFields
          key={index}
          model={model}
          number={index + 1}
          onChange={(changes) => setModel(index, changes)}
          onRemove={() => change({ models: draft.models.filter((_, at) => at !== index) })}
        />
      ))}
      <Actions>
        <Button look="plain" onClick={() => change({ models: [...draft.models, emptyModel] })}>
          Add model
        </Button>
      </Actions>
      <details>
        <summary>Other settings</summary>
        <Field
          label="As in switchyard.yaml, as JSON"
          hint="headers, timeouts_ms, deviations, data_policy, budget_usd_per_day and others."
        >
          {(id) => (
            <TextArea
              id={id}
              value={draft.more}
              spellCheck={false}
              placeholder={'{"budget_usd_per_day": 20}'}
              onChange={(event) => change({ more: event.target.value })}
            />
          )}
        </Field>
      </details>
      {test.error === null ? null : <Problem error={test.error} />}
      {test.data === undefined ? null : <TrialShown trial={test.data} onAdd={addModel} />}
    </Form>
  );
}
