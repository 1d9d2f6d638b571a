import { testLlmKey } from "../../../support/gateway.ts";

/** A gateway that tests ask, in their own process or in one of its own. */
export interface AskedGateway {
  /** `http://127.0.0.1:PORT`. */
  url: string;
}

/** GETs a path below `/api/v1` and gives its JSON; the test fails where it is refused. */
export async function getJson(
  { url }: AskedGateway,
  path: string,
  secret: string = testLlmKey,
): Promise<unknown> {
  const response = await fetch(`${url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`GET ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

/**
 * Sends a chat request, with the tests' key unless another is named; fields named replace or add to
 * a small one on `acme/large`.
 */
export const postChat = (
  { url }: AskedGateway,
  changes: Record<string, unknown> = {},
  { secret = testLlmKey, ...init }: { signal?: AbortSignal; secret?: string } = {},
): Promise<Response> =>
  fetch(`${url}/api/v1/chat/completions`, {
    ...init,
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "acme/large",
      messages: [{ role: "user", content: "Hello" }],
      ...changes,
    }),
  });
