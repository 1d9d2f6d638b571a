import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { Loss } from "../canonical/request.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  badRequest,
  objectsIn,
  unsupportedContent,
} from "../dialects/shared/wire-fields.ts";

/** The prompt of a completion, and whether the answer begins with it. */
export interface EchoedPrompt {
  text: string;
  echo: boolean;
}

/** A completion as a request for chat, and what chat cannot express of it. */
interface ReshapedCompletion {
  body: Record<string, JsonValue | undefined>;
  losses: readonly Loss[];
  prompt: EchoedPrompt;
}

/** The output cap of the older API, where a request names none. */
const maxTokensDefault = 16;

/** Fields that chat has in another form, or not at all. */
const reshapedFields: ReadonlySet<string> = new Set([
  "prompt",
  "suffix",
  "echo",
  "logprobs",
  "best_of",
  "max_tokens",
]);

/**
 * Returns the chat request of a completion: the prompt becomes the user's message, and a suffix an
 * instruction. Throws `GatewayError` for what chat cannot express.
 */
export function chatOfCompletion(body: JsonObject): ReshapedCompletion {
  const text = promptOf(body.prompt);
  const suffix = asString(body.suffix) ?? "";
  const losses: Loss[] = [{ field: "prompt", reason: "sent as the user's message of a chat" }];
  if (suffix !== "") losses.push({ field: "suffix", reason: "described to the model" });
  if ((asNumber(body.best_of) ?? 1) > (asNumber(body.n) ?? 1))
    losses.push({ field: "best_of", reason: "chat has no such field" });
  const rest = Object.fromEntries(
    Object.entries(body).filter(([name]) => !reshapedFields.has(name)),
  );
  const logprobs = asNumber(body.logprobs);
  return {
    body: {
      ...rest,
      messages: [
        ...(suffix === "" ? [] : [{ role: "system", content: fillingIn(suffix) }]),
        { role: "user", content: text },
      ],
      max_tokens: asNumber(body.max_tokens) ?? maxTokensDefault,
      ...(logprobs !== undefined && {
        logprobs: true,
        ...(logprobs > 0 && { top_logprobs: logprobs }),
      }),
    },
    losses,
    prompt: { text, echo: body.echo === true },
  };
}

const fillingIn = (suffix: string): string =>
  "Write only the text that continues the user's message and leads over to this, without repeating either: " +
  suffix;

function promptOf(prompt: JsonValue | undefined): string {
  const list = asArray(prompt);
  const [only, ...others] = list ?? [prompt];
  if (others.length > 0 || typeof only === "number" || Array.isArray(only))
    throw unsupportedContent("prompt", "must be one text; send a request for each prompt.");
  if (typeof only !== "string") throw badRequest("prompt", "is required and must be a string.");
  return only;
}

/** Returns the completion of a chat answer. */
export function completionOfChat(answer: JsonObject, prompt: EchoedPrompt): JsonObject {
  const { choices, object: _object, ...rest } = answer;
  return {
    ...rest,
    object: "text_completion",
    choices: objectsIn(choices).map((choice) => {
      const said = asString(asObject(choice.message)?.content) ?? "";
      const text = prompt.echo ? prompt.text + said : said;
      return {
        text,
        index: choice.index,
        logprobs: logprobsOf(choice.logprobs, text.length - said.length),
        finish_reason: choice.finish_reason,
      };
    }),
  };
}

/** Returns the tokens of chat's form in the lists of the older one. */
function logprobsOf(value: JsonValue | undefined, startAt: number): JsonObject | null {
  const content = objectsIn(asObject(value)?.content);
  if (content.length === 0) return null;
  let offset = startAt;
  const offsets = content.map(({ token }) => {
    const at = offset;
    offset += asString(token)?.length ?? 0;
    return at;
  });
  return {
    tokens: content.map(({ token }) => token ?? ""),
    token_logprobs: content.map(({ logprob }) => logprob ?? null),
    top_logprobs: content.map(({ top_logprobs: top }) =>
      Object.fromEntries(
        objectsIn(top).map(({ token, logprob }) => [String(token), logprob ?? null]),
      ),
    ),
    text_offset: offsets,
  };
}

/** Turns chunks of a chat stream into those of a completion. */
export class CompletionShaper {
  readonly pingFrame = ": ping\n";
  private readonly prompt: EchoedPrompt;
  private readonly lengths = new Map<number, number>();

  constructor(prompt: EchoedPrompt) {
    this.prompt = prompt;
  }

  /** Returns the frame of a chunk; an empty text for one without a part of the completion. */
  chunk(fields: JsonObject): string {
    const { choices, object: _object, ...rest } = fields;
    if (fields.error !== undefined && choices === undefined)
      return `data: ${JSON.stringify(fields)}\n\n`;
    const shaped = objectsIn(choices).flatMap((choice) => this.choice(choice));
    const isEmpty = shaped.length === 0 && objectsIn(choices).length > 0 && !fields.usage;
    if (isEmpty) return "";
    return `data: ${JSON.stringify({ ...rest, object: "text_completion", choices: shaped })}\n\n`;
  }

  done(): string {
    return "data: [DONE]\n\n";
  }

  private choice(choice: JsonObject): JsonObject[] {
    const index = asNumber(choice.index) ?? 0;
    const said = asString(asObject(choice.delta)?.content) ?? "";
    const finish = choice.finish_reason ?? null;
    if (said === "" && finish === null) return [];
    const before = this.lengths.get(index);
    const echoed = before === undefined && this.prompt.echo ? this.prompt.text : "";
    const start = (before ?? 0) + echoed.length;
    this.lengths.set(index, start + said.length);
    return [
      {
        text: echoed + said,
        index,
        logprobs: logprobsOf(choice.logprobs, start),
        finish_reason: finish,
      },
    ];
  }
}
