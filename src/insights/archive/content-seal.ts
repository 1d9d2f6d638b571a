import type { KeyVault } from "../../platform/vault/key-vault.ts";
import type { Content } from "./content-insert.ts";

/** What prompts and answers are encrypted with. */
export type ContentVault = Pick<KeyVault, "sealRecord" | "openRecord" | "learn">;

/**
 * The place of a text: its workspace, its request, and what decides who may read it and until when.
 * A row with any of that changed is refused, and so are a prompt and an answer that were swapped.
 */
const placeOf = (
  { workspaceId, generationId, keyId, createdAtMs }: Content,
  part: "request" | "answer",
) => ({ workspaceId, id: generationId, facts: [part, keyId, String(createdAtMs)] });

/** What every sealed text begins with, and neither a body in JSON nor an event of a stream. */
const sealedPrefix = "v1|";

/** Characters from which a text is compressed beside the event loop, which takes longer for short ones. */
const longCharacters = 1024 * 1024;

const compressed = async (text: string): Promise<Uint8Array> =>
  text.length < longCharacters ? Bun.zstdCompressSync(text) : await Bun.zstdCompress(text);

/**
 * The content with its texts compressed and encrypted under a key of its own, derived from that of
 * its workspace. Rejects where the workspace's first key cannot be stored.
 */
export async function sealContent(vault: ContentVault, content: Content): Promise<Content> {
  const sealed = async (part: "request" | "answer"): Promise<Content["request"]> => ({
    ...content[part],
    text: await vault.sealRecord(placeOf(content, part), await compressed(content[part].text)),
  });
  const [request, answer] = await Promise.all([sealed("request"), sealed("answer")]);
  return { ...content, request, answer };
}

/**
 * The content in clear; one that was kept before texts were encrypted is as it was. Throws where
 * the row was changed or is another's.
 */
export async function openContent(vault: ContentVault, content: Content): Promise<Content> {
  await vault.learn(content.workspaceId);
  const opened = (part: "request" | "answer"): Content["request"] => {
    const { text, isCut } = content[part];
    if (!text.startsWith(sealedPrefix)) return { text, isCut };
    const plain = Bun.zstdDecompressSync(vault.openRecord(placeOf(content, part), text));
    return { text: plain.toString("utf8"), isCut };
  };
  try {
    return { ...content, request: opened("request"), answer: opened("answer") };
  } catch (error) {
    throw new Error(
      `the prompt and the answer of ${content.generationId} could not be decrypted: ` +
        "their row was changed, is another request's, or was encrypted with a key that is not here",
      { cause: error },
    );
  }
}
