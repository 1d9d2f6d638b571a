import {
  checkKind,
  checkNumber,
  checkObject,
  checkReasoning,
  checkRouting,
  checkSharedOutput,
  isObject,
  type Fields,
  type Kind,
  type Range,
} from "../check-fields.ts";
import { checkChoice, checkDefinition } from "../check-tools.ts";
import { badRequest } from "../request-fields.ts";

/**
 * Checks the fields of a chat request that the gateway or its routing reads, and that tools can be called, without looking
 * into content parts, tool schemas or unknown fields: it runs on every request and stays below two
 * microseconds for a usual one. Null means absent, except for `model` and `messages`. Throws
 * GatewayError `bad_request` whose `param` names the field.
 */
export function validateChatEnvelope(body: Fields): void {
  const { model } = body;
  if (typeof model !== "string" || model === "") {
    throw badRequest(
      "model",
      'is required: name a model such as "openai/gpt-4.1"; GET /models lists them.',
    );
  }
  checkMessages(body.messages);
  checkSampling(body);
  checkTools(body);
  checkOutput(body);
  checkRouting(body);
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
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    throw badRequest(`messages[${index}]`, "must be an object with a role and content.");
  }
  const { role, content } = message as Fields;
  if (!isRole(role)) {
    throw badRequest(
      `messages[${index}].role`,
      "must be one of developer, system, user, assistant, tool, function.",
    );
  }
  if (typeof content === "string" || content === null || Array.isArray(content)) return;
  // Agents replay assistant turns without content: calls alone, refusals, or turns that were cut off.
  if (content === undefined && role === "assistant") return;
  throw badRequest(`messages[${index}].content`, "must be a string or an array of content parts.");
}

function isRole(role: unknown): boolean {
  return (
    role === "user" ||
    role === "assistant" ||
    role === "system" ||
    role === "tool" ||
    role === "developer" ||
    role === "function"
  );
}

/** Seeds are 64-bit integers in OpenAI's reference; JSON.parse keeps their size, not their last digits. */
const unbounded = 2 ** 63;

const numberRanges: readonly Range[] = [
  { key: "temperature", low: 0, high: 2 },
  { key: "top_p", low: 0, high: 1 },
  { key: "frequency_penalty", low: -2, high: 2 },
  { key: "presence_penalty", low: -2, high: 2 },
];

const integerRanges: readonly Range[] = [
  { key: "max_tokens", low: 1, high: unbounded },
  { key: "max_completion_tokens", low: 1, high: unbounded },
  { key: "n", low: 1, high: 128 },
  { key: "seed", low: -unbounded, high: unbounded },
  { key: "top_logprobs", low: 0, high: 20 },
];

const kinds: readonly Kind[] = [
  { key: "logprobs", kind: "boolean" },
  { key: "parallel_tool_calls", kind: "boolean" },
  { key: "top_k", kind: "number" },
  { key: "min_p", kind: "number" },
  { key: "top_a", kind: "number" },
  { key: "repetition_penalty", kind: "number" },
];

function checkSampling(body: Fields): void {
  for (const range of numberRanges) checkNumber(body, range);
  for (const range of integerRanges) checkInteger(body, range);
  for (const kind of kinds) checkKind(body, kind);
  checkObject(body, "logit_bias");
  checkStop(body.stop);
}

function checkStop(stop: unknown): void {
  if (stop === undefined || stop === null || typeof stop === "string") return;
  if (!Array.isArray(stop))
    throw badRequest("stop", "must be a string or an array of at most 4 strings.");
  if (stop.length > 4) throw badRequest("stop", "may hold at most 4 strings; send fewer.");
  const wrong = stop.findIndex((entry) => typeof entry !== "string");
  if (wrong >= 0) throw badRequest(`stop[${wrong}]`, "must be a string.");
}

function checkTools(body: Fields): void {
  const { tools } = body;
  if (tools !== undefined && tools !== null) {
    if (!Array.isArray(tools))
      throw badRequest(
        "tools",
        'must be an array of tools such as {"type": "function", "function": {...}}.',
      );
    for (let index = 0; index < tools.length; index += 1) checkTool(tools[index], index);
  }
  checkChoice(body.tool_choice);
}

function checkTool(tool: unknown, index: number): void {
  if (!isObject(tool)) throw badRequest(`tools[${index}]`, "must be an object with a type.");
  const { type } = tool;
  if (typeof type !== "string")
    throw badRequest(`tools[${index}].type`, 'is required, for example "function".');
  if (type !== "function" && type !== "custom") return;
  const definition = tool[type];
  if (!isObject(definition))
    throw badRequest(`tools[${index}].${type}`, "is required: the tool's name and what it takes.");
  checkDefinition(definition, { path: () => `tools[${index}].${type}`, schema: "parameters" });
}

function checkOutput(body: Fields): void {
  const format = body.response_format;
  if (
    format !== undefined &&
    format !== null &&
    !(isObject(format) && typeof format.type === "string")
  ) {
    throw badRequest(
      "response_format",
      "must be an object with a type: text, json_object or json_schema.",
    );
  }
  checkKind(body, { key: "stream", kind: "boolean" });
  checkObject(body, "stream_options");
  if (isObject(body.stream_options)) checkKind(body.stream_options, includeUsage);
  checkObject(body, "metadata");
  checkSharedOutput(body);
  checkKind(body, { key: "verbosity", kind: "string" });
  checkKind(body, { key: "reasoning_effort", kind: "string" });
  checkReasoning(body);
}

const includeUsage: Kind = {
  key: "include_usage",
  kind: "boolean",
  path: "stream_options.include_usage",
};

function checkInteger(body: Fields, { key, low, high }: Range): void {
  const value = body[key];
  if (value === undefined || value === null) return;
  if (Number.isInteger(value) && (value as number) >= low && (value as number) <= high) return;
  const range =
    high < unbounded
      ? `an integer from ${low} to ${high}`
      : low === 1
        ? "a positive integer"
        : "an integer";
  throw badRequest(key, `must be ${range}; leave it out for the default.`);
}
