import type { KeyVault } from "../../platform/vault/key-vault.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";

type Members = Readonly<Record<string, unknown>>;

/** The member of a stored tool that holds its credentials, sealed. */
const sealedMember = "sealed_credentials";

/** A response that waits for its run, whose request is stored. */
interface StoredFor {
  workspaceId: string;
  responseId: string;
}

/**
 * Seals what requests say of access to MCP servers (`authorization` and `headers` of a tool) while
 * they wait in the database for their run.
 */
export class ToolSecrets {
  constructor(private readonly vault: KeyVault) {}

  /** Returns the text of a request as it may be stored. */
  sealed(text: string, place: StoredFor & { body: Members }): Promise<string> {
    return editedTools(text, place.body, async (tool, index) => {
      const { authorization, headers, ...rest } = tool;
      if (authorization === undefined && headers === undefined) return tool;
      const plain = Buffer.from(JSON.stringify({ authorization, headers }), "utf8");
      return { ...rest, [sealedMember]: await this.vault.sealRecord(placeOf(place, index), plain) };
    });
  }

  /** Returns the text of a request as it was sent. */
  opened(text: string, place: StoredFor & { body: Members }): Promise<string> {
    return editedTools(text, place.body, async (tool, index) => {
      const { [sealedMember]: sealed, ...rest } = tool;
      if (typeof sealed !== "string") return tool;
      await this.vault.learn(place.workspaceId);
      const plain = this.vault.openRecord(placeOf(place, index), sealed);
      return { ...rest, ...(JSON.parse(plain.toString("utf8")) as Members) };
    });
  }
}

const placeOf = ({ workspaceId, responseId }: StoredFor, index: number) => ({
  workspaceId,
  id: `${responseId}/${index}`,
  facts: ["mcp-tool"],
});

const isMcp = (tool: unknown): tool is Members => (Object(tool) as Members)["type"] === "mcp";

/** Changes the MCP tools of a request; a text without any is returned as it is. */
async function editedTools(
  text: string,
  { tools }: Members,
  edit: (tool: Members, index: number) => Promise<Members>,
): Promise<string> {
  if (!Array.isArray(tools) || !tools.some(isMcp)) return text;
  const edited = await Promise.all(
    tools.map((tool: unknown, index) => (isMcp(tool) ? edit(tool, index) : tool)),
  );
  return editMembers(text, new Map([["tools", JSON.stringify(edited)]]));
}
