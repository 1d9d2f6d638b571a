import type { Tool } from "../tool.ts";
import { getCredits } from "./get-credits.ts";
import { getSystemStatus } from "./get-system-status.ts";
import { listKeys } from "./list-keys.ts";

/** Every tool of the MCP server, in the order in which clients see them. */
export const tools: readonly Tool[] = [
  getCredits, listKeys, getSystemStatus,
];
