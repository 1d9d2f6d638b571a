import type { JsonObject, JsonValue } from "../canonical/json.ts";
import type { Loss } from "../canonical/request.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  badRequest,
  objectsIn,
  RequestFields,
} from "../dialects/shared/wire-fields.ts";

/** The prompt of a completion, and whether the gateway begins the answer with it. */
export interface EchoedPrompt {
  text: string;
  echo: boolean;
}

/** What a completion asks for that no chat can answer. */
export interface OwnOnly {
  field: "prompt" | "max_tokens";
  what: string;
}

/** A completion as a request for chat, and what chat cannot express of it. */
interface ReshapedCompletion {
  body: Record<string, JsonValue | undefined>;
  losses: readonly Loss[];
  prompt: EchoedPrompt;
  ownOnly: OwnOnly | undefined;
  /** The number of answers that may be generated. */
  generated: number;
}

/** The most prompts of a request, and the most answers to each, as in OpenAI's reference. */
const promptsMax = 2_048;
const answersMax = 128;

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
 * instruction. `maxTokensDefault` is the output cap where the request names none. Throws
 * `GatewayError` for what is no completion.
 */
export function chatOfCompletion(body: JsonObject, maxTokensDefault?: number): ReshapedCompletion {
  checkFields(body);
  const prompts = promptsOf(body.prompt);
  const text = prompts.map(({ text: each }) => each).join("\n");
  const suffix = asString(body.suffix) ?? "";
  const losses: Loss[] = [{ field: "prompt", reason: "sent as the user's message of a chat" }];
  if (suffix !== "") losses.push({ field: "suffix", reason: "described to the model" });
  if ((asNumber(body.best_of) ?? 1) > (asNumber(body.n) ?? 1))
    losses.push({ field: "best_of", reason: "chat has no such field" });
  const rest = Object.fromEntries(
    Object.entries(body).filter(([name]) => !reshapedFields.has(name)),
  );
  const logprobs = asNumber(body.logprobs);
  const cap = asNumber(body.max_tokens) ?? maxTokensDefault;
  const answers = Math.max(1, asNumber(body.n) ?? 1, asNumber(body.best_of) ?? 1);
  return {
    body: {
      ...rest,
      messages: [
        ...(suffix === "" ? [] : [{ role: "system", content: fillingIn(suffix) }]),
        { role: "user", content: text },
      ],
      ...(cap !== undefined && { max_tokens: cap === 0 ? 1 : cap }),
      ...(logprobs !== undefined && {
        logprobs: true,
        ...(logprobs > 0 && { top_logprobs: logprobs }),
      }),
    },
    losses,
    prompt: { text, echo: body.echo === true },
    ownOnly: ownOnlyOf(prompts, cap),
    generated: prompts.length * answers,
  };
}

/** Members whose value is an integer, with the least and the most that it may be. */
const integers: readonly (readonly [field: string, least: number, most: number])[] = [
  ["max_tokens", 0, Infinity],
  ["n", 1, answersMax],
  ["best_of", 1, answersMax],
  ["logprobs", 0, 20],
];

/** Checks the members that chat has in another form, by the names of the older API. */
function checkFields(body: JsonObject): void {
  for (const [field, least, most] of integers) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) continue;
    const bounds = most === Infinity ? `of ${least} or more` : `from ${least} to ${most}`;
    throw badRequest(field, `must be an integer ${bounds}; leave it out for the default.`);
  }
  const fields = new RequestFields(body, "");
  fields.boolean("echo");
  fields.string("suffix");
  const { best_of: candidates, n: answers } = body;
  if (typeof candidates === "number" && candidates < (asNumber(answers) ?? 1))
    throw badRequest("best_of", "must be at least n, of which it is the choice.");
}

function ownOnlyOf(prompts: readonly Prompt[], cap: number | undefined): OwnOnly | undefined {
  if (prompts.length > 1) return { field: "prompt", what: "has several texts" };
  if (prompts[0]?.isTokens === true) return { field: "prompt", what: "has token ids" };
  return cap === 0
    ? { field: "max_tokens", what: "is 0, so that the prompt is scored" }
    : undefined;
}

/** One of the prompts of a request; the text of token ids is as long as theirs may be. */
interface Prompt {
  text: string;
  isTokens: boolean;
}

const fillingIn = (suffix: string): string =>
  "Write only the text that continues the user's message and leads over to this, without repeating either: " +
  suffix;

/** Returns the prompts: a text, a list of texts, token ids, or a list of lists of those. */
function promptsOf(prompt: JsonValue | undefined): readonly Prompt[] {
  if (typeof prompt === "string") return [{ text: prompt, isTokens: false }];
  const list = asArray(prompt);
  if (list === undefined || list.length === 0)
    throw badRequest("prompt", "is required: a text, a list of texts, or token ids.");
  if (list.every((each) => typeof each === "number")) return [ofTokens(list)];
  if (list.length > promptsMax)
    throw badRequest("prompt", `must have at most ${promptsMax} texts.`);
  return list.map((each) => {
    if (typeof each === "string") return { text: each, isTokens: false };
    const ids = asArray(each);
    if (ids === undefined || ids.length === 0 || !ids.every((id) => typeof id === "number"))
      throw badRequest("prompt", "must be a text, a list of texts, or token ids.");
    return ofTokens(ids);
  });
}

/** Characters by which the tokens of a text are estimated. */
const charactersPerToken = 4;

const ofTokens = (ids: readonly unknown[]): Prompt => ({
  text: "token".slice(0, charactersPerToken).repeat(ids.length),
  isTokens: true,
});

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

/** Returns the tokens of chat's form in the lists of the older one, which is kept where it came. */
function logprobsOf(value: JsonValue | undefined, startAt: number): JsonObject | null {
  const written = asObject(value);
  if (written?.tokens !== undefined) return written;
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
  private readonly lengths = new Map<number, number>();

  constructor(private readonly prompt: EchoedPrompt) {}

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
