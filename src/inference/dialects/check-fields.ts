import { isLongerThan } from "../../platform/lib/characters.ts";
import { badRequest } from "./request-fields.ts";

/** A request's body, or an object in it. */
export type Fields = Readonly<Record<string, unknown>>;

/** Characters that a `session_id` may have. */
export const maxSessionIdLength = 256;

/** Null means absent. */
export const isAbsent = (value: unknown): value is null | undefined =>
  value === undefined || value === null;

/** Whether a value is a JSON object; arrays and null are none. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A number and its bounds. */
export interface Range {
  key: string;
  low: number;
  high: number;
}

/** Refuses a field that is neither absent nor a number within its bounds. */
export function checkNumber(body: Fields, { key, low, high }: Range): void {
  const value = body[key];
  if (isAbsent(value) || (typeof value === "number" && value >= low && value <= high)) return;
  throw badRequest(key, `must be a number from ${low} to ${high}; leave it out for the default.`);
}

const kindProblems = {
  boolean: "must be true or false.",
  string: "must be a string.",
  number: "must be a number; leave it out for the model's default.",
};

/** A field and its kind; `path` names it in errors where it stands in an object of the body. */
export interface Kind {
  key: string;
  kind: keyof typeof kindProblems;
  path?: string;
}

/** Refuses a field that is neither absent nor of its kind. */
export function checkKind(body: Fields, { key, kind, path = key }: Kind): void {
  const value = body[key];
  if (isAbsent(value) || typeof value === kind) return;
  throw badRequest(path, kindProblems[kind]);
}

/** Refuses a field that is neither absent nor an object. */
export function checkObject(body: Fields, key: string): void {
  const value = body[key];
  if (isAbsent(value) || isObject(value)) return;
  throw badRequest(key, "must be an object; leave it out if you have none.");
}

const reasoningKinds: readonly Kind[] = [
  { key: "effort", kind: "string", path: "reasoning.effort" },
  { key: "enabled", kind: "boolean", path: "reasoning.enabled" },
  { key: "max_tokens", kind: "number", path: "reasoning.max_tokens" },
  { key: "exclude", kind: "boolean", path: "reasoning.exclude" },
];

/** Refuses a field that is neither absent nor one of these words. */
export function checkWord(
  body: Fields,
  { key, words, path = key }: { key: string; words: readonly string[]; path?: string },
): void {
  const value = body[key];
  if (isAbsent(value) || (typeof value === "string" && words.includes(value))) return;
  throw badRequest(path, `must be one of ${words.join(", ")}; leave it out for the default.`);
}

/** Fields that chat and Responses share; what one route refuses the other refuses too. */
export function checkSharedOutput(body: Fields): void {
  for (const key of ["user", "safety_identifier", "service_tier", "prompt_cache_key"])
    checkKind(body, { key, kind: "string" });
  checkKind(body, { key: "store", kind: "boolean" });
  const { modalities } = body;
  if (isAbsent(modalities)) return;
  if (!Array.isArray(modalities)) throw badRequest("modalities", "must be an array of strings.");
  const wrong = modalities.findIndex((entry) => typeof entry !== "string");
  if (wrong >= 0) throw badRequest(`modalities[${wrong}]`, "must be a string.");
}

const summaries = ["auto", "concise", "detailed"];

/** Refuses a `reasoning` object of OpenAI's dialects that cannot be understood; every route is told of it in words of its own. */
export function checkReasoning(body: Fields): void {
  checkObject(body, "reasoning");
  const { reasoning } = body;
  if (!isObject(reasoning)) return;
  for (const kind of reasoningKinds) checkKind(reasoning, kind);
  checkWord(reasoning, { key: "summary", words: summaries, path: "reasoning.summary" });
}

/** Checks what routing reads of a request, which is the same in every client dialect. */
export function checkRouting(body: Fields): void {
  checkKind(body, { key: "session_id", kind: "string" });
  const { session_id: sessionId, models } = body;
  if (typeof sessionId === "string" && isLongerThan(sessionId, maxSessionIdLength)) {
    throw badRequest(
      "session_id",
      `may have at most ${maxSessionIdLength} characters; send a shorter one.`,
    );
  }
  if (!isAbsent(models)) {
    if (!Array.isArray(models)) throw badRequest("models", "must be an array of model ids.");
    const wrong = models.findIndex((entry) => typeof entry !== "string" || entry === "");
    if (wrong >= 0) throw badRequest(`models[${wrong}]`, "must be a model id.");
  }
  checkObject(body, "provider");
  checkObject(body, "trace");
}
