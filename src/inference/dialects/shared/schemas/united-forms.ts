import type { DialectId } from "../../../canonical/dialect-id.ts";
import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { EncodePlace } from "../encode-state.ts";
import { asArray, asObject, asString } from "../wire-fields.ts";
import { currentSchema } from "./current-schema.ts";
import { type HeldSchema, loseDescribed, referred, withRules } from "./held-schema.ts";

/** Keywords that list the forms of a value; of the last one, all hold at once. */
const formLists = ["anyOf", "oneOf", "allOf"] as const;

/** One form of a tool's arguments. */
interface Form {
  /** The different schemas of each member. */
  members: ReadonlyMap<string, readonly JsonValue[]>;
  required: ReadonlySet<string>;
}

/** The schema that a form is part of, and the references that lead to it. */
interface Within {
  root: JsonObject;
  open: readonly string[];
}

const nothing: Form = { members: new Map(), required: new Set() };

/**
 * Returns the schema of a tool's arguments as one object with the members of all its forms, and the
 * keywords of which only a description is left; `root` has the definitions. Anthropic and OpenAI
 * answer 400 to a schema with `anyOf`, `oneOf` or `allOf` at its top, whichever tool the model would
 * call. A schema without them is returned as it is. Sources: anthropics/claude-code#5973, langchain-ai/langchainjs#9804.
 */
export function unitedForms(schema: JsonObject, root = schema): HeldSchema {
  if (!formLists.some((key) => key in schema)) return { schema, described: [] };
  const within = { root, open: [] };
  const { members, required } = formOf(schema, within);
  const rules: Record<string, JsonValue> = {};
  for (const key of ["anyOf", "oneOf"] as const) {
    const forms = formsOf(schema[key], within).map((form) => [...form.required]);
    if (forms.some((names) => names.some((name) => !required.has(name))))
      rules[key] = forms.map((names) => ({ required: names }));
  }
  const { anyOf: _, oneOf: __, allOf: ___, ...kept } = schema;
  const description = withRules(schema, rules);
  return {
    schema: {
      ...kept,
      ...(description !== undefined && { description }),
      type: "object",
      properties: Object.fromEntries([...members].map(([name, all]) => [name, oneSchema(all)])),
      ...(required.size > 0 && { required: [...required] }),
    },
    described: ["anyOf", "oneOf"].filter((key) => key in schema),
  };
}

/** Dialects whose makers refuse a list without items. */
const needsItems: ReadonlySet<DialectId> = new Set(["openai-chat", "openai-responses"]);

/**
 * Returns the schema of a tool's arguments for an upstream of another dialect, in today's draft and
 * with its forms united; undefined where the tool has none.
 */
export function unitedParameters(
  parameters: JsonObject | undefined,
  place: EncodePlace,
): JsonObject | undefined {
  if (parameters === undefined || place.state.sameDialect) return parameters;
  const items = needsItems.has(place.state.dialect);
  const united = unitedForms(currentSchema(parameters, { items }));
  loseDescribed(united, place.at(".parameters"));
  return united.schema;
}

/** Returns the members of a schema, with those of the forms within it. */
function formOf(schema: JsonObject, within: Within): Form {
  const { $ref: ref } = schema;
  if (typeof ref === "string") {
    const target = within.open.includes(ref) ? undefined : referred(within.root, ref);
    if (target === undefined) return nothing;
    return formOf(target, { ...within, open: [...within.open, ref] });
  }
  const own: Form = {
    members: new Map(
      Object.entries(asObject(schema.properties) ?? {}).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, [value]] as const],
      ),
    ),
    required: new Set((asArray(schema.required) ?? []).map(asString).filter(isText)),
  };
  const always = [own, ...formsOf(schema.allOf, within)];
  const choices = [formsOf(schema.anyOf, within), formsOf(schema.oneOf, within)];
  return {
    members: joinedMembers([...always, ...choices.flat()]),
    required: new Set([
      ...always.flatMap(({ required }) => [...required]),
      ...choices.flatMap(requiredByAll),
    ]),
  };
}

const isText = (value: string | undefined): value is string => value !== undefined;

const formsOf = (list: unknown, within: Within): Form[] =>
  (asArray(list) ?? []).flatMap((entry) => {
    const schema = asObject(entry);
    return schema === undefined ? [] : [formOf(schema, within)];
  });

/** Returns the names that every one of several forms requires. */
const requiredByAll = ([first, ...others]: readonly Form[]): string[] =>
  first === undefined
    ? []
    : [...first.required].filter((name) => others.every(({ required }) => required.has(name)));

function joinedMembers(forms: readonly Form[]): Form["members"] {
  const members = new Map<string, JsonValue[]>();
  for (const form of forms)
    for (const [name, schemas] of form.members) {
      const known = members.get(name) ?? [];
      const texts = new Set(known.map((schema) => JSON.stringify(schema)));
      members.set(name, [...known, ...schemas.filter((one) => !texts.has(JSON.stringify(one)))]);
    }
  return members;
}

/** Returns the schema of a member that has one of several. */
const oneSchema = (schemas: readonly JsonValue[]): JsonValue | undefined =>
  schemas.length === 1 ? schemas[0] : { anyOf: schemas };
