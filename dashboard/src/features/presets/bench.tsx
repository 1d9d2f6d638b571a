import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "../../lib/session.ts";
import { send, sendingAsWritten } from "../../lib/api.ts";
import { count, duration, requestCost } from "../../lib/format.ts";
import { withPlaygroundKey } from "../../lib/playground-key.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Field, TextArea, listOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Problem } from "../../ui/loaded.tsx";
import style from "../../ui/ui.module.css";
import type { PresetConfig } from "./api.ts";

/** How a field of a preset is typed. */
type FieldKind = "text" | "lines" | "list" | "number" | "json" | "model" | "models";

/** A field of a preset, as the editor shows it. */
export interface PresetField {
  name: string;
  label: string;
  kind: FieldKind;
  hint?: string;
  group: "Model" | "Sampling" | "Output" | "Tools" | "Routing";
}

/** Every field of a preset's configuration. */
export const presetFields: readonly PresetField[] = [
  {
    name: "model",
    label: "Model",
    kind: "model",
    group: "Model",
  },
  {
    name: "models",
    label: "Fallback models",
    kind: "models",
    group: "Model",
    hint: "In order, one a line.",
  },
  {
    name: "system",
    label: "System prompt",
    kind: "lines",
    group: "Model",
    hint: "For requests that have none.",
  },
  {
    name: "reasoning",
    label: "Reasoning",
    kind: "json",
    group: "Model",
    hint: 'Such as {"effort":"low"}.',
  },
  { name: "temperature", label: "Temperature", kind: "number", group: "Sampling", hint: "0 to 2" },
  { name: "top_p", label: "Top p", kind: "number", group: "Sampling", hint: "0 to 1" },
  { name: "top_k", label: "Top k", kind: "number", group: "Sampling" },
  {
    name: "frequency_penalty",
    label: "Frequency penalty",
    kind: "number",
    group: "Sampling",
    hint: "-2 to 2",
  },
  {
    name: "presence_penalty",
    label: "Presence penalty",
    kind: "number",
    group: "Sampling",
    hint: "-2 to 2",
  },
  {
    name: "repetition_penalty",
    label: "Repetition penalty",
    kind: "number",
    group: "Sampling",
    hint: "0 to 2",
  },
  { name: "seed", label: "Seed", kind: "number", group: "Sampling" },
  { name: "max_tokens", label: "Output cap", kind: "number", group: "Output", hint: "In tokens." },
  {
    name: "max_completion_tokens",
    label: "Output cap with reasoning",
    kind: "number",
    hint: "In tokens.",
    group: "Output",
  },
  {
    name: "stop",
    label: "Stop sequences",
    kind: "list",
    group: "Output",
    hint: "At most four, separated by commas.",
  },
  {
    name: "response_format",
    label: "Response format",
    kind: "json",
    group: "Output",
    hint: 'Such as {"type":"json_object"}.',
  },
  {
    name: "stream_options",
    label: "Stream options",
    kind: "json",
    group: "Output",
    hint: 'Such as {"include_usage":true}.',
  },
  {
    name: "tools",
    label: "Tools",
    kind: "json",
    group: "Tools",
    hint: "A list, as chat requests have it.",
  },
  {
    name: "tool_choice",
    label: "Tool choice",
    kind: "text",
    group: "Tools",
    hint: "auto, none, required, or JSON for one tool.",
  },
  {
    name: "provider",
    label: "Provider rules",
    kind: "json",
    group: "Routing",
    hint: "The routing page writes them for you.",
  },
  { name: "require_params", label: "Required parameters", kind: "list", group: "Routing" },
  { name: "min_context", label: "Least context in tokens", kind: "number", group: "Routing" },
];

/** A value as the editor's field shows it. */
function textOf(value: unknown, kind: FieldKind): string {
  if (value === null || value === undefined) return "";
  if (kind === "list") return Array.isArray(value) ? value.join(", ") : String(value);
  if (kind === "models") return Array.isArray(value) ? value.join("\n") : String(value);
  if (kind === "json") return JSON.stringify(value, null, 2);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function jsonOf(text: string, label: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(`${label}: this is no JSON.`);
  }
}

/**
 * A typed field as the API takes it; null takes it out of the preset. Throws where it cannot be
 * read.
 */
function valueOf(text: string, { kind, label, name }: PresetField): unknown {
  if (text.trim() === "") return null;
  if (kind === "list" || kind === "models") return listOf(text);
  if (kind === "json" || (name === "tool_choice" && text.trim().startsWith("{")))
    return jsonOf(text, label);
  if (kind !== "number") return text;
  const value = Number(text);
  if (Number.isNaN(value)) throw new Error(`${label}: this is no number.`);
  return value;
}

/**
 * The configuration that the typed fields mean; fields that were emptied are null. Throws where one
 * cannot be read.
 */
export const configOf = (texts: Readonly<Record<string, string>>): PresetConfig =>
  Object.fromEntries(
    presetFields.map((field) => [field.name, valueOf(texts[field.name] ?? "", field)]),
  );

/** The typed fields of a configuration. */
export const textsOf = (config: PresetConfig): Record<string, string> =>
  Object.fromEntries(presetFields.map(({ name, kind }) => [name, textOf(config[name], kind)]));

/** A configuration without the fields that are empty. */
const withoutNulls = (config: PresetConfig): PresetConfig =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));

interface Answer {
  text: string;
  model: string;
  milliseconds: number;
  tokens: number | undefined;
  costUsd: number | undefined;
  id: string;
}

interface Completion {
  id: string;
  model: string;
  choices: readonly { message: { content: string | null } }[];
  usage?: { completion_tokens?: number; cost?: number };
}

async function ask(workspaceId: string, body: Record<string, unknown>): Promise<Answer> {
  const startedMs = performance.now();
  const response = await withPlaygroundKey(workspaceId, (key) =>
    send("/chat/completions", { ...sendingAsWritten(body), key }),
  );
  const { id, model, choices, usage } = (await response.json()) as Completion;
  return {
    id,
    model,
    text: choices[0]?.message.content ?? "",
    milliseconds: performance.now() - startedMs,
    tokens: usage?.completion_tokens,
    costUsd: usage?.cost,
  };
}

/**
 * The preset's fields in the body itself, where what is in the editor differs from what is stored.
 */
const bodyOf = (config: PresetConfig, message: string): Record<string, unknown> => {
  const { system, ...fields } = withoutNulls(config);
  const messages = [{ role: "user", content: message }];
  return {
    ...fields,
    messages:
      typeof system === "string" ? [{ role: "system", content: system }, ...messages] : messages,
  };
};

function AnswerCard({
  title,
  work,
}: {
  title: string;
  work: { data: Answer | undefined; error: unknown; isPending: boolean };
}) {
  return (
    <Card title={title}>
      <div aria-live="polite">
        {work.isPending ? (
          "Waiting for the answer."
        ) : work.error ? (
          <Problem error={work.error} />
        ) : work.data === undefined ? (
          "No answer yet."
        ) : (
          <>
            <p>{work.data.text}</p>
            <p className={style.hint}>
              {work.data.model}, {duration(work.data.milliseconds)}, {count(work.data.tokens)}{" "}
              tokens, {requestCost(work.data.costUsd)}
            </p>
            <Link to="/activity" search={{ id: work.data.id }}>
              Open the record
            </Link>
          </>
        )}
      </div>
    </Card>
  );
}

/** Sends one message through the stored preset and through what is in the editor, side by side. */
export function Bench({ slug, draft }: { slug: string; draft: () => PresetConfig }) {
  const { data: session } = useSession();
  const [message, setMessage] = useState("");
  const workspaceId = session?.workspace.id ?? "";
  const stored = useMutation({
    mutationFn: () =>
      ask(workspaceId, {
        model: `@preset/${slug}`,
        messages: [{ role: "user", content: message }],
      }),
  });
  const edited = useMutation({
    mutationFn: async () => ask(workspaceId, bodyOf(draft(), message)),
  });
  const both = (): void => {
    stored.mutate();
    edited.mutate();
  };
  return (
    <>
      <Card title="Test bench">
        <Form
          look="plain"
          action="Run preset"
          work={{ isPending: stored.isPending, error: null }}
          onSubmit={() => stored.mutate()}
          disabled={session === undefined}
          more={
            <Button look="plain" disabled={message === "" || edited.isPending} onClick={both}>
              Run preset and draft
            </Button>
          }
        >
          <Field
            label="Message"
            hint="Sent with your playground key; it costs what a request costs."
          >
            {(id) => (
              <TextArea
                id={id}
                value={message}
                required
                onChange={(event) => setMessage(event.target.value)}
              />
            )}
          </Field>
        </Form>
      </Card>
      <div className={style.grid}>
        <AnswerCard title="Stored preset" work={stored} />
        <AnswerCard title="Draft in the editor" work={edited} />
      </div>
    </>
  );
}
