import { Lifeline } from "../lifeline.ts";
import { upstreamTarget, type UpstreamClient } from "../upstream-client.ts";

/** Posts a form (application/x-www-form-urlencoded) and reads the whole answer. */
export type PostForm = (url: string, form: string) => Promise<{ status: number; text: string }>;

const connectTimeoutMs = 5_000;
const answerTimeoutMs = 20_000;
const answerBytesMax = 64 * 1024;

/**
 * Posts through the connections that inference uses, and the provider's own proxy. Rejects with
 * `UpstreamFailure`.
 */
export const postFormThrough =
  (client: UpstreamClient, provider: { proxy?: string } = {}): PostForm =>
  async (url, form) => {
    const response = await client.send({
      target: upstreamTarget(
        url,
        { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
        provider,
      ),
      body: form,
      connectTimeoutMs,
      timeouts: {
        firstTokenMs: answerTimeoutMs,
        idleMs: answerTimeoutMs,
        totalMs: answerTimeoutMs,
      },
      // No client waits for a token alone: several requests may share it.
      lifeline: new Lifeline(undefined, { aborts: false }),
    });
    return { status: response.status, text: await response.readText(answerBytesMax) };
  };
