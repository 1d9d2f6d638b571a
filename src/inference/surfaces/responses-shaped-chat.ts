import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { Loss } from "../canonical/request.ts";
import { encodeRequest } from "../dialects/openai-chat/encode-request.ts";
import { chatRequestFields } from "../dialects/openai-chat/request-schema.ts";
import { decodeRequest } from "../dialects/openai-responses/decode-request.ts";
import { asArray, asObject } from "../dialects/shared/wire-fields.ts";

/** A chat request that was written in the form of Responses, and what chat cannot express of it. */
interface ReshapedChat {
  body: Record<string, unknown>;
  losses: readonly Loss[];
}

/** Fields of chat that are always written from the canonical form. */
const rewritten: ReadonlySet<string> = new Set(["model", "messages", "tools", "reasoning"]);

/**
 * Returns the chat request that a body in the form of Responses means: `input` in place of
 * `messages`, and tools without `function`. Cursor sends such bodies to `/chat/completions` for
 * some models and expects chat's answers (2026). Undefined for every other body. Throws
 * `GatewayError` `bad_request`.
 */
export function reshapeChat(body: Readonly<Record<string, unknown>>): ReshapedChat | undefined {
  const { messages, input, model } = body;
  const isText = typeof input === "string" || Array.isArray(input);
  if ((messages ?? null) !== null || !isText || typeof model !== "string") return undefined;
  const asked = decodeRequest({ ...body, tools: flatTools(body["tools"]) });
  const { body: written, losses } = encodeRequest(
    { ...asked, dialect: "openai-chat" },
    {
      upstreamModel: model,
      stream: asked.stream,
      providerId: "",
      // The usage is part of a stream where the client asks for it.
      deviations: { maxTokensField: "either", noStreamOptions: true },
    },
  );
  const own = Object.entries(body).filter(
    ([field]) => chatRequestFields.has(field) && !rewritten.has(field) && !(field in written),
  );
  const kept = new Set(own.map(([field]) => field));
  return {
    body: { ...written, ...Object.fromEntries(own) },
    losses: losses.filter(({ field }) => !kept.has(field)),
  };
}

/** Returns the tools without chat's nesting, since clients mix both forms. */
function flatTools(tools: unknown): unknown {
  return (
    asArray(tools)?.map((value): JsonValue => {
      const tool = asObject(value);
      const nested = asObject(tool?.function);
      if (tool?.type !== "function" || nested === undefined) return value;
      const { function: _nested, ...rest } = tool;
      return { ...rest, ...nested } satisfies JsonObject;
    }) ?? tools
  );
}
