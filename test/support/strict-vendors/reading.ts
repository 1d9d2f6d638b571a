import type { Fields, VendorRequest } from "./rule.ts";

type Condition = (request: VendorRequest) => boolean;

/** Returns the value as an object; an empty one where it is none. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** Returns the objects of a list; none where it is no list. */
export const listOf = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.map(fieldsOf) : [];

/** Returns the value at a path of members, such as `generationConfig.seed`. */
export const at = (value: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((inner, key) => fieldsOf(inner)[key], value);

/** Returns whether a member is written and not null. */
export const isSet =
  (path: string): Condition =>
  ({ body }) =>
    (at(body, path) ?? undefined) !== undefined;

/** Returns whether a member is written with another value than these. */
export const isOther =
  (path: string, ...allowed: readonly unknown[]): Condition =>
  ({ body }) => {
    const value = at(body, path);
    return value !== undefined && value !== null && !allowed.includes(value);
  };

/** Returns whether a number is above a bound. */
export const isAbove =
  (path: string, most: number): Condition =>
  ({ body }) => {
    const value = at(body, path);
    return typeof value === "number" && value > most;
  };

/** Returns whether a text is longer than a bound, in characters. */
export const isLonger =
  (path: string, most: number): Condition =>
  ({ body }) => {
    const value = at(body, path);
    return typeof value === "string" && value.length > most;
  };

/** Returns whether all conditions hold. */
export const all =
  (...conditions: readonly Condition[]): Condition =>
  (request) =>
    conditions.every((condition) => condition(request));

/** Returns whether the condition does not hold. */
export const not =
  (condition: Condition): Condition =>
  (request) =>
    !condition(request);

/** Returns the messages of chat, Messages or Converse, or the contents of Gemini. */
export const turnsOf = ({ body }: VendorRequest): Fields[] =>
  listOf(body["messages"] ?? body["contents"]);

/** Returns the functions that chat or Responses offers. */
export const functionsOf = ({ body }: VendorRequest): Fields[] =>
  listOf(body["tools"])
    .filter(({ type }) => type === "function")
    .map((tool) => fieldsOf(tool["function"] ?? tool));

/** Returns whether functions are offered. */
export const offersFunctions: Condition = (request) => functionsOf(request).length > 0;

/** Returns the text blocks or content blocks of a turn; a text counts as one text block. */
export function blocksOf({ content, parts }: Fields): Fields[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content ?? parts);
}

/** Returns whether any turn meets a condition. */
export const someTurn =
  (condition: (turn: Fields, index: number, turns: readonly Fields[]) => boolean): Condition =>
  (request) =>
    turnsOf(request).some(condition);

/** Returns whether any block of any turn meets a condition. */
export const someBlock = (condition: (block: Fields, turn: Fields) => boolean): Condition =>
  someTurn((turn) => blocksOf(turn).some((block) => condition(block, turn)));

/** Returns the calls of an assistant's turn of chat. */
export const callsOf = (turn: Fields): Fields[] => listOf(turn["tool_calls"]);

/** Returns whether some call of chat, or some result, has an id that the pattern does not match. */
export const hasOtherCallId = (pattern: RegExp): Condition =>
  someTurn(
    (turn) =>
      callsOf(turn).some(({ id }) => !pattern.test(String(id))) ||
      (turn["role"] === "tool" && !pattern.test(String(turn["tool_call_id"]))),
  );

/** Returns whether a turn of one role directly follows one of another. */
export const follows = (role: string, before: string): Condition =>
  someTurn(
    (turn, index, turns) =>
      turn["role"] === role && index > 0 && turns[index - 1]?.["role"] === before,
  );

/** Returns whether some chat message, or a part of it, contains the word JSON. */
export const saysJson: Condition = ({ body }) =>
  /json/i.test(JSON.stringify(body["messages"] ?? body["input"] ?? "")) ||
  /json/i.test(String(body["instructions"] ?? ""));

/** Returns whether calls of chat are left without results directly after them. */
export const lacksResults: Condition = someTurn((turn, index, turns) => {
  const calls = callsOf(turn);
  const results = turns.slice(index + 1, index + 1 + calls.length);
  return calls.some(
    ({ id }) => !results.some((next) => next["role"] === "tool" && next["tool_call_id"] === id),
  );
});

/** Returns whether a result of chat belongs to no call before it. */
export const hasStrayResult: Condition = someTurn(
  (turn, index, turns) =>
    turn["role"] === "tool" &&
    !turns
      .slice(0, index)
      .some((before) => callsOf(before).some(({ id }) => id === turn["tool_call_id"])),
);

/** Returns every schema within a JSON Schema, and the schema itself. */
export function schemasIn(schema: unknown): Fields[] {
  const fields = fieldsOf(schema);
  const inner = [
    fields["items"],
    ...["anyOf", "oneOf", "allOf", "prefixItems"].flatMap((key) => listOf(fields[key])),
    ...["properties", "$defs", "definitions"].flatMap((key) =>
      Object.values(fieldsOf(fields[key])),
    ),
  ];
  return [fields, ...inner.filter((value) => value !== undefined).flatMap(schemasIn)];
}

/** Returns whether a schema lists forms at its top. */
export const hasForms = (schema: unknown): boolean =>
  ["anyOf", "oneOf", "allOf"].some((key) => fieldsOf(schema)[key] !== undefined);

/** Returns whether a schema has a member of its top that Claude has no name for. */
export const hasOddMembers = (schema: unknown): boolean =>
  Object.keys(fieldsOf(at(schema, "properties"))).some(
    (name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name),
  );

/** Returns whether a schema has keywords of drafts before 2020-12: tuples, and bounds as switches. */
export const isOfOlderDraft = (schema: unknown): boolean =>
  schemasIn(schema).some(
    ({ items, exclusiveMinimum, exclusiveMaximum }) =>
      Array.isArray(items) ||
      [exclusiveMinimum, exclusiveMaximum].some((bound) => typeof bound === "boolean"),
  );

/** Returns whether a schema has a list without items. */
export const lacksItems = (schema: unknown): boolean =>
  schemasIn(schema).some(
    ({ type, items }) => [type].flat().includes("array") && items === undefined,
  );

/** Returns whether two tools of a list have one name. */
export const hasTwins = (tools: readonly Fields[]): boolean =>
  new Set(tools.map(({ name }) => name)).size < tools.length;

/** Returns whether an object schema leaves room for members that it does not name. */
export const isOpen = (schema: Fields): boolean =>
  schema["type"] === "object" && schema["additionalProperties"] !== false;

/** Returns whether an object schema has properties that it does not require. */
export const hasOptional = (schema: Fields): boolean => {
  const required: unknown = schema["required"];
  return Object.keys(fieldsOf(schema["properties"])).some(
    (name) => !(Array.isArray(required) && required.includes(name)),
  );
};
