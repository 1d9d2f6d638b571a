import type { FetchLike } from "@modelcontextprotocol/client";
import { type AddressGuard, guardedFetch } from "../../platform/notify/public-address.ts";

/** Milliseconds that a request without a signal of its own may take. */
const requestMs = 10_000;

/** The most bytes of one HTTP answer, whether JSON or events. */
const answerBytesMax = 16 * 1024 * 1024;

/** Thrown where a server sends more than any result may have. */
class AnswerTooLargeError extends Error {
  constructor() {
    super(`The server sent more than ${answerBytesMax / 1024 ** 2} MiB in one answer.`);
  }
}

/**
 * Returns the function that sends requests to one server. Servers of workspaces are reached at
 * public addresses alone (`guarded`). Redirects are never followed, and answers are bounded.
 */
export const serverFetch =
  ({
    guard,
    guarded,
    headers,
  }: {
    guard: AddressGuard;
    guarded: boolean;
    headers: Readonly<Record<string, string>>;
  }): FetchLike =>
  async (url, init = {}) => {
    const request = {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers },
      signal: init.signal ?? AbortSignal.timeout(requestMs),
    };
    const response = guarded
      ? await guardedFetch(String(url), request, guard)
      : await fetch(url, { ...request, redirect: "manual" });
    if (response.status >= 300 && response.status < 400) {
      void response.body?.cancel();
      throw new Error("The server redirects to another address, which is not followed.");
    }
    return boundedResponse(response);
  };

/** Returns an answer whose body fails once it is longer than any result may be. */
function boundedResponse(response: Response): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  let bytes = 0;
  const counted = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      bytes += value.byteLength;
      if (bytes > answerBytesMax) {
        void reader.cancel();
        throw new AnswerTooLargeError();
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(counted, { status: response.status, headers: response.headers });
}
