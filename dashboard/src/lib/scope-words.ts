import type { Bodies } from "./api-types.ts";

/** What a management key or an app may be allowed. */
export type Scope = Bodies["POST /management-keys"]["scopes"][number];

/** What scopes allow, in words. */
const words: Readonly<Record<Scope, string>> = {
  "read:llm-keys": "see keys",
  "write:llm-keys": "make and change keys",
  "read:presets": "see presets",
  "write:presets": "change presets",
  "read:byok": "see provider keys",
  "write:byok": "change provider keys",
  "read:credits": "see credits",
  "read:analytics": "see usage and requests",
  "read:management-keys": "see management keys",
  "write:management-keys": "make management keys and pay",
  "read:security": "see security and the audit log",
  "write:security": "change security and budgets",
  "read:hub": "see the hub",
  "write:hub": "change the hub",
  "read:connections": "see connected apps",
  "write:connections": "disconnect apps",
  inference: "send requests",
};

/** Whether a text is a scope that management keys and apps can have. */
export const isScope = (text: string): text is Scope => Object.hasOwn(words, text);

/** Says what a scope allows; one that is not known is shown as it is. */
export const wordsOf = (scope: string): string => (isScope(scope) ? words[scope] : scope);
