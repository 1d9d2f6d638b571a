import type { Server } from "@modelcontextprotocol/server";
import { z } from "zod";
import { GatewayError } from "../platform/kernel/errors.ts";
import { slugFrom } from "./hub/entry.ts";
import type { McpSdk, ToolContext } from "./tool.ts";

const promptSchema = z.looseObject({
  id: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.string(),
});
const listSchema = z.looseObject({ data: z.array(promptSchema) });

/** A prompt as MCP names it: clients make commands of the names. */
interface NamedPrompt {
  name: string;
  title: string;
  description?: string;
  /** Id of the prompt's record. */
  id: string;
}

type Ask = Pick<ToolContext, "ask">;

/**
 * The newest prompts of the caller's workspace that are not private; none for callers without the
 * scope.
 */
async function workspacePrompts({ ask }: Ask): Promise<NamedPrompt[]> {
  const { data } = listSchema.parse(
    await ask({ endpoint: "GET /prompts", query: { limit: 100 } }).catch((error: unknown) => {
      if (error instanceof GatewayError && error.status < 404) return { data: [] };
      throw error;
    }),
  );
  const shown = data.filter(({ visibility }) => visibility !== "private");
  const slugs = shown.map(({ title }) => slugFrom(title) || "prompt");
  return shown.map(({ id, title, description }, index) => {
    const slug = slugs[index] ?? "prompt";
    // Prompts of one title get a suffix from their id, which no change of another prompt moves.
    const name =
      slugs.filter((each) => each === slug).length === 1 ? slug : `${slug}-${id.slice(-8)}`;
    return { id, name, title, ...(description === null ? {} : { description }) };
  });
}

/**
 * The text of a prompt by the name that `workspacePrompts` gives it; undefined where it gives none
 * such.
 */
async function promptText(
  { ask }: Ask,
  name: string,
): Promise<{ text: string; description?: string } | undefined> {
  const found = (await workspacePrompts({ ask })).find((each) => each.name === name);
  if (found === undefined) return undefined;
  const { body } = z
    .looseObject({ body: z.string() })
    .parse(await ask({ endpoint: "GET /prompts/:id", params: { id: found.id } }));
  return {
    text: body,
    ...(found.description === undefined ? {} : { description: found.description }),
  };
}

/** Answers `prompts/list` and `prompts/get`. */
export function servePrompts(
  server: Server,
  { sdk: { ProtocolError, ProtocolErrorCode }, tools }: { sdk: McpSdk; tools: Ask },
): void {
  server.setRequestHandler("prompts/list", async () => ({
    prompts: (await workspacePrompts(tools)).map(({ id: _, ...prompt }) => prompt),
  }));
  server.setRequestHandler("prompts/get", async ({ params }) => {
    const prompt = await promptText(tools, params.name);
    if (prompt === undefined) {
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `There is no prompt ${params.name}. prompts/list lists them.`,
      );
    }
    const { text, ...rest } = prompt;
    return {
      ...rest,
      messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
    };
  });
}
