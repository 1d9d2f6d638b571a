import { at } from "../api/at.ts";

/** An answer of the MCP server. */
export interface McpAnswer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** Sends a JSON-RPC message, or any body, to an MCP server. */
export async function sendMcp(
  url: string,
  message: unknown,
  { secret, headers = {} }: { secret?: string | undefined; headers?: Record<string, string> } = {},
): Promise<McpAnswer> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
      ...headers,
    },
    body: typeof message === "string" ? message : JSON.stringify(message),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

/** A JSON-RPC request. */
export const rpc = (method: string, params: Record<string, unknown> = {}) => ({
  jsonrpc: "2.0",
  id: 1,
  method,
  params,
});

/** What came of a tool call: the result as a value, or the refusal's text. */
export type ToolOutcome = { result: unknown } | { refused: string } | { error: unknown };

/** Calls a tool; checks that text and structured content say the same. */
export async function callTool(
  url: string,
  {
    name,
    given = {},
    secret,
    headers,
  }: {
    name: string;
    given?: Record<string, unknown>;
    secret?: string;
    headers?: Record<string, string>;
  },
): Promise<ToolOutcome> {
  const { body } = await sendMcp(url, rpc("tools/call", { name, arguments: given }), {
    secret,
    ...(headers && { headers }),
  });
  if (at(body, "error") !== undefined) return { error: at(body, "error") };
  const text = String(at(body, "result.content.0.text"));
  if (at(body, "result.isError") === true) return { refused: text };
  const structured = at(body, "result.structuredContent");
  if (JSON.stringify(structured) !== text)
    throw new Error("the text of a result differs from its structured content");
  return { result: structured };
}

/** Names of the tools that a credential sees. */
export async function toolNames(url: string, secret: string): Promise<string[]> {
  const { body } = await sendMcp(url, rpc("tools/list"), { secret });
  const tools = at(body, "result.tools");
  return Array.isArray(tools) ? tools.map((tool: unknown) => String(at(tool, "name"))) : [];
}
