import { TextArea, listOf } from "../../ui/form.tsx";
import { Field } from "../../ui/parts.tsx";
import type { AliasTarget } from "./api.ts";

/** Returns the target of an alias as text: a model, models with commas, or JSON. */
export const textOf = (target: unknown): string =>
  typeof target === "string"
    ? target
    : Array.isArray(target) && target.every((each) => typeof each === "string")
      ? target.join(", ")
      : target === undefined
        ? ""
        : JSON.stringify(target, null, 2);

function parsed(json: string): AliasTarget {
  try {
    return JSON.parse(json) as AliasTarget;
  } catch (cause) {
    const reason = cause instanceof Error ? ` ${cause.message}` : "";
    throw new Error(`Model: this begins like JSON and is none.${reason}`, { cause });
  }
}

/** Returns the same as a value. Throws where it begins like JSON and is none. */
export function targetOf(text: string): AliasTarget {
  if (/^\s*[[{]/.test(text)) return parsed(text);
  const models = listOf(text);
  const [first, ...others] = models;
  return first !== undefined && others.length === 0 ? first : models;
}

/** The models that an alias means, as text. */
export const TargetField = ({
  value,
  onChange,
}: {
  value: string;
  onChange: (text: string) => void;
}) => (
  <Field
    label="Model"
    hint='Several with commas are asked in order. Weights as JSON: [{"model": "acme/a", "weight": 9}, ...]; conditions with "when": {"tag": "beta"}, or key, header, metadata.'
  >
    {(id) => (
      <TextArea
        id={id}
        value={value}
        required
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
    )}
  </Field>
);
