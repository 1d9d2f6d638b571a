import type { CallToolResult } from "@modelcontextprotocol/client";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import type { ToolCalls } from "../../../mcp/gateway/tool-calls.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { FoundPage } from "../../../mcp/search/web-search.ts";
import { pagesText } from "../../../mcp/search/search-tool.ts";
import { allowedPages } from "./web-search.ts";
import type { GatewayTool } from "./gateway-tools.ts";
import { type JsonFields, isObject } from "../../../platform/kernel/json/json-members.ts";

/** A picture in the result of a tool. */
interface ResultPicture {
  mediaType: string;
  base64: string;
}

/** Why a tool has no output, in the form of OpenAI's `mcp_call.error`. */
type ToolError =
  | { type: "tool_execution_error"; content: unknown[] }
  | { type: "protocol_error" | "http_error"; code: number; message: string };

/** What came of a tool call, as models and clients are sent it. */
export interface RanTool {
  /** The texts of the result, or of the error. */
  text: string;
  pictures: readonly ResultPicture[];
  error: ToolError | null;
  chargedNano: bigint;
  /** The pages that a search found; absent for every other tool. */
  pages?: readonly FoundPage[];
}

/** Returns the texts of a result. Content of other kinds is described, except for pictures. */
function textOf({ content, structuredContent }: CallToolResult): string {
  const texts = content.flatMap((part): string[] => {
    if (part.type === "text") return [part.text];
    if (part.type === "image") return ["[image]"];
    if (part.type === "audio") return ["[audio, which cannot be shown here]"];
    if (part.type === "resource_link") return [`${part.name}: ${part.uri}`];
    return "text" in part.resource ? [part.resource.text] : [`[file ${part.resource.uri}]`];
  });
  return texts.length === 0 && structuredContent !== undefined
    ? JSON.stringify(structuredContent)
    : texts.join("\n");
}

const picturesOf = ({ content }: CallToolResult): ResultPicture[] =>
  content.flatMap((part) =>
    part.type === "image" ? [{ mediaType: part.mimeType, base64: part.data }] : [],
  );

/** Returns the result of a tool, and of a search the pages that the request allows. */
function foundBy(
  { search }: GatewayTool,
  result: CallToolResult,
): { result: CallToolResult; pages?: FoundPage[] } {
  const { pages: found } = Object(result.structuredContent) as { pages?: FoundPage[] };
  if (search === undefined || found === undefined) return { result };
  const pages = allowedPages(found, search);
  return pages.length === found.length
    ? { result, pages }
    : { result: { content: [{ type: "text", text: pagesText(pages) }] }, pages };
}

/** Parses the arguments that a model wrote; undefined where they are no JSON object. */
function argumentsOf(text: string): JsonFields | undefined {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const failedRun = (error: Extract<ToolError, { code: number }>, chargedNano = 0n): RanTool => ({
  text: error.message,
  pictures: [],
  error,
  chargedNano,
});

/** Returns the outcome of a call that was not made. */
export const unmadeRun = (message: string): RanTool =>
  failedRun({ type: "protocol_error", code: invalidParams, message });

/** The code of invalid parameters (JSON-RPC 2.0, section 5.1). */
const invalidParams = -32602;

/** Runs a tool for a model. Never throws for what the model can be sent. */
export async function runTool(
  toolCalls: ToolCalls,
  {
    tool,
    argumentsText,
    ...call
  }: {
    tool: GatewayTool;
    argumentsText: string;
    caller: LlmKeyCaller;
    /** The customer that the request names. */
    customer?: string | undefined;
    signal: AbortSignal;
    calledBy: string;
    /** Whether the request demands that nothing of it is kept. */
    keepsNothing: boolean;
  },
): Promise<RanTool> {
  const given = argumentsOf(argumentsText);
  if (given === undefined)
    return failedRun({
      type: "protocol_error",
      code: invalidParams,
      message: "The arguments are not a JSON object.",
    });
  try {
    const { server, definition } = tool;
    const outcome = await toolCalls.call({ ...call, server, definition, given });
    if (!outcome.ok) return failedRun(outcome.failure, outcome.chargedNano);
    const { chargedNano } = outcome;
    const { result, pages } = foundBy(tool, outcome.result);
    return {
      ...(pages !== undefined && { pages }),
      text: textOf(result),
      pictures: picturesOf(result),
      error: result.isError ? { type: "tool_execution_error", content: result.content } : null,
      chargedNano,
    };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return failedRun({ type: "http_error", code: error.status, message: error.message });
  }
}
