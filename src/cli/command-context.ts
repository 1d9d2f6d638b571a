import type { Environment } from "../platform/config/expand-references.ts";
import type { Terminal } from "./terminal.ts";

/** What every command is given. */
export interface CommandContext {
  terminal: Terminal;
  environment: Environment;
  workingDirectory: string;
  /** The gateway's address, where the command line names one. */
  url: string | undefined;
  /** The key, where the command line names one. */
  key: string | undefined;
}
