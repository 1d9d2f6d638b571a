import { join } from "node:path";
import { testLlmKey } from "../../../support/gateway.ts";
import type { ScriptedCall } from "../../../support/scripted-upstream/scripted-answer.ts";
import { runAgent, type AgentRun } from "./agent-run.ts";

/** A call of an agent's tool, without the id that the model gives it. */
type ToolUse = Omit<ScriptedCall, "id">;

/** A run of an agent in a conversation. */
interface TalkedRun {
  /** The origin of the gateway. */
  origin: string;
  /** The folder with the agent's home and its work. */
  folder: string;
  prompt: string;
  model: string;
  /** Whether it goes on with the conversation of the run before. */
  continues: boolean;
  /** Whether the conversation is replaced by a summary before the run. */
  compacts: boolean;
}

/** A coding agent that holds a conversation over several runs. */
export interface Talker {
  name: "claude" | "codex";
  title: string;
  /** Returns the call that looks at a picture, and the one that runs a command. */
  look(path: string): ToolUse;
  command(text: string): ToolUse;
  /** Whether a conversation is compacted in a run of its own, which only asks for the summary. */
  compactsApart: boolean;
  run(run: TalkedRun): Promise<AgentRun>;
  /** Returns the text that a run ended with; undefined where it failed. */
  resultOf(done: AgentRun): unknown;
}

/** Claude Code, which is asked to compact by a command. */
export const claudeCode: Talker = {
  name: "claude",
  title: "Claude Code",
  look: (path) => ({ name: "Read", arguments: { file_path: path } }),
  command: (command) => ({ name: "Bash", arguments: { command, description: "Work" } }),
  compactsApart: true,
  run: ({ origin, folder, prompt, model, continues, compacts }) =>
    runAgent({
      name: "claude",
      folder,
      parameters: [
        ...["-p", compacts ? "/compact" : prompt, "--model", model],
        ...["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read"],
        ...(continues ? ["--continue"] : []),
      ],
      variables: {
        ANTHROPIC_BASE_URL: origin,
        ANTHROPIC_AUTH_TOKEN: testLlmKey,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        CLAUDE_CODE_MAX_RETRIES: "0",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_ERROR_REPORTING: "1",
        DISABLE_TELEMETRY: "1",
      },
    }),
  resultOf: ({ events }) => {
    const last = events.at(-1);
    return last?.["is_error"] === false ? last["result"] : undefined;
  },
};

/** More tokens than a summary and less than a conversation has. */
const compactedTokens = 12_000;

/** Codex, which compacts by itself once a conversation has a number of tokens. */
export const codex: Talker = {
  name: "codex",
  title: "Codex",
  look: (path) => ({ name: "view_image", arguments: { path } }),
  command: (cmd) => ({ name: "exec_command", arguments: { cmd } }),
  compactsApart: false,
  run: ({ origin, folder, prompt, model, continues, compacts }) =>
    runAgent({
      name: "codex",
      folder,
      parameters: [
        "exec",
        ...(continues ? ["resume", "--last"] : []),
        ...["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"],
        ...["-m", model],
        ...(compacts ? ["-c", `model_auto_compact_token_limit=${compactedTokens}`] : []),
        prompt,
      ],
      variables: { GATEWAY_KEY: testLlmKey },
      prepare: (home) => Bun.write(join(home, ".codex", "config.toml"), configuration(origin)),
    }),
  resultOf: ({ events }) => {
    if (events.at(-1)?.["type"] !== "turn.completed") return undefined;
    const items = events.map(({ item }) => Object(item) as Record<string, unknown>);
    return items.findLast(({ type }) => type === "agent_message")?.["text"];
  },
};

const configuration = (origin: string): string => `
  model_provider = "gateway"
  check_for_update_on_startup = false
  analytics.enabled = false
  [model_providers.gateway]
  name = "gateway"
  base_url = "${origin}/v1"
  env_key = "GATEWAY_KEY"
  wire_api = "responses"
  request_max_retries = 0
  stream_max_retries = 0
`;
