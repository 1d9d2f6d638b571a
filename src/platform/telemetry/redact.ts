import { brand } from "../kernel/brand.ts";

/** The text that replaces a secret in a log line. */
export const redacted = "[redacted]";
/** The text that replaces a prompt or an answer in a log line. */
export const omitted = "[content omitted]";

const maxDepth = 6;
const maxItems = 50;
const maxTextLength = 8_192;

/**
 * Last words of keys whose value is a secret: `x-api-key`, `clientSecret`, `OPENAI_API_KEY`,
 * `set-cookie`.
 */
const secretWords = new Set([
  "authorization",
  "bearer",
  "key",
  "keys",
  "apikey",
  "secret",
  "secrets",
  "password",
  "passwords",
  "passwd",
  "passphrase",
  "cookie",
  "cookies",
  "token",
  "jwt",
  "credential",
  "credentials",
  "otp",
  // Arguments of commands, which errors of the Valkey client carry: passwords, and what callers sent.
  "args",
]);

/** Keys that carry prompts and answers, which are logged only if the operator asks for them. */
const contentKeys = new Set([
  "messages",
  "prompt",
  "input",
  "output",
  "content",
  "instructions",
  "system",
  "body",
  "choices",
  "arguments",
  "documents",
  "delta",
  "requestbody",
  "responsebody",
  "outputtext",
]);

const lastWord = (key: string): string =>
  key
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .at(-1) ?? "";

const escaped = (literal: string): string => literal.replace(/[^A-Za-z0-9]/g, "\\$&");

/**
 * Patterns of secrets: the gateway's own prefixes, `sk-`, `gsk_` and `AIza` of the vendors, bearer
 * values, secrets in a query, and the password of a connection URL. The captured group, which is
 * kept, shows the kind.
 */
const secretPatterns: readonly RegExp[] = [
  new RegExp(
    `(?<![A-Za-z0-9])(${escaped(brand.llmKeyPrefix)}|${escaped(brand.managementKeyPrefix)})[\\w-]+`,
    "g",
  ),
  new RegExp(
    `(?<![A-Za-z0-9])(${escaped(brand.managementKeyFamilyPrefix)}|sk-|gsk_|xai-|AIza)[\\w-]{8,}`,
    "g",
  ),
  /\b(bearer\s+)[^\s"',[]+/gi,
  /([?&](?:key|api_?key|token|access_token|refresh_token|secret|client_secret|password|code)=)[^&\s"'#]+/gi,
  /(\b[a-z][\w+.-]{0,20}:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi,
];

/** Returns the text without anything that looks like a secret, cut to the length of a log line. */
export function redactText(text: string): string {
  const bounded = text.length > maxTextLength ? `${text.slice(0, maxTextLength)}...` : text;
  return secretPatterns.reduce(
    (result, pattern) => result.replace(pattern, `$1${redacted}`),
    bounded,
  );
}

/** Options of redaction. */
export interface RedactOptions {
  /** Whether prompts and answers are shown too; false unless an operator turns it on. */
  includeContent?: boolean;
}

/**
 * Returns a copy of log fields as plain data: secrets and content removed, errors expanded, depth
 * bounded.
 */
export function redactFields(
  fields: Readonly<Record<string, unknown>>,
  options: RedactOptions = {},
): Record<string, unknown> {
  return redactRecord(fields, { ...options, depth: 0 });
}

interface Walk extends RedactOptions {
  depth: number;
}

function redactRecord(
  record: Readonly<Record<string, unknown>>,
  walk: Walk,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(record)) result[key] = redactEntry(key, value, walk);
  return result;
}

function redactEntry(key: string, value: unknown, walk: Walk): unknown {
  if (value === null || value === undefined || typeof value === "boolean") return value;
  if (secretWords.has(lastWord(key))) return redacted;
  const isContent =
    typeof value !== "number" && contentKeys.has(key.toLowerCase().replace(/[_-]/g, ""));
  return isContent && !walk.includeContent ? omitted : redactValue(value, walk);
}

function redactValue(value: unknown, walk: Walk): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null)
    return typeof value === "function" ? "[function]" : value;
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (value instanceof URL) return redactText(value.href);
  if (walk.depth >= maxDepth) return "[too deep]";
  const inner = { ...walk, depth: walk.depth + 1 };
  if (value instanceof Error) return redactRecord(errorFields(value), inner);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Headers || value instanceof Map) {
    return redactRecord(Object.fromEntries(entriesByText(value)), inner);
  }
  if (value instanceof Set) return redactList([...value], inner);
  return Array.isArray(value) ? redactList(value, inner) : redactRecord({ ...value }, inner);
}

function redactList(list: readonly unknown[], walk: Walk): unknown[] {
  const kept = list.slice(0, maxItems).map((item) => redactValue(item, walk));
  return list.length > maxItems ? [...kept, `[${list.length - maxItems} more]`] : kept;
}

function entriesByText(entries: Headers | Map<unknown, unknown>): [string, unknown][] {
  const pairs: [string, unknown][] = [];
  entries.forEach((value: unknown, key: unknown) => pairs.push([String(key), value]));
  return pairs;
}

/** Returns an error's own fields, including those that are not enumerable. */
function errorFields(error: Error): Record<string, unknown> {
  return {
    ...error,
    type: error.name,
    message: error.message,
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause === undefined ? {} : { cause: error.cause }),
  };
}
