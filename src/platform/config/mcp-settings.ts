import { z } from "zod";
import { nanoFromUsd } from "../kernel/money.ts";
import { addressRangeSchema, httpUrlSchema, numberFromText } from "./setting-schemas.ts";

const text = z.string().min(1, "expected a text that is not empty");

const integer = (minimum: number, maximum: number) => {
  const message = `expected an integer from ${minimum} to ${maximum}`;
  return z.preprocess(numberFromText, z.int(message).min(minimum, message).max(maximum, message));
};

/** USD for one use. */
const priceSchema = z
  .union([z.string(), z.number()])
  .refine(
    (price) => (nanoFromUsd(price) ?? -1n) >= 0n,
    'expected an amount of USD, such as "0.002"',
  );

const oauthFields = {
  client_id: text.optional(),
  client_secret: text.optional(),
  scope: text.optional(),
};

const authSchema = z.discriminatedUnion(
  "type",
  [
    z.strictObject({ type: z.literal("none") }),
    z.strictObject({ type: z.literal("headers"), headers: z.record(text, text) }),
    z.strictObject({ type: z.literal("oauth"), ...oauthFields }),
    z.strictObject({ type: z.literal("oauth_per_person"), ...oauthFields }),
  ],
  "expected none, headers, oauth or oauth_per_person",
);

const serverSchema = z
  .strictObject({
    id: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9-]{0,22}$/,
        "expected 1 to 23 lower-case letters, digits and dashes, no dash first",
      )
      .refine((id) => id !== "all", "is the name of all servers together; choose another"),
    name: text.optional(),
    transport: z.enum(["streamable_http", "stdio"]).optional(),
    url: httpUrlSchema.optional(),
    command: text.optional(),
    args: z.array(z.string()).optional(),
    env: z.record(text, z.string()).optional(),
    auth: authSchema.optional(),
    allowed_tools: z.array(text).optional(),
    price_per_call: priceSchema.optional(),
    timeout_ms: integer(100, 600_000).optional(),
    result_bytes_max: integer(1_024, 8_388_608).optional(),
  })
  .superRefine(({ transport, url, command }, context) => {
    const isProcess = transport === "stdio" || (transport === undefined && command !== undefined);
    const path = isProcess ? "command" : "url";
    if ((isProcess ? command : url) === undefined)
      context.addIssue({ code: "custom", path: [path], message: "is required" });
    const other = isProcess ? "url" : "command";
    if ((isProcess ? url : command) !== undefined)
      context.addIssue({
        code: "custom",
        path: [other],
        message: isProcess ? "is for streamable_http" : "is for the transport stdio",
      });
  });

/** The `mcp_servers` section of a file. */
export const mcpServersSchema = z.array(serverSchema).superRefine((servers, context) => {
  servers.forEach(({ id }, index) => {
    if (servers.findIndex((other) => other.id === id) === index) return;
    context.addIssue({
      code: "custom",
      path: [index, "id"],
      message: "is the id of another server above",
    });
  });
});

/** The `mcp` section of a file. */
export const mcpSchema = z
  .strictObject({ allowed_networks: z.array(addressRangeSchema), max_rounds: integer(1, 100) })
  .partial();

/** An upstream MCP server of the operator's file. */
export interface ConfiguredMcpServer {
  readonly id: string;
  readonly name: string;
  readonly target:
    | { readonly transport: "streamable_http"; readonly url: string }
    | {
        readonly transport: "stdio";
        readonly command: string;
        readonly args: readonly string[];
        readonly env: Readonly<Record<string, string>>;
      };
  readonly auth:
    | { readonly type: "none" }
    | { readonly type: "headers"; readonly headers: Readonly<Record<string, string>> }
    | {
        readonly type: "oauth" | "oauth_per_person";
        readonly clientId?: string | undefined;
        readonly clientSecret?: string | undefined;
        readonly scope?: string | undefined;
      };
  readonly allowedTools: readonly string[] | null;
  readonly priceNanoUsd: bigint;
  readonly timeoutMs: number | undefined;
  readonly resultBytesMax: number | undefined;
}

/** The operator's settings for upstream MCP servers. */
export interface ConfiguredMcp {
  readonly servers: readonly ConfiguredMcpServer[];
  /** Ranges of the operator's own networks that workspaces' servers may be in. */
  readonly allowedNetworks: readonly string[];
  /** The most model rounds of a request whose model calls tools. */
  readonly maxRounds: number;
}

/** The most model rounds of a request, unless the operator sets another number. */
const defaultRounds = 16;

/** Returns the settings of the two sections. */
export const assembleMcp = (
  mcp: z.output<typeof mcpSchema> = {},
  servers: z.output<typeof mcpServersSchema> = [],
): ConfiguredMcp => ({
  servers: servers.map(configuredServer),
  allowedNetworks: mcp.allowed_networks ?? [],
  maxRounds: mcp.max_rounds ?? defaultRounds,
});

function configuredAuth(
  auth: z.output<typeof authSchema> = { type: "none" },
): ConfiguredMcpServer["auth"] {
  if (auth.type === "none" || auth.type === "headers") return auth;
  const { type, client_id: clientId, client_secret: clientSecret, scope } = auth;
  return { type, clientId, clientSecret, scope };
}

const configuredServer = ({
  id,
  name,
  url,
  command,
  args,
  env,
  auth,
  ...limits
}: z.output<typeof serverSchema>): ConfiguredMcpServer => ({
  id,
  name: name ?? id,
  target:
    command === undefined
      ? { transport: "streamable_http", url: url ?? "" }
      : { transport: "stdio", command, args: args ?? [], env: env ?? {} },
  auth: configuredAuth(auth),
  allowedTools: limits.allowed_tools ?? null,
  priceNanoUsd: nanoFromUsd(limits.price_per_call ?? 0) ?? 0n,
  timeoutMs: limits.timeout_ms,
  resultBytesMax: limits.result_bytes_max,
});
