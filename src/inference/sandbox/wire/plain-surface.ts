import type { SandboxDialect } from "../dialect.ts";
import { openaiError } from "./openai-error.ts";

/** A request of a surface without conversation: the text in it, and its answer. */
interface PlainRequest {
  /** Text that is searched for directives. */
  text: string;
  /** Body of the answer; `seed` is derived from the bytes of the request. */
  answer(seed: string): unknown;
}

/** A surface that answers one body with one body. */
export interface PlainSurface extends Pick<SandboxDialect, "refusal"> {
  /** Understands the parsed JSON of a request; throws a ZodError. */
  read(body: unknown): PlainRequest;
}

/** A plain surface that refuses as OpenAI does. */
export const openaiSurface = (read: PlainSurface["read"]): PlainSurface => ({
  read,
  refusal: openaiError,
});
