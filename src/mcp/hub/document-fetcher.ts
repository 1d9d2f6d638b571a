import { GatewayError } from "../../platform/kernel/errors.ts";
import {
  UnsafeTargetError,
  guardedFetch,
  type AddressGuard,
} from "../../platform/notify/public-address.ts";
import { brand } from "../../platform/kernel/brand.ts";
import type { SkillFile } from "./entry.ts";
import { GitError } from "./git/packfile.ts";
import { gitSource, readSkillFolder } from "./git/skill-folder.ts";
import { refused, documentUrl } from "./skill-document.ts";

/** The most bytes of a fetched document, and the milliseconds for the whole import. */
const importBytesMax = 400_000;
const patienceMs = 10_000;
const gitPatienceMs = 20_000;
const redirectsMax = 3;

const asking = {
  accept: "text/markdown, text/plain, */*;q=0.1",
  "user-agent": `${brand.productName.toLowerCase()}-hub`,
};

/**
 * Fetches public documents: over TLS, from public addresses, checking every redirect, with bounds
 * on bytes and time.
 */
export class DocumentFetcher {
  constructor(private readonly guard: AddressGuard) {}

  /**
   * Returns the skill at an address: with its files where that names a folder of a Git repository,
   * or else the document alone. Throws `bad_request` that never quotes what the other side sent.
   */
  async fetch(source: string): Promise<{ body: string; files: readonly SkillFile[] }> {
    const folder = gitSource(source);
    if (folder === undefined) return { body: await this.fetchDocument(source), files: [] };
    const signal = AbortSignal.timeout(gitPatienceMs);
    try {
      const { document, files } = await readSkillFolder(folder, { guard: this.guard, signal });
      return { body: textOf(document), files };
    } catch (error) {
      throw refusalOf(error, gitPatienceMs);
    }
  }

  private async fetchDocument(source: string): Promise<string> {
    const signal = AbortSignal.timeout(patienceMs);
    try {
      let url = documentUrl(source);
      for (let redirects = 0; redirects <= redirectsMax; redirects += 1) {
        const response = await guardedFetch(url, { signal, headers: asking }, this.guard);
        if (response.status >= 300 && response.status < 400) {
          await response.body?.cancel();
          url = new URL(response.headers.get("location") ?? "", url).href;
          continue;
        }
        if (!response.ok) {
          await response.body?.cancel();
          throw refused(`the address answered ${response.status}, not a document.`);
        }
        return await readText(response);
      }
      throw refused(`redirects more than ${redirectsMax} times.`);
    } catch (error) {
      throw refusalOf(error, patienceMs);
    }
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > importBytesMax)
      throw refused(`the document has more than ${importBytesMax} bytes.`);
    chunks.push(chunk);
  }
  return textOf(Buffer.concat(chunks));
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refused("the document is no UTF-8 text.");
  }
}

function refusalOf(error: unknown, waitedMs: number): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof GitError) return refused(`the repository ${error.message}.`);
  if (error instanceof UnsafeTargetError) return refused(`${error.message}.`);
  if (error instanceof Error && error.name === "TimeoutError")
    return refused(`did not answer within ${waitedMs / 1000} seconds.`);
  return refused("could not be reached.");
}
