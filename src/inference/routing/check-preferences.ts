import type { z } from "zod";
import { GatewayError } from "../../platform/lib/errors.ts";
import { providerPreferencesSchema, type ProviderPreferences } from "./provider-preferences.ts";

type Issue = z.core.$ZodIssue;

/** A field, and what is wrong with it. */
interface Problem {
  path: readonly PropertyKey[];
  message: string;
}

/** Checks a request's `provider` object; throws `bad_request` naming the field. */
export function checkPreferences(value: unknown): ProviderPreferences {
  const result = providerPreferencesSchema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const { path, message } =
    issue === undefined ? { path: [], message: "not valid" } : problemOf(issue);
  const param = `provider${path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("")}`;
  throw new GatewayError("bad_request", `${param}: ${message}`, { param });
}

/** Of a union, the alternative that the value resembles speaks; when it resembles none, all do. */
function problemOf(issue: Issue): Problem {
  const { path } = issue;
  if (issue.code === "unrecognized_keys")
    return { path: [...path, issue.keys[0] ?? ""], message: "there is no such field" };
  if (issue.code !== "invalid_union") return { path, message: issue.message };
  const inner = issue.errors.flat().map(problemOf);
  const resembled =
    inner.find((problem) => problem.path.length > 0) ??
    inner.find(({ message }) => !message.startsWith("Invalid input"));
  if (resembled !== undefined)
    return { path: [...path, ...resembled.path], message: resembled.message };
  return { path, message: inner.map(({ message }) => message).join(", or ") };
}
