import OpenAI from "openai";
import { testLlmKey, type TestGateway } from "../../support/gateway.ts";

/**
 * The unmodified `openai` package pointed at a gateway, as its users point it; without retries
 * unless asked for.
 */
export const openaiClient = (
  gateway: TestGateway,
  options: { apiKey?: string; maxRetries?: number; base?: "/api/v1" | "/v1" } = {},
): OpenAI =>
  new OpenAI({
    apiKey: options.apiKey ?? testLlmKey,
    baseURL: gateway.origin + (options.base ?? "/api/v1"),
    maxRetries: options.maxRetries ?? 0,
  });

/**
 * What a call failed with. The client's promises are lazy, so that `expect(...).rejects` cannot
 * look into them.
 */
export async function failureOf(work: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error("the call succeeded");
}
