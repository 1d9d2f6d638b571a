import { brand } from "../platform/lib/brand.ts";

const sandboxLines = {
  alone: "No provider has a credential, so the sandbox answers with simulated models. "
    + "Set OPENAI_API_KEY or another provider's key to change that.",
  beside: "The sandbox answers with simulated models beside your providers, as sandbox.enabled says.",
} as const;

/** What the terminal shows before the ready line. The key is shown on the first start only, the link until it was used. */
export function announcement(facts: {
  url: string;
  /** Further addresses, for other machines. */
  otherUrls: readonly string[];
  model: string;
  firstSecret: string | undefined;
  /** Of the link that claims the owner account; absent once it is claimed. */
  claimToken: string | undefined;
  /** The sandbox serves: since no provider has a credential, or beside those that have. */
  sandbox: "alone" | "beside" | undefined;
  hasBalance: boolean;
}): string[] {
  const { url, otherUrls, model, firstSecret, claimToken } = facts;
  const key = firstSecret ?? "$SWITCHYARD_KEY";
  return [
    `${brand.productName} API    ${url}/api/v1   (also ${url}/v1)`,
    `${brand.productName} docs   ${url}/docs`,
    ...(firstSecret === undefined ? [] : [`First key (shown this once): ${firstSecret}`]),
    ...(claimToken === undefined
      ? []
      : [`Claim the owner account (works once, for a day; the next start prints another): ${url}/claim?token=${claimToken}`]),
    ...(otherUrls.length === 0 ? [] : [`From other machines, in place of ${url}: ${otherUrls.join(", ")}`]),
    ...(facts.sandbox === undefined ? [] : [sandboxLines[facts.sandbox]]),
    ...(facts.sandbox !== "alone" && !facts.hasBalance
      ? ["The workspace has no credits, so paid models answer 402. Start with SWITCHYARD_BOOTSTRAP_CREDITS=100 to put 100 USD on its books."]
      : []),
    `Try it: curl ${url}/api/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
  ];
}
