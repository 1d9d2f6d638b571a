import { createKey } from "../keys/api.ts";

const lifetimeMs = 12 * 3_600_000;
const limitUsd = 1;

let held: { secret: string; workspaceId: string; endsMs: number } | undefined;
let making: Promise<string> | undefined;

/** A key for this page, capped and short-lived; its secret stays in the memory of the page. */
export function playgroundSecret(workspaceId: string): Promise<string> {
  if (held !== undefined && held.workspaceId === workspaceId && held.endsMs > Date.now()) return Promise.resolve(held.secret);
  making ??= createKey({
    name: "Playground", limit: limitUsd, limit_reset: "daily", expires_at: new Date(Date.now() + lifetimeMs).toISOString(),
  }).then(({ key }) => {
    held = { secret: key, workspaceId, endsMs: Date.now() + lifetimeMs - 60_000 };
    return key;
  }).finally(() => {
    making = undefined;
  });
  return making;
}
