/** What a model makes that does not chat: pictures, speech, or the text of what is said. */
export type MediaKind = "picture" | "speech" | "transcript";

/** Something that goes along with a message: a picture, a sound or a document, as a data URL. */
export interface Attachment {
  name: string;
  type: string;
  url: string;
}

/** Everything that can be set for one column of the room; texts are as they were typed. */
export interface Settings {
  model: string;
  system: string;
  /** The prompt of the hub that the system prompt came from; empty where it came from none. */
  hubPrompt: string;
  temperature: string;
  maxTokens: string;
  effort: "" | "low" | "medium" | "high";
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
  /** Of pictures: width and height such as `1024x1024`, quality, and how many. */
  size: string;
  quality: "" | "low" | "medium" | "high";
  count: string;
  /** Of speech. */
  voice: string;
  soundFormat: "wav" | "mp3" | "opus" | "flac";
  /** Of what is said, as a code such as `en`. */
  language: string;
}

/** A model that answers, with its settings. */
export interface Column extends Settings {
  /** Stays with the column while others come and go. */
  id: number;
}

export const columnsMax = 4;

const emptySettings: Settings = {
  model: "",
  system: "",
  hubPrompt: "",
  temperature: "",
  maxTokens: "",
  effort: "",
  tools: "",
  format: "text",
  schema: "",
  sort: "",
  only: "",
  ignore: "",
  fallbacks: true,
  privateOnly: false,
  size: "",
  quality: "",
  count: "",
  voice: "",
  soundFormat: "wav",
  language: "",
};

let columnsMade = 0;

/** Makes a column; what is not given is as the service has it. */
export const columnOf = (settings: Partial<Settings> = {}): Column => ({
  ...emptySettings,
  ...settings,
  id: (columnsMade += 1),
});

/** How many settings beside the model differ from what the service does by itself. */
export const changesOf = (column: Column): number =>
  Object.entries(changed(column)).filter(([name]) => name !== "model" && name !== "hubPrompt")
    .length;

/** A text part, a picture, a sound or a file of a message. */
export type Part =
  | { type: "text"; text: string }
  | { type: "input_audio"; input_audio: { data: string; format: string } }
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

/** The base64 of a data URL. */
export const dataOf = (url: string): string => url.slice(url.indexOf(",") + 1);

/** The format of a file of sound, as requests name it. */
export const soundFormatOf = ({ name, type }: Attachment): string =>
  type.includes("wav") ? "wav" : /mpeg|mp3/.test(type) ? "mp3" : (name.split(".").at(-1) ?? "wav");

function partOf(attachment: Attachment): Part {
  const { name, type, url } = attachment;
  if (type.startsWith("image/")) return { type: "image_url", image_url: { url } };
  if (type.startsWith("audio/"))
    return {
      type: "input_audio",
      input_audio: { data: dataOf(url), format: soundFormatOf(attachment) },
    };
  return { type: "file", file: { filename: name, file_data: url } };
}

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
}: Settings): Record<string, unknown> {
  return {
    ...(sort === "" ? {} : { sort }),
    ...(namesOf(only).length === 0 ? {} : { only: namesOf(only) }),
    ...(namesOf(ignore).length === 0 ? {} : { ignore: namesOf(ignore) }),
    ...(fallbacks ? {} : { allow_fallbacks: false }),
    ...(privateOnly ? { data_collection: "deny" } : {}),
  };
}

function formatOf({ format, schema }: Settings): Record<string, unknown> {
  if (format === "text") return {};
  if (format === "json_object") return { response_format: { type: "json_object" } };
  return {
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", strict: true, schema: jsonOf(schema, "The schema") },
    },
  };
}

/** What a column sets beside the model and the messages, by the names of chat requests. */
function parametersOf(settings: Settings): Record<string, unknown> {
  const { temperature, maxTokens, effort, tools } = settings;
  const rules = providerRules(settings);
  return {
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    ...(maxTokens === "" ? {} : { max_tokens: Number(maxTokens) }),
    ...(effort === "" ? {} : { reasoning: { effort } }),
    ...(tools.trim() === "" ? {} : { tools: jsonOf(tools, "Tools") }),
    ...formatOf(settings),
    ...(Object.keys(rules).length === 0 ? {} : { provider: rules }),
  };
}

/** The request that a column makes. Throws where a field is not what it has to be. */
export const bodyOf = (column: Settings, messages: readonly Message[]): ChatBody => ({
  model: column.model,
  messages:
    column.system === "" ? messages : [{ role: "system", content: column.system }, ...messages],
  ...parametersOf(column),
});

/** The column as the configuration of a preset. Throws as `bodyOf` does. */
export const presetConfigOf = (column: Settings): Record<string, unknown> => {
  const { model, system, size, quality, voice, language } = column;
  const texts = Object.entries({ model, system, size, quality, voice, language });
  return {
    ...Object.fromEntries(texts.filter(([, text]) => text !== "")),
    ...parametersOf(column),
  };
};

/** What a link of the playground carries. */
export interface Shared {
  columns: readonly Column[];
  prompt: string;
  /** What was said before: questions with their answers. */
  said?: readonly (readonly [question: string, answer: string])[];
}

const changed = (settings: Settings): Partial<Settings> =>
  Object.fromEntries(
    Object.entries(emptySettings).flatMap(([name, empty]) => {
      const value: unknown = Reflect.get(settings, name);
      return value === empty ? [] : [[name, value]];
    }),
  );

/**
 * The fragment of a link that opens the playground with these columns. Browsers send no fragment
 * to a server.
 */
export function fragmentOf({ columns, prompt, said }: Shared): string {
  const bytes = new TextEncoder().encode(
    JSON.stringify({ columns: columns.map(changed), prompt, ...(said && { said }) }),
  );
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `#p=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** Fields of another type than ours are passed over. */
const settingsOf = (carried: unknown): Partial<Settings> =>
  isObject(carried)
    ? Object.fromEntries(
        Object.entries(emptySettings)
          .filter(([name, empty]) => typeof carried[name] === typeof empty)
          .map(([name]) => [name, carried[name]]),
      )
    : {};

const isPair = (value: unknown): value is readonly [string, string] =>
  Array.isArray(value) && typeof value[0] === "string" && typeof value[1] === "string";

/** The columns of a link; one of an older form names models that share all other settings. */
function columnsOf(carried: Readonly<Record<string, unknown>>): readonly Column[] {
  const { columns, models } = carried;
  const each = Array.isArray(columns)
    ? columns.map(settingsOf)
    : (Array.isArray(models) ? models : [""]).map((model) => ({
        ...settingsOf(carried),
        ...settingsOf({ model }),
      }));
  return (each.length === 0 ? [{}] : each.slice(0, columnsMax)).map(columnOf);
}

/** What a fragment carries; undefined for one that no playground made. */
export function sharedOf(fragment: string): Shared | undefined {
  const [, encoded] = /^#p=([\w-]+)$/.exec(fragment) ?? [];
  if (encoded === undefined) return undefined;
  try {
    const bytes = Uint8Array.from(atob(encoded.replaceAll("-", "+").replaceAll("_", "/")), (each) =>
      each.charCodeAt(0),
    );
    const carried: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (!isObject(carried)) return undefined;
    const { prompt, said } = carried;
    return {
      columns: columnsOf(carried),
      prompt: typeof prompt === "string" ? prompt : "",
      ...(Array.isArray(said) ? { said: said.filter(isPair) } : {}),
    };
  } catch {
    return undefined;
  }
}
