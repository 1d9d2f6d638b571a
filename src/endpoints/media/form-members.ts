import { GatewayError } from "../../platform/kernel/errors.ts";

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
    if (keys.length > depthMax)
      throw new GatewayError("bad_request", `${name}: is nested too deeply.`, { param: name });
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

/** Members that say how a request is routed and recorded, which have the types of JSON. */
const typedMembers = ["provider", "models", "trace", "metadata", "require_params", "min_context"];

/** Returns a value that a form writes as text as JSON has it; texts of other kinds stay. */
function typed(value: unknown): unknown {
  if (Array.isArray(value)) return value;
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, typed(inner)]));
  if (typeof value !== "string" || !/^(?:[{[]|true$|false$|-?\d+(?:\.\d+)?$)/.test(value))
    return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/**
 * Returns the members of a form. Those that routing reads may be written in brackets, as OpenAI's SDKs
 * write objects, or as JSON. Throws `bad_request` for a name that is nested too deeply.
 */
export function formMembers(
  fields: readonly (readonly [string, string])[],
): Record<string, unknown> {
  const members = nestedFields(fields);
  for (const name of typedMembers)
    if (Object.hasOwn(members, name)) members[name] = typed(members[name]);
  return members;
}
