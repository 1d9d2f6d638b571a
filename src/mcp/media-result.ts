import type { CallToolResult } from "@modelcontextprotocol/server";

/** The result of a tool that makes files: clients show pictures and sound in blocks of their own. */
export class MediaResult {
  constructor(
    /** What the result says of itself, as structured content. */
    readonly value: Record<string, unknown>,
    readonly blocks: CallToolResult["content"],
  ) {}
}
