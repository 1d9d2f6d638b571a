/** Something that goes along with a message: a picture or a document, as a data URL. */
export interface Attachment {
  name: string;
  type: string;
  url: string;
}

/** Everything that can be set for a request; texts are as they were typed. */
export interface Draft {
  models: readonly string[];
  system: string;
  temperature: string;
  maxTokens: string;
  /** JSON of a list of tools; empty is none. */
  tools: string;
  format: "text" | "json_object" | "json_schema";
  /** JSON schema of the answer, for `json_schema`. */
  schema: string;
  sort: "" | "price" | "throughput" | "latency";
  /** Providers by id, with commas: which alone are asked, and which are not. */
  only: string;
  ignore: string;
  fallbacks: boolean;
  privateOnly: boolean;
}

export const emptyDraft: Draft = {
  models: [""],
  system: "",
  temperature: "",
  maxTokens: "",
  tools: "",
  format: "text",
  schema: "",
  sort: "",
  only: "",
  ignore: "",
  fallbacks: true,
  privateOnly: false,
};

/** A text part, a picture or a file of a message. */
export type Part =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename: string; file_data: string } };

/** One message of a conversation. */
export interface Message {
  role: "system" | "user" | "assistant";
  content: string | readonly Part[];
}

/** A chat request, as it is sent. */
export type ChatBody = Readonly<Record<string, unknown>> & {
  model: string;
  messages: readonly Message[];
};

const partOf = ({ name, type, url }: Attachment): Part =>
  type.startsWith("image/")
    ? { type: "image_url", image_url: { url } }
    : { type: "file", file: { filename: name, file_data: url } };

/** A person's message with what goes along with it. */
export const userMessage = (text: string, attachments: readonly Attachment[]): Message => ({
  role: "user",
  content: attachments.length === 0 ? text : [{ type: "text", text }, ...attachments.map(partOf)],
});

/** The JSON of a field; throws what is wrong with it, by the field's name. */
function jsonOf(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(
      `${field} is not JSON: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

const namesOf = (text: string): string[] =>
  text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

function providerRules({
  sort,
  only,
  ignore,
  fallbacks,
  privateOnly,
}: Draft): Record<string, unknown> {
  return {
    ...(sort === "" ? {} : { sort }),
    ...(namesOf(only).length === 0 ? {} : { only: namesOf(only) }),
    ...(namesOf(ignore).length === 0 ? {} : { ignore: namesOf(ignore) }),
    ...(fallbacks ? {} : { allow_fallbacks: false }),
    ...(privateOnly ? { data_collection: "deny" } : {}),
  };
}

function formatOf({ format, schema }: Draft): Record<string, unknown> {
  if (format === "text") return {};
  if (format === "json_object") return { response_format: { type: "json_object" } };
  return {
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", strict: true, schema: jsonOf(schema, "The schema") },
    },
  };
}

/** The request that a draft makes for one model. Throws where a field is not what it has to be. */
export function bodyOf(draft: Draft, model: string, messages: readonly Message[]): ChatBody {
  const rules = providerRules(draft);
  return {
    model,
    messages:
      draft.system === "" ? messages : [{ role: "system", content: draft.system }, ...messages],
    ...(draft.temperature === "" ? {} : { temperature: Number(draft.temperature) }),
    ...(draft.maxTokens === "" ? {} : { max_tokens: Number(draft.maxTokens) }),
    ...(draft.tools.trim() === "" ? {} : { tools: jsonOf(draft.tools, "Tools") }),
    ...formatOf(draft),
    ...(Object.keys(rules).length === 0 ? {} : { provider: rules }),
  };
}

/** What a link of the playground carries. */
export interface Shared {
  draft: Draft;
  prompt: string;
}

/**
 * The fragment of a link that opens the playground with this draft. Browsers send no fragment to a
 * server.
 */
export function fragmentOf({ draft, prompt }: Shared): string {
  const changed = Object.entries(draft).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(Reflect.get(emptyDraft, name)),
  );
  const bytes = new TextEncoder().encode(
    JSON.stringify({ ...Object.fromEntries(changed), prompt }),
  );
  return `#p=${btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")}`;
}

/**
 * What a fragment carries; undefined for one that no playground made. Fields of another type than
 * ours are passed over.
 */
export function sharedOf(fragment: string): Shared | undefined {
  const [, encoded] = /^#p=([\w-]+)$/.exec(fragment) ?? [];
  if (encoded === undefined) return undefined;
  try {
    const text = new TextDecoder().decode(
      Uint8Array.from(atob(encoded.replaceAll("-", "+").replaceAll("_", "/")), (each) =>
        each.charCodeAt(0),
      ),
    );
    const carried = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const known = Object.entries(emptyDraft).filter(
      ([name, value]) => typeof carried[name] === typeof value,
    );
    const draft: Draft = {
      ...emptyDraft,
      ...Object.fromEntries(known.map(([name]) => [name, carried[name]])),
    };
    const models = Array.isArray(draft.models)
      ? draft.models.filter((model) => typeof model === "string").slice(0, 4)
      : [];
    return {
      draft: { ...draft, models: models.length === 0 ? [""] : models },
      prompt: typeof carried["prompt"] === "string" ? carried["prompt"] : "",
    };
  } catch {
    return undefined;
  }
}
