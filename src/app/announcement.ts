import { networkInterfaces } from "node:os";
import { brand } from "../platform/kernel/brand.ts";

const sandboxTexts = {
  alone: "simulated by the sandbox; set OPENAI_API_KEY or another provider's key for real ones",
  beside: "simulated ones of the sandbox beside your providers', as sandbox.enabled says",
} as const;

/**
 * Returns what the terminal shows before the ready line. The key is shown on the first start only,
 * and the claim link until it is used.
 */
export function announcement(facts: {
  version: string;
  url: string;
  /** Further addresses, for other machines. */
  otherUrls: readonly string[];
  model: string;
  firstSecret: string | undefined;
  /** The token of the link that claims the owner account; absent once it is claimed. */
  claimToken: string | undefined;
  /** The file that holds the key and the link in place of stdout. */
  secretsFile?: string | undefined;
  /**
   * Whether the sandbox serves: alone, because no provider has a credential, or beside providers
   * that have.
   */
  sandbox: "alone" | "beside" | undefined;
  hasBalance: boolean;
}): string[] {
  const { url, otherUrls, model, secretsFile } = facts;
  const [firstSecret, claimToken] =
    secretsFile === undefined ? [facts.firstSecret, facts.claimToken] : [];
  const credit = facts.sandbox !== "alone" && !facts.hasBalance;
  const lines: readonly (readonly [label: string, text: string] | undefined)[] = [
    [
      "Dashboard",
      claimToken === undefined
        ? secretsFile === undefined
          ? url
          : `${url}   (the first secrets are in ${secretsFile})`
        : `${url}/claim?token=${claimToken}   (claims the owner account, valid for a day)`,
    ],
    ["API", `${url}/v1`],
    ["Docs", `${url}/docs`],
    otherUrls.length === 0
      ? undefined
      : ["Elsewhere", `${otherUrls.join(", ")}   (from other machines)`],
    firstSecret === undefined ? undefined : ["First key", `${firstSecret}   (shown once)`],
    facts.sandbox === undefined ? undefined : ["Models", sandboxTexts[facts.sandbox]],
    credit
      ? [
          "Credits",
          "none, so paid models answer 402; npx switchyard credits grant 100 adds 100 USD",
        ]
      : undefined,
    [
      "Try it",
      `curl ${url}/v1/chat/completions -H "Authorization: Bearer ${firstSecret ?? "$SWITCHYARD_KEY"}" ` +
        `-d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
    ],
  ];
  return [
    `${brand.productName} ${facts.version}`,
    ...lines.flatMap((line) => (line === undefined ? [] : [`${line[0].padEnd(10)} ${line[1]}`])),
  ];
}

/**
 * Returns the IPv4 addresses by which other machines may reach this one; none where the system does
 * not list them, as under a filter of system calls without AF_NETLINK.
 */
export function networkAddresses(read: typeof networkInterfaces = networkInterfaces): string[] {
  try {
    return Object.values(read()).flatMap((addresses = []) =>
      addresses
        .filter(({ internal, family }) => !internal && family === "IPv4")
        .map(({ address }) => address),
    );
  } catch {
    return [];
  }
}
