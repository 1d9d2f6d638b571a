type Body = Readonly<Record<string, unknown>>;

/** Kinds of input beside text, by the capability that a model needs for them. */
export type InputKind = "vision" | "audio-input" | "document-input";

/** What a request needs of the model that serves it, beside what it says in parameters. */
export interface RequestNeeds {
  inputs: ReadonlySet<InputKind>;
  /** The effort that was asked for; `none` where reasoning was switched off. */
  effort: string | undefined;
}

/** Types of content parts in the dialects of clients. */
const kindsOfParts: Readonly<Record<string, InputKind>> = {
  image_url: "vision",
  input_image: "vision",
  image: "vision",
  input_audio: "audio-input",
  file: "document-input",
  input_file: "document-input",
  document: "document-input",
};

/** Content stands in messages, in their tool results and in those of Responses; no dialect nests deeper. */
const depthMax = 5;

function collect(value: unknown, inputs: Set<InputKind>, depth = 0): void {
  if (typeof value !== "object" || value === null || depth > depthMax) return;
  if (Array.isArray(value)) {
    for (const entry of value) collect(entry, inputs, depth + 1);
    return;
  }
  const { type, content, output } = value as Body;
  const kind = typeof type === "string" ? kindsOfParts[type] : undefined;
  if (kind !== undefined) inputs.add(kind);
  collect(content, inputs, depth + 1);
  collect(output, inputs, depth + 1);
}

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Body)[name] : undefined;

/** Effort as a flat word, from whichever member a dialect has for it (contract: "Reasoning rules" 1 and 2). */
function effortOf(body: Body): string | undefined {
  const { reasoning, thinking } = body;
  const kind = member(thinking, "type");
  if (kind === "disabled" || member(reasoning, "enabled") === false) return "none";
  const written =
    body["reasoning_effort"] ??
    member(reasoning, "effort") ??
    member(body["output_config"], "effort");
  if (typeof written === "string") return written.toLowerCase();
  return kind === "enabled" ? "high" : undefined;
}

/** Reads what a request needs from its body, in whichever client dialect it is. */
export function needsOf(body: Body): RequestNeeds {
  const inputs = new Set<InputKind>();
  collect(body["messages"], inputs);
  collect(body["input"], inputs);
  return { inputs, effort: effortOf(body) };
}
