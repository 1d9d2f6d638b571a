import { badField } from "../../platform/kernel/errors.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { linesMax } from "../../batches/input-reader.ts";
import type { StoredObject } from "../../files/object-store.ts";
import type { Files } from "../../files/open-files.ts";
import { idempotencyHeader } from "../../http/endpoint.ts";
import { decompressorOf, readBodyBytes } from "../../http/bodies/read-body.ts";
import { bodyPieces } from "../../http/uploads/body-pieces.ts";
import { ListEntries } from "../../http/uploads/list-entries.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import { workspaceOf } from "../account/account-fields.ts";
import { quotaExceeded } from "../files/file-dialect.ts";

/** The most bytes of a body, of one of its requests, and of what stands beside them. */
export const requestsBytesMax = 256 * 1024 * 1024;
const bounds = {
  name: "requests",
  entryBytesMax: 32 * 1024 * 1024,
  restBytesMax: 256 * 1024,
  levelsMax: 1_000,
};

/** Requests, and characters of them, that are checked before others get their turn. */
const requestsAtOnce = 200;
const charactersAtOnce = 1024 * 1024;

/** The requests of a body, stored as the input of a batch. */
export interface ReceivedRequests {
  object: StoredObject;
  /** The number of requests. */
  count: number;
  /** The members of the body beside its requests. */
  rest: Record<string, unknown>;
  /** A hash of the body, for a request that may be repeated; empty for others. */
  fingerprint: string;
  /** The most bytes that the workspace may store. */
  quotaBytes: number;
}

/** Checks requests and writes each as a line. */
class RequestLines {
  private readonly ids = new Set<string>();

  /** Returns the line of the next request. Throws `GatewayError`. */
  lineOf(request: unknown): string {
    const at = `requests[${this.ids.size}]`;
    if (this.ids.size >= linesMax.anthropic)
      throw badField("requests", `must have at most ${linesMax.anthropic} entries.`);
    const { custom_id: customId, params } = Object(request) as Record<string, unknown>;
    if (typeof customId !== "string" || !/^[a-zA-Z0-9_-]{1,64}$/.test(customId))
      throw badField(`${at}.custom_id`, "must have 1 to 64 letters, digits, _ and -.");
    if (this.ids.has(customId)) throw badField(`${at}.custom_id`, "is that of another request.");
    if (typeof params !== "object" || params === null || Array.isArray(params))
      throw badField(`${at}.params`, "must be an object.");
    this.ids.add(customId);
    // Lines are answered whole, as Anthropic's are.
    const { stream: _, ...body } = params as Record<string, unknown>;
    const line = { custom_id: customId, method: "POST", url: "/v1/messages", body };
    return `${JSON.stringify(line)}\n`;
  }
}

/** Reads a body as it comes; one that is compressed as a whole. */
async function* piecesOf(
  { request }: Pick<RequestContext, "request">,
  seen: (piece: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  if (decompressorOf(request) === undefined) {
    for await (const piece of bodyPieces(request, requestsBytesMax)) {
      seen(piece);
      yield piece;
    }
    return;
  }
  const whole = await readBodyBytes(request, requestsBytesMax);
  seen(whole);
  yield whole;
}

/** Returns the lines of the requests in a body. */
async function* linesOf(
  pieces: AsyncIterable<Uint8Array>,
  entries: ListEntries,
): AsyncGenerator<Uint8Array> {
  const lines = new RequestLines();
  for await (const piece of pieces) {
    let text = "";
    for (const request of entries.push(piece)) {
      text += lines.lineOf(request);
      if (entries.count % requestsAtOnce !== 0 && text.length < charactersAtOnce) continue;
      yield Buffer.from(text);
      text = "";
    }
    if (text !== "") yield Buffer.from(text);
  }
}

/**
 * Reads the requests of a batch and stores them while they come, so that none of them are in memory.
 * Throws `GatewayError`, and then nothing is stored. The caller claims the object or discards it.
 */
export async function receiveRequests(
  context: RequestContext<unknown, KnownCaller>,
  files: Files,
): Promise<ReceivedRequests> {
  const { id: workspaceId, plan } = workspaceOf(context);
  const quotaBytes = files.quotaBytesOf(plan);
  const usedBytes = await files.store.bytesOf(workspaceId);
  const { memory } = context.request;
  const entries = new ListEntries({ ...bounds, reserve: (bytes) => memory.add(bytes) });
  const isRepeatable = context.request.headers.get(idempotencyHeader) !== null;
  const hasher = new Bun.CryptoHasher("sha256");
  const pieces = piecesOf(context, (piece) => {
    if (isRepeatable) hasher.update(piece);
  });
  const object = await files.objects.write(workspaceId, linesOf(pieces, entries), {
    bytesMax: Math.max(0, quotaBytes - usedBytes),
    tooLarge: () => quotaExceeded({ usedBytes, quotaBytes }),
  });
  try {
    const rest = entries.end();
    if (entries.count === 0) throw badField("requests", "is required: at least one request.");
    const fingerprint = isRepeatable ? hasher.digest("hex") : "";
    return { object, count: entries.count, rest, fingerprint, quotaBytes };
  } catch (error) {
    await files.objects.discard(object.name);
    throw error;
  }
}
