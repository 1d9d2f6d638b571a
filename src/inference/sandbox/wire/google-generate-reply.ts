import type { SimulatedCall, SimulatedChoice, SimulatedReply } from "../reply.ts";

/** One chunk of a streamed answer; `content` is true when it carries a part. */
export interface GenerateChunk {
  body: Record<string, unknown>;
  content: boolean;
}

/** A part with the output tokens and the thought tokens that it counts as. */
interface CountedPart {
  part: Record<string, unknown>;
  outputTokens: number;
  thoughtTokens: number;
}

interface Counts {
  outputTokens: number;
  thoughtTokens: number;
}

/** The body of a whole generateContent answer. */
export function generateWhole(reply: SimulatedReply, showThoughts: boolean): unknown {
  const candidates = reply.choices.map((choice, index) => ({
    content: { role: "model", parts: wholeParts(reply.seed, choice, showThoughts) },
    finishReason: finishReasonOf(choice),
    index,
  }));
  const { outputTokens = 0, reasoningTokens = 0 } = reply.usage ?? {};
  return { candidates, ...tail(reply, { outputTokens, thoughtTokens: reasoningTokens }) };
}

/** The chunks of a streamed answer: one part each; usage stands on every one and grows. */
export function* generateChunks(
  reply: SimulatedReply,
  showThoughts: boolean,
): Generator<GenerateChunk> {
  const counts: Counts = { outputTokens: 0, thoughtTokens: 0 };
  const body = (candidate: Record<string, unknown>): Record<string, unknown> => ({
    candidates: [candidate],
    ...tail(reply, counts),
  });
  for (const [index, choice] of reply.choices.entries()) {
    if (!showThoughts)
      addTo(counts, {
        outputTokens: choice.reasoning.length,
        thoughtTokens: choice.reasoning.length,
      });
    for (const counted of streamedParts(reply.seed, choice, showThoughts)) {
      addTo(counts, counted);
      yield {
        body: body({ content: { role: "model", parts: [counted.part] }, index }),
        content: true,
      };
    }
    const last = {
      content: { role: "model", parts: [{ text: "" }] },
      finishReason: finishReasonOf(choice),
      index,
    };
    yield { body: body(last), content: false };
  }
}

function addTo(counts: Counts, more: Counts): void {
  counts.outputTokens += more.outputTokens;
  counts.thoughtTokens += more.thoughtTokens;
}

function wholeParts(
  seed: string,
  choice: SimulatedChoice,
  showThoughts: boolean,
): Record<string, unknown>[] {
  const thought =
    choice.reasoning.length > 0 && showThoughts
      ? [{ text: choice.reasoning.join(""), thought: true }]
      : [];
  const text = choice.text.length > 0 ? [{ text: choice.text.join("") }] : [];
  return [...thought, ...text, ...callParts(seed, choice).map((counted) => counted.part)];
}

function streamedParts(
  seed: string,
  choice: SimulatedChoice,
  showThoughts: boolean,
): CountedPart[] {
  const thoughts = showThoughts ? choice.reasoning : [];
  return [
    ...thoughts.map((text) => ({
      part: { text, thought: true },
      outputTokens: 1,
      thoughtTokens: 1,
    })),
    ...choice.text.map((text) => ({ part: { text }, outputTokens: 1, thoughtTokens: 0 })),
    ...callParts(seed, choice),
  ];
}

/**
 * Calls come whole, with the signature of the thought on the first; one that was cut off comes not
 * at all.
 */
function callParts(seed: string, choice: SimulatedChoice): CountedPart[] {
  const signature =
    choice.reasoning.length > 0
      ? { thoughtSignature: Buffer.from(`sandbox thought ${seed}`).toString("base64") }
      : {};
  return choice.calls.flatMap((call, index) => {
    const args = parsedArguments(call);
    if (args === undefined) return [];
    const part = {
      functionCall: { id: call.id, name: call.name, args },
      ...(index === 0 ? signature : {}),
    };
    return [{ part, outputTokens: call.argumentTokens.length, thoughtTokens: 0 }];
  });
}

function parsedArguments(call: SimulatedCall): unknown {
  try {
    return JSON.parse(call.argumentTokens.join(""));
  } catch {
    return undefined;
  }
}

/** Google says STOP after function calls too. */
const finishReasonOf = (choice: SimulatedChoice): string =>
  choice.finish === "length" ? "MAX_TOKENS" : "STOP";

/** Usage and names; Google's `candidatesTokenCount` leaves the thoughts out. */
function tail(
  reply: SimulatedReply,
  { outputTokens, thoughtTokens }: Counts,
): Record<string, unknown> {
  const names = { modelVersion: reply.model, responseId: reply.seed };
  if (reply.usage === undefined) return names;
  const { inputTokens, cachedTokens } = reply.usage;
  return {
    usageMetadata: {
      promptTokenCount: inputTokens,
      ...(cachedTokens > 0 ? { cachedContentTokenCount: cachedTokens } : {}),
      candidatesTokenCount: outputTokens - thoughtTokens,
      ...(thoughtTokens > 0 ? { thoughtsTokenCount: thoughtTokens } : {}),
      totalTokenCount: inputTokens + outputTokens,
    },
    ...names,
  };
}
