import type { CallToolResult } from "@modelcontextprotocol/client";
import { type LlmKeyCaller, routedCaller } from "../../identity/keys/caller.ts";
import type { Content } from "../../insights/archive/content-insert.ts";
import {
  type KeptText,
  keptCharactersMax,
  keptText,
} from "../../platform/kernel/json/text-keeper.ts";
import type { ToolCaller } from "../mcp-service.ts";
import { cappedResult } from "./tool-result.ts";

/** Stores the arguments and results of calls for workspaces that keep contents. */
export interface ToolContents {
  /**
   * Returns the wall time, in milliseconds, since which the caller's workspace keeps contents;
   * undefined where it does not, or where the workspace or the key forbids it.
   */
  keptSinceMs(caller: LlmKeyCaller): number | undefined;
  /** Takes a content; never blocks. */
  write(content: Content): void;
}

/** A call that was answered, as it is kept. */
interface AnsweredCall {
  caller: ToolCaller;
  /** The `gen_` id of its record. */
  generationId: string;
  surface: string;
  /** The server, and its own name of the tool. */
  server: string;
  tool: string;
  given: Readonly<Record<string, unknown>>;
  result: CallToolResult;
  nowMs: number;
}

/**
 * Keeps the arguments and the result of a call as a request's prompt and answer are kept. Writes
 * nothing, and renders nothing, for a workspace that does not keep contents.
 */
export function keepCall(
  contents: ToolContents | undefined,
  { caller, generationId, surface, server, tool, given, result, nowMs }: AnsweredCall,
): void {
  const sinceMs = contents?.keptSinceMs(routedCaller(caller));
  if (sinceMs === undefined) return;
  contents?.write({
    generationId,
    workspaceId: caller.workspace.id,
    keyId: caller.key.id,
    // Where the clock was set back, the content still counts as created while contents were kept.
    createdAtMs: Math.max(sinceMs, nowMs),
    surface,
    streamed: false,
    request: keptText(JSON.stringify({ server, name: tool, arguments: given })),
    answer: keptResult(result),
  });
}

/** Returns the text of a result. One that is too long stays a result, of less content. */
function keptResult(result: CallToolResult): KeptText {
  const kept = cappedResult(result, keptCharactersMax);
  return { text: keptText(JSON.stringify(kept)).text, isCut: kept !== result };
}
