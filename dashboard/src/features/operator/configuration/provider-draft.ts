/** A model of a provider, as it is typed. */
export interface ModelDraft {
  id: string;
  /** The provider's own name of it; empty where it is the part after the slash. */
  upstream: string;
  /** USD per million tokens. */
  prompt: string;
  completion: string;
  context: string;
  /** Everything else of the entry. */
  rest: Readonly<Record<string, unknown>>;
}

/** A provider, as it is typed. */
export interface ProviderDraft {
  id: string;
  name: string;
  baseUrl: string;
  dialect: string;
  /** `***` keeps the one that is stored. */
  apiKey: string;
  models: readonly ModelDraft[];
  /** JSON of everything else of the entry. */
  more: string;
}

type Value = Readonly<Record<string, unknown>>;

export const emptyModel: ModelDraft = {
  ...{ id: "", upstream: "", prompt: "", completion: "", context: "" },
  rest: {},
};
export const emptyProvider: ProviderDraft = {
  ...{ id: "", name: "", baseUrl: "", dialect: "openai-chat", apiKey: "" },
  models: [emptyModel],
  more: "",
};

const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";
const isObject = (value: unknown): value is Value =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function modelDraftOf(value: unknown): ModelDraft {
  const {
    id,
    upstream_model: upstream,
    context_length: context,
    pricing,
    ...rest
  } = isObject(value) ? value : {};
  const { prompt, completion, ...otherPrices } = isObject(pricing) ? pricing : {};
  return {
    id: textOf(id),
    upstream: textOf(upstream),
    context: textOf(context),
    prompt: textOf(prompt),
    completion: textOf(completion),
    rest: Object.keys(otherPrices).length === 0 ? rest : { ...rest, pricing: otherPrices },
  };
}

/** An entry as it is edited. */
export function draftOf(id: string, value: Value): ProviderDraft {
  const { name, base_url: baseUrl, dialect, api_key: apiKey, models, ...rest } = value;
  const isPlain = dialect === undefined || typeof dialect === "string";
  const more = isPlain ? rest : { ...rest, dialect };
  return {
    id,
    name: textOf(name),
    baseUrl: textOf(baseUrl),
    dialect: isPlain ? textOf(dialect) : "",
    apiKey: textOf(apiKey),
    models: (Array.isArray(models) ? models : []).map(modelDraftOf),
    more: Object.keys(more).length === 0 ? "" : JSON.stringify(more, null, 2),
  };
}

function modelOf({ id, upstream, prompt, completion, context, rest }: ModelDraft): Value {
  const others = isObject(rest["pricing"]) ? rest["pricing"] : {};
  const pricing = {
    ...others,
    ...(prompt === "" ? {} : { prompt }),
    ...(completion === "" ? {} : { completion }),
  };
  const { pricing: _, ...kept } = rest;
  return {
    ...kept,
    id,
    ...(upstream === "" ? {} : { upstream_model: upstream }),
    ...(context === "" ? {} : { context_length: Number(context) }),
    ...(Object.keys(pricing).length === 0 ? {} : { pricing }),
  };
}

/** The entry of a draft. Throws where the other settings are no JSON object. */
export function valueOf({ name, baseUrl, dialect, apiKey, models, more }: ProviderDraft): Value {
  const rest: unknown = more.trim() === "" ? {} : JSON.parse(more);
  if (!isObject(rest)) throw new Error("Other settings are not a JSON object.");
  const named = models.filter(({ id }) => id.trim() !== "");
  return {
    ...rest,
    ...(name === "" ? {} : { name }),
    ...(baseUrl === "" ? {} : { base_url: baseUrl }),
    // A provider that the gateway knows by itself has its own dialects.
    ...(dialect === "" || baseUrl === "" ? {} : { dialect }),
    ...(apiKey === "" ? {} : { api_key: apiKey }),
    ...(named.length === 0 ? {} : { models: named.map(modelOf) }),
  };
}
