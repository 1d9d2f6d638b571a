import { Check, Field, Input, Select, TextArea, listOf } from "../../ui/fields.tsx";
import style from "../../ui/ui.module.css";
import { ProvidersField } from "../provider-keys/providers-field.tsx";
import type { Settings } from "./draft.ts";
import own from "./playground.module.css";

const formats = [
  ["text", "Text"],
  ["json_object", "JSON"],
  ["json_schema", "JSON by a schema"],
] as const;
const sorts = [
  ["", "As the gateway weighs them"],
  ["price", "Cheapest first"],
  ["throughput", "Most tokens a second first"],
  ["latency", "Fastest first"],
] as const;

const efforts = [
  ["", "As the model has it"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
] as const;

/**
 * Everything of a request beside the messages: system prompt, parameters, tools, the form of the answer, and rules
 * for providers.
 */
export function SettingsForm({
  draft,
  onChange,
}: {
  draft: Settings;
  onChange: (change: Partial<Settings>) => void;
}) {
  const providers = (name: "only" | "ignore", label: string) => (
    <ProvidersField
      label={label}
      value={listOf(draft[name])}
      onChange={(ids) => onChange({ [name]: ids.join(", ") })}
    />
  );
  const text = (name: "temperature" | "maxTokens") => (id: string) => (
    <Input
      id={id}
      value={draft[name]}
      onChange={(event) => onChange({ [name]: event.target.value })}
      type="number"
      min="0"
      step="any"
    />
  );
  const code = (name: "tools" | "schema") => (id: string) => (
    <textarea
      id={id}
      className={`${style["input"]} mono`}
      value={draft[name]}
      spellCheck={false}
      onChange={(event) => onChange({ [name]: event.target.value })}
    />
  );
  return (
    <div className={style.form}>
      <Field label="System prompt" hint="Comes before the first message.">
        {(id) => (
          <TextArea
            id={id}
            value={draft.system}
            rows={5}
            onChange={(event) => onChange({ system: event.target.value })}
          />
        )}
      </Field>
      <div className={own["fields"]}>
        <Field label="Temperature">{text("temperature")}</Field>
        <Field label="Max output, tokens">{text("maxTokens")}</Field>
        <Field label="Thinking effort">
          {(id) => (
            <Select
              id={id}
              value={draft.effort}
              options={efforts}
              onChange={(effort) => onChange({ effort })}
            />
          )}
        </Field>
        <Field label="Answer format">
          {(id) => (
            <Select
              id={id}
              value={draft.format}
              options={formats}
              onChange={(format) => onChange({ format })}
            />
          )}
        </Field>
        <Field label="Order of providers">
          {(id) => (
            <Select
              id={id}
              value={draft.sort}
              options={sorts}
              onChange={(sort) => onChange({ sort })}
            />
          )}
        </Field>
        {providers("only", "Only these providers")}
        {providers("ignore", "Never these providers")}
      </div>
      {draft.format === "json_schema" ? (
        <Field label="Schema of the answer" hint="JSON schema.">
          {code("schema")}
        </Field>
      ) : null}
      <Field label="Tools" hint="A JSON list in OpenAI's form. Calls are shown and not made.">
        {code("tools")}
      </Field>
      <Check
        label="Go on to another provider where one fails"
        checked={draft.fallbacks}
        onChange={(fallbacks) => onChange({ fallbacks })}
      />
      <Check
        label="Only providers that keep no data"
        checked={draft.privateOnly}
        onChange={(privateOnly) => onChange({ privateOnly })}
      />
    </div>
  );
}
