import type { EntryValue } from "./entry-store.ts";
import { isObject } from "../platform/kernel/json/json-members.ts";

/** Is shown in place of a secret that is set, and keeps the stored one in a change. */
const hiddenSecret = "***";

/** Returns whether a part is an address with credentials; that of a proxy may lack its scheme. */
const hasCredentials = (name: string, part: unknown): part is string =>
  typeof part === "string" &&
  (/^[a-z][\w+.-]*:\/\/[^/]*@/i.test(part) || (name === "proxy" && part.includes("@")));

/** Returns a value of an entry with what is secret replaced. */
export function withoutSecrets(value: EntryValue): EntryValue {
  return Object.fromEntries(
    Object.entries(value).map(([name, part]): [string, unknown] => {
      if (name === "api_key" && typeof part === "string") return [name, hiddenSecret];
      if (name === "headers" && isObject(part))
        return [name, Object.fromEntries(Object.keys(part).map((each) => [each, hiddenSecret]))];
      if (hasCredentials(name, part)) return [name, hiddenSecret];
      return [name, part];
    }),
  );
}

/** Returns a change with each secret that it keeps taken from what is stored. */
export function withStoredSecrets(value: EntryValue, stored: EntryValue | undefined): EntryValue {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, part]): [string, unknown][] => {
      const before = stored?.[name];
      if (isObject(part))
        return [[name, withStoredSecrets(part, isObject(before) ? before : undefined)]];
      if (part !== hiddenSecret) return [[name, part]];
      return before === undefined ? [] : [[name, before]];
    }),
  );
}

const originOf = (address: unknown): string | undefined =>
  typeof address === "string" && URL.canParse(address) ? new URL(address).origin : undefined;

const keepsSecret = (part: unknown, before: unknown): boolean =>
  isObject(part)
    ? isObject(before) &&
      Object.entries(part).some(([name, each]) => keepsSecret(each, before[name]))
    : part === hiddenSecret && before !== undefined;

/**
 * Returns whether a change sends requests to a host other than the stored one, or unencrypted through
 * another proxy, which reads them. `ownAddress` is that of a built-in provider.
 */
function goesElsewhere(
  change: EntryValue,
  stored: EntryValue | undefined,
  ownAddress: string | undefined,
): boolean {
  const { base_url: named = ownAddress, proxy = "none" } = change;
  const before = stored?.["base_url"] ?? ownAddress;
  const address = named === hiddenSecret ? before : named;
  if (originOf(address) !== originOf(before)) return true;
  const isEncrypted = originOf(address)?.startsWith("https:") === true;
  return !isEncrypted && !["none", hiddenSecret, stored?.["proxy"]].includes(proxy);
}

/**
 * Returns the name of the part with a stored secret that a change would send elsewhere than where it
 * was stored for; undefined where there is none.
 */
export function secretKeptElsewhere(
  change: EntryValue,
  stored: EntryValue | undefined,
  ownAddress: string | undefined,
): "api_key" | "headers" | undefined {
  if (!goesElsewhere(change, stored, ownAddress)) return undefined;
  return (["api_key", "headers"] as const).find((name) =>
    keepsSecret(change[name], stored?.[name]),
  );
}

/** Returns a provider's value with the name of a variable in place of each secret. */
export function withVariables(id: string, value: EntryValue): EntryValue {
  const prefix = id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
  const variable = (suffix: string): string =>
    `\${${prefix}_${suffix.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_")}}`;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]): [string, unknown] => {
      if (name === "api_key") return [name, variable("api_key")];
      if (name === "headers" && isObject(part))
        return [name, Object.fromEntries(Object.keys(part).map((each) => [each, variable(each)]))];
      if (hasCredentials(name, part)) return [name, variable(name)];
      return [name, part];
    }),
  );
}
