import {
  checkKind,
  checkNumber,
  checkObject,
  checkRouting,
  checkWord,
  isObject,
  type Fields,
} from "../check-fields.ts";
import { checkDefinition } from "../check-tools.ts";
import { badRequest } from "../request-fields.ts";

/**
 * Checks the fields of a Messages request that the gateway or its routing reads, and that tools can be called, without
 * looking into blocks, tool schemas or unknown fields; those survive. Null means absent, except for the required
 * fields. Throws GatewayError `bad_request` whose `param` names the field.
 */
export function validateMessagesEnvelope(body: Fields): void {
  const { model, max_tokens: maxTokens } = body;
  if (typeof model !== "string" || model === "") {
    throw badRequest(
      "model",
      'is required: name a model such as "anthropic/claude-opus-4.7"; GET /models lists them.',
    );
  }
  checkMessages(body.messages);
  // Zero asks for the prompt to be cached and for nothing else (Anthropic, 2026).
  if (!Number.isInteger(maxTokens) || (maxTokens as number) < 0) {
    throw badRequest(
      "max_tokens",
      "is required and must be an integer: the bound on output tokens.",
    );
  }
  checkPrompt(body);
  checkAnswer(body);
  checkRouting(body);
}

/** The same for counting tokens, where nothing is answered and so nothing bounds the answer. */
export function validateCountEnvelope(body: Fields): void {
  validateMessagesEnvelope({ ...body, max_tokens: 1 });
}

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw badRequest(
      "messages",
      'is required: send at least one message such as {"role": "user", "content": "Hello"}.',
    );
  }
  for (let index = 0; index < messages.length; index += 1) checkMessage(messages[index], index);
}

function checkMessage(message: unknown, index: number): void {
  if (!isObject(message))
    throw badRequest(`messages[${index}]`, "must be an object with a role and content.");
  const { role, content } = message;
  if (role !== "user" && role !== "assistant" && role !== "system") {
    throw badRequest(`messages[${index}].role`, "must be one of user, assistant, system.");
  }
  if (typeof content === "string" || Array.isArray(content)) return;
  // Agents replay turns of the model that were cut off before they said anything; a system message may only set options.
  if ((content === undefined || content === null) && role !== "user") return;
  throw badRequest(`messages[${index}].content`, "must be a string or an array of content blocks.");
}

function checkPrompt(body: Fields): void {
  const { system, tools, tool_choice: choice } = body;
  if (
    system !== undefined &&
    system !== null &&
    typeof system !== "string" &&
    !Array.isArray(system)
  ) {
    throw badRequest("system", "must be a string or an array of text blocks.");
  }
  if (tools !== undefined && tools !== null) {
    if (!Array.isArray(tools)) throw badRequest("tools", "must be an array of tools.");
    tools.forEach(checkTool);
  }
  if (
    choice !== undefined &&
    choice !== null &&
    !(isObject(choice) && typeof choice.type === "string")
  ) {
    throw badRequest("tool_choice", "must be an object with a type: auto, any, tool or none.");
  }
}

/** A tool of the caller's has at most the type `custom`; all others are run by the provider and are its own. */
function checkTool(tool: unknown, index: number): void {
  if (!isObject(tool))
    throw badRequest(
      `tools[${index}]`,
      "must be an object with a name and an input_schema, or with a dated type.",
    );
  const { type } = tool;
  if (type !== undefined && type !== null && type !== "custom") return;
  checkDefinition(tool, { path: () => `tools[${index}]`, schema: "input_schema" });
}

function checkAnswer(body: Fields): void {
  checkNumber(body, { key: "temperature", low: 0, high: 1 });
  checkNumber(body, { key: "top_p", low: 0, high: 1 });
  checkKind(body, { key: "top_k", kind: "number" });
  checkKind(body, { key: "stream", kind: "boolean" });
  checkTyped(body, "thinking");
  // Later kinds have names of several words, as the latest has; they are the provider's to judge.
  const { type } = isObject(body.thinking) ? body.thinking : {};
  if (typeof type === "string" && !type.includes("_"))
    checkWord({ type }, { key: "type", words: thinkingTypes, path: "thinking.type" });
  checkObject(body, "output_config");
  checkObject(body, "metadata");
  const { stop_sequences: stop } = body;
  if (
    stop !== undefined &&
    stop !== null &&
    !(Array.isArray(stop) && stop.every((text) => typeof text === "string"))
  ) {
    throw badRequest("stop_sequences", "must be an array of strings.");
  }
}

const thinkingTypes = ["enabled", "disabled", "adaptive", "between_tools"];

function checkTyped(body: Fields, key: string): void {
  const value = body[key];
  if (value === undefined || value === null || (isObject(value) && typeof value.type === "string"))
    return;
  throw badRequest(key, "must be an object with a type.");
}
