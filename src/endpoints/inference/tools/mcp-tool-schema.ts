import { z } from "zod";
import { serverIdPattern } from "../../../mcp/gateway/upstream-server.ts";

const names = z.array(z.string()).max(1_000);

const filter = z.strictObject({
  tool_names: names.optional(),
  read_only: z.boolean().optional(),
});

/** An entry of `tools` that names an MCP server, as OpenAI's Responses has it, and `server`. */
export const mcpToolSchema = z.looseObject({
  type: z.literal("mcp"),
  server_label: z.string().min(1).max(128).optional(),
  server: z
    .string()
    .regex(serverIdPattern, "must be the id of a server of GET /mcp-servers")
    .optional(),
  server_url: z
    .string()
    .max(2_000)
    .refine((url) => URL.canParse(url), "must be a URL")
    .optional(),
  headers: z.record(z.string(), z.string().regex(/^[\t\x20-\x7e]*$/, "must be ASCII")).optional(),
  authorization: z
    .string()
    .regex(/^[\x21-\x7e]*$/, "must be an access token")
    .nullish(),
  allowed_tools: z.union([names, filter]).nullish(),
  /** Tools that are left out of those; the gateway's own. */
  excluded_tools: names.nullish(),
  require_approval: z
    .union([
      z.enum(["always", "never"]),
      z.strictObject({ always: filter.nullish(), never: filter.nullish() }),
    ])
    .nullish(),
});

/** An entry of `tools` that names an MCP server. */
export type McpToolRequest = z.infer<typeof mcpToolSchema>;
