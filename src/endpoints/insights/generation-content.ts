import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { AnswerOf } from "../../http/endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { generationIdOf, timeOfId } from "../../insights/generation-record.ts";
import type { Content } from "../../insights/archive/content-insert.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { workspaceOf } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { answerTexts } from "./answer-texts.ts";

/** The prompt and the answer of a request, or the arguments and the result of a tool call. */
const contentSchema = lazily(() =>
  z.object({
    data: z.object({
      id: z.string(),
      surface: z.string(),
      created_at: z.string(),
      error: z.null().describe("Always null: contents are those of requests that were served."),
      input: z.record(z.string(), z.unknown()),
      output: z.object({
        completion: z.string().nullable(),
        reasoning: z.string().nullable(),
        raw: z.string(),
      }),
      input_cut: z.boolean(),
      output_cut: z.boolean(),
    }),
  }),
);

/**
 * Returns the body of a request, or as much of its text as was kept. OpenRouter's clients need
 * `prompt` or `messages` in it. Source: npm @openrouter/sdk 1.3.19, `GenerationContentData`.
 */
function inputOf({ text }: Content["request"]): Record<string, unknown> {
  try {
    const body = JSON.parse(text) as Record<string, unknown>;
    const { input } = body;
    if (body["messages"] !== undefined || body["prompt"] !== undefined) return body;
    if (typeof input === "string") return { ...body, prompt: input };
    return Array.isArray(input) ? { ...body, messages: input } : body;
  } catch {
    return { prompt: text };
  }
}

const contentObject = (content: Content): AnswerOf<typeof contentSchema>["data"] => ({
  id: content.generationId,
  surface: content.surface,
  created_at: new Date(timeOfId(content.generationId)).toISOString(),
  error: null,
  input: inputOf(content.request),
  output: { ...answerTexts(content), raw: content.answer.text },
  input_cut: content.request.isCut,
  output_cut: content.answer.isCut,
});

/** Returns the prompt and the answer of one request, where its workspace keeps them. */
export const generationContent = defineEndpoint({
  method: "GET",
  path: "/generation/content",
  base: "api",
  access: { llmKey: true, managementScope: "read:security", session: true },
  counting: "at-door",
  tag: "Insights",
  summary: "Show the content of a request and its answer.",
  description:
    "Contents are stored if PATCH /security/privacy enables keep_contents, for the number of days that the operator configured, and " +
    "never under zero data retention. A key can read only its own requests. input is the body of the request, whose own input stands " +
    "as prompt or messages too, output.raw the answer as it was sent. For a call of an MCP server's tool, input has server, name and " +
    "arguments, and output.raw is the result. Each is cut at 262,144 characters; input_cut and output_cut report that. Pictures and " +
    "sound stand in place, as base64 in data URLs or in data and b64_json, up to archive.content_media_mb of each side: bytes is the " +
    "size of a file, and kept_bytes what is kept of it, where that is less. Within messages, a text such as [image/png of 5242880 " +
    "bytes, not kept] is in place of a file that is not. Answers 404 if nothing is stored.",
  query: z.object({ id: z.string() }),
  response: contentSchema,
  encodeError: encodeContractError,
  async handle(context, { insights, security }: Pick<Dependencies, "insights" | "security">) {
    const { caller } = context;
    const id = context.query.get("id") ?? "";
    if (id === "") throw badField("id", "is required. Send the id of a response.");
    const workspaceId = workspaceOf(context).id;
    const sinceMs = security.privacy.of(workspaceId).contentsSinceMs;
    const generationId = generationIdOf(id);
    const content =
      sinceMs === undefined || !/^gen_[0-9a-f]{32}$/.test(generationId)
        ? undefined
        : await insights.contents.find({ workspaceId, id: generationId, sinceMs });
    const isReadable = caller.kind !== "llm-key" || content?.keyId === caller.key.id;
    if (content === undefined || !isReadable)
      throw new GatewayError(
        "not_found",
        `No prompt or answer of ${id} is kept in this workspace. ` +
          "PATCH /security/privacy with keep_contents keeps those of requests from then on.",
      );
    return context.json({ data: contentObject(content) });
  },
});
