import {
  checkKind,
  checkNumber,
  checkObject,
  checkReasoning,
  checkRouting,
  checkSharedOutput,
  isAbsent,
  isObject,
  type Fields,
  type Range,
} from "../check-fields.ts";
import { checkChoice, checkDefinition } from "../check-tools.ts";
import { badRequest } from "../request-fields.ts";

/**
 * Checks the fields of a Responses request that the gateway or its routing reads, and that tools can be called, without
 * looking into content parts, tool schemas or unknown fields. Null means absent, except for `model` and `input`.
 * Throws GatewayError `bad_request` whose `param` names the field.
 */
export function validateResponsesEnvelope(body: Fields): void {
  const { model } = body;
  if (typeof model !== "string" || model === "") {
    throw badRequest(
      "model",
      'is required: name a model such as "openai/gpt-4.1"; GET /models lists them.',
    );
  }
  checkInput(body.input);
  if (
    Array.isArray(body.input) &&
    body.input.length === 0 &&
    isAbsent(body.previous_response_id) &&
    isAbsent(body.instructions)
  ) {
    throw badRequest("input", "is empty: send text, or at least one item.");
  }
  checkNumbers(body);
  checkTools(body);
  checkMembers(body);
  checkRouting(body);
  checkLifecycle(body);
}

function checkInput(input: unknown): void {
  if (typeof input === "string") return;
  if (!Array.isArray(input)) {
    throw badRequest(
      "input",
      'is required: send text, or an array of items such as {"role": "user", "content": "Hello"}.',
    );
  }
  for (let index = 0; index < input.length; index += 1) {
    const item: unknown = input[index];
    if (!isObject(item))
      throw badRequest(
        `input[${index}]`,
        "must be an object with a type, or with a role and content.",
      );
    const { type, role } = item;
    if (type !== undefined && type !== null && typeof type !== "string")
      throw badRequest(`input[${index}].type`, "must be a string.");
    if (typeof type === "string" && !isItemType(type)) {
      throw badRequest(
        `input[${index}].type`,
        "is no type of an item, such as message, function_call_output or reasoning.",
      );
    }
    if ((type ?? "message") === "message" && typeof role !== "string") {
      throw badRequest(
        `input[${index}].role`,
        "is required: user, assistant, system or developer.",
      );
    }
  }
}

const singleWords = ["message", "reasoning", "compaction"];

/** The types of items are many and grow; all but these few are several words. */
const isItemType = (type: string): boolean => singleWords.includes(type) || type.includes("_");

const numberRanges: readonly Range[] = [
  { key: "temperature", low: 0, high: 2 },
  { key: "top_p", low: 0, high: 1 },
];
const integerRanges: readonly Range[] = [
  { key: "max_output_tokens", low: 1, high: 2 ** 53 },
  { key: "top_logprobs", low: 0, high: 20 },
];

function checkNumbers(body: Fields): void {
  for (const range of numberRanges) checkNumber(body, range);
  for (const { key, low, high } of integerRanges) {
    const value = body[key];
    if (
      isAbsent(value) ||
      (Number.isInteger(value) && (value as number) >= low && (value as number) <= high)
    )
      continue;
    const wanted = low === 1 ? "a positive integer" : `an integer from ${low} to ${high}`;
    throw badRequest(key, `must be ${wanted}; leave it out for the default.`);
  }
}

function checkTools({ tools, tool_choice: choice }: Fields): void {
  if (!isAbsent(tools)) {
    if (!Array.isArray(tools))
      throw badRequest(
        "tools",
        'must be an array of tools such as {"type": "function", "name": "..."}.',
      );
    tools.forEach(checkTool);
  }
  checkChoice(choice);
}

function checkTool(tool: unknown, index: number): void {
  if (!isObject(tool) || typeof tool.type !== "string") {
    throw badRequest(`tools[${index}]`, 'must be an object with a type, for example "function".');
  }
  const { type } = tool;
  if (type === "function" || type === "custom")
    checkDefinition(tool, { path: () => `tools[${index}]`, schema: "parameters" });
}

const strings = ["instructions", "previous_response_id"];
const booleans = ["stream", "background", "parallel_tool_calls"];
const objects = ["text", "metadata", "stream_options"];

function checkMembers(body: Fields): void {
  for (const key of strings) checkKind(body, { key, kind: "string" });
  for (const key of booleans) checkKind(body, { key, kind: "boolean" });
  for (const key of objects) checkObject(body, key);
  if (isObject(body.text))
    checkKind(body.text, { key: "verbosity", kind: "string", path: "text.verbosity" });
  checkReasoning(body);
  checkSharedOutput(body);
}

/** Conversations would live at the provider, where every caller of the gateway is the same one. */
function checkLifecycle({ background, store, conversation }: Fields): void {
  if (background === true && store === false) {
    throw badRequest("background", "needs a stored response; leave out store, or set it to true.");
  }
  if (!isAbsent(conversation))
    throw badRequest(
      "conversation",
      "is not offered; leave it out and continue with previous_response_id.",
    );
}
