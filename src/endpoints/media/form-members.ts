import { badField } from "../../platform/kernel/errors.ts";

/** Matches the keys in brackets behind a field's name, such as `[type]` or `[]`. */
const bracketKey = /\[([^[\]]*)\]/g;

/** The most keys in brackets behind one field's name. */
const depthMax = 4;

/**
 * Returns the fields of a form as JSON would have them: `a[]` and repeated names become lists, and
 * `a[b]` objects, as OpenAI's SDKs write them. Values stay text.
 */
function nestedFields(fields: readonly (readonly [string, string])[]): Record<string, unknown> {
  const body = new Map<string, unknown>();
  for (const [name, value] of fields) {
    const open = name.indexOf("[");
    const base = open > 0 ? name.slice(0, open) : name;
    const keys =
      open > 0 ? [...name.slice(open).matchAll(bracketKey)].map(([, key]) => key ?? "") : [];
    if (keys.length > depthMax) throw badField(name, "is nested too deeply.");
    body.set(base, merged(body.get(base), { keys, value }));
  }
  return Object.fromEntries(body);
}

function merged(
  known: unknown,
  { keys, value }: { keys: readonly string[]; value: string },
): unknown {
  const [key, ...rest] = keys;
  if (key === undefined)
    return known === undefined ? value : [...(Array.isArray(known) ? known : [known]), value];
  if (key === "")
    return [...(Array.isArray(known) ? known : []), merged(undefined, { keys: rest, value })];
  const object = new Map(typeof known === "object" && known !== null ? Object.entries(known) : []);
  object.set(key, merged(object.get(key), { keys: rest, value }));
  return Object.fromEntries(object);
}

/** Members that say how a request is routed and recorded, and may be written as JSON. */
const writtenAsJson = ["provider", "models", "trace", "metadata", "require_params", "min_context"];

/** Returns the value of a text that matches a pattern of JSON; any other text as it is. */
function parsed(text: string, pattern: RegExp): unknown {
  if (!pattern.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Returns preferences in brackets with the types of JSON. Those of `trace` and `metadata` stay texts,
 * since a tag such as `42` is one.
 */
function typed(value: unknown): unknown {
  if (typeof value === "string") return parsed(value, /^(?:true|false|-?\d+(?:\.\d+)?)$/);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, typed(inner)]));
}

/**
 * Returns the members of a form. Those that routing reads may be written in brackets, as OpenAI's SDKs
 * write objects, or as JSON. Throws `bad_request` for a name that is nested too deeply.
 */
export function formMembers(
  fields: readonly (readonly [string, string])[],
): Record<string, unknown> {
  const members = nestedFields(fields);
  for (const name of writtenAsJson) {
    const value = members[name];
    if (typeof value === "string") members[name] = parsed(value, /^[{[\d]/);
    else if (name === "provider" && value !== undefined) members[name] = typed(value);
  }
  return members;
}
