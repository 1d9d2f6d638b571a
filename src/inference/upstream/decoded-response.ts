import { decodedBody } from "./content-encoding.ts";
import type { UpstreamResponse } from "./upstream-response.ts";

/**
 * An answer without the coding of its body. A coding that nobody understands ends the exchange and rejects
 * with an `UpstreamFailure`.
 */
export async function decodedResponse(
  response: UpstreamResponse,
  encoding: string,
): Promise<UpstreamResponse> {
  try {
    const body = decodedBody(response, encoding);
    return {
      status: response.status,
      headers: response.headers,
      next: () => body.next(),
      readText: (limitBytes) => body.readText(limitBytes),
      markContent: () => response.markContent(),
      expectEnd: () => response.expectEnd(),
      abort: () => response.abort(),
    };
  } catch (error) {
    response.abort();
    throw error;
  }
}
