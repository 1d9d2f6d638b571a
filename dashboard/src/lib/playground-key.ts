import { ApiError, request } from "./api.ts";

interface PlaygroundKey {
  key: string;
  expires_at: string;
}

let held: { secret: string; workspaceId: string; endsMs: number } | undefined;
let making: { workspaceId: string; key: Promise<string> } | undefined;

/**
 * Keys are renewed so long before they end, so that no request is sent with one that ends under
 * way.
 */
const marginMs = 60_000;

/**
 * A short-lived, capped key of the person in the workspace. Its secret stays in the memory of this
 * page.
 */
function playgroundKey(workspaceId: string): Promise<string> {
  if (held !== undefined && held.workspaceId === workspaceId && held.endsMs > Date.now() + marginMs)
    return Promise.resolve(held.secret);
  if (making?.workspaceId === workspaceId) return making.key;
  const key = request<PlaygroundKey>("/session/playground-key", { method: "POST" })
    .then((made) => {
      held = { secret: made.key, workspaceId, endsMs: Date.parse(made.expires_at) };
      return made.key;
    })
    .finally(() => {
      making = undefined;
    });
  making = { workspaceId, key };
  return key;
}

/**
 * Does something with the key of a workspace, for what the API answers to LLM keys alone. Another
 * tab may have made a key since, which ends the one before: then it is tried once more with a fresh
 * one.
 */
export async function withPlaygroundKey<Result>(
  workspaceId: string,
  work: (key: string) => Promise<Result>,
): Promise<Result> {
  const key = await playgroundKey(workspaceId);
  try {
    return await work(key);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    if (held?.secret === key) held = undefined;
    return work(await playgroundKey(workspaceId));
  }
}
