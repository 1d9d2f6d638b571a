import fc from "fast-check";

/**
 * A change to a JSON value: where, by numbers that pick a member at each depth, and what becomes of
 * it.
 */
export interface Mutation {
  path: readonly number[];
  kind: "replace" | "remove" | "repeat" | "rename" | "nest" | "swap";
  value: unknown;
}

/** Values that no member of a request or an answer is made for, and some that one may be. */
const oddValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  -0,
  // biome-ignore lint/correctness/noPrecisionLoss: one beyond the safe integers, on purpose.
  9_007_199_254_740_993,
  [],
  {},
  [null],
  [[]],
  [{}],
  "",
  " ",
  "x",
  "\u0000",
  "\ud800",
  "😀",
  "[DONE]",
  "data: x",
  "{",
  "__proto__",
  "constructor",
  "toString",
  "text",
  "user",
  "assistant",
  "system",
  "tool",
  "function",
  "image_url",
  "tool_use",
  "tool_result",
  "thinking",
  "reasoning",
  "message",
  "function_call",
  "base64",
  "data:;base64,",
  "data:image/png;base64,AAAA",
  "https://example.com/a.png",
  { type: null },
  { type: "text" },
  { type: "text", text: null },
  { type: "function" },
  { constructor: 1, toString: 1 },
  { type: "tool_use", id: "", name: "", input: null },
  { type: "image", source: {} },
  { role: "user" },
  { role: "assistant", content: [{}] },
];

const value = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...oddValues) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
);

/** Any change, wherever it may strike. */
export const mutation: fc.Arbitrary<Mutation> = fc.record({
  path: fc.array(fc.nat(30), { minLength: 1, maxLength: 8 }),
  kind: fc.constantFrom(
    "replace",
    "replace",
    "replace",
    "remove",
    "repeat",
    "rename",
    "nest",
    "swap",
  ),
  value,
});

/** The value with the change made; the value itself is left as it is. */
export function mutated(root: unknown, { path, kind, value: other }: Mutation): unknown {
  const [step = 0, ...rest] = path;
  if (typeof root !== "object" || root === null)
    return kind === "nest" ? { type: root, value: other } : other;
  const keys = Object.keys(root);
  if (keys.length === 0) return Array.isArray(root) ? [other] : { type: other };
  const key = keys[step % keys.length] ?? "";
  const inner = Reflect.get(root, key) as unknown;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(root) ? [...root] : { ...root };
  if (rest.length > 0 && typeof inner === "object" && inner !== null) {
    Reflect.set(copy, key, mutated(inner, { path: rest, kind, value: other }));
    return copy;
  }
  change(copy, { key, kind, inner, other });
  return copy;
}

interface Member {
  key: string;
  kind: Mutation["kind"];
  inner: unknown;
  other: unknown;
}

function change(copy: Record<string, unknown> | unknown[], member: Member): void {
  const { key, kind, inner, other } = member;
  if (kind === "replace") Reflect.set(copy, key, other);
  else if (kind === "nest") Reflect.set(copy, key, [inner, other]);
  else if (Array.isArray(copy)) changeList(copy, member);
  else if (kind === "repeat") copy[`${key}_again`] = inner;
  else if (kind === "swap") copy[key] = JSON.stringify(inner);
  else {
    Reflect.deleteProperty(copy, key);
    if (kind === "rename") copy[typeof other === "string" ? other : "x"] = inner;
  }
}

function changeList(copy: unknown[], { key, kind, inner, other }: Member): void {
  if (kind === "remove") copy.splice(Number(key), 1);
  else if (kind === "repeat") copy.push(inner);
  else if (kind === "rename") copy.reverse();
  else copy.unshift(other);
}
