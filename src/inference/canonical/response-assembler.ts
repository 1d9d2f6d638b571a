import type { AudioOutputPart, AssistantPart } from "./message.ts";
import {
  reconcileFinish,
  type Finish,
  type GatewayFacts,
  type LogProbabilities,
  type CanonicalResponse,
  type Choice,
  type MeteredUsage,
  type AudioDelta,
  type ErrorPart,
  type ItemPart,
  type ReasoningEnd,
  type ResponseStart,
  type StreamPart,
} from "./response.ts";
import type { ReasoningPart } from "./reasoning.ts";

interface OpenChoice {
  items: AssistantPart[];
  finish?: Finish;
  logProbabilities?: LogProbabilities;
}

/**
 * Assembles the whole answer from stream parts: for a client that asked for no stream while the
 * upstream sent one, and for records of what was delivered. Parts may stop at any point.
 */
export class ResponseAssembler {
  /** The part that ended the stream in failure. */
  error: ErrorPart | undefined;
  private start: ResponseStart | undefined;
  private readonly choices = new Map<number, OpenChoice>();
  private usage: MeteredUsage | undefined;
  private gateway: GatewayFacts | undefined;

  add(part: StreamPart): void {
    switch (part.type) {
      case "response-start":
        this.start = part;
        break;
      case "usage":
        this.usage = part.usage;
        break;
      case "response-end":
        this.gateway = part.gateway;
        break;
      case "error":
        this.error = part;
        break;
      case "finish":
        this.choice(part.choiceIndex).finish = part.finish;
        break;
      case "logprobs":
        this.addLogProbabilities(part.choiceIndex, part);
        break;
      default:
        this.addToItem(part);
    }
  }

  /** Returns the answer as far as it came. */
  response(): CanonicalResponse {
    const { start, usage, gateway } = this;
    return {
      id: start?.id ?? "",
      model: start?.model ?? "",
      createdAtSeconds: start?.createdAtSeconds ?? 0,
      choices: [...this.choices]
        .sort(([a], [b]) => a - b)
        .map(([index, choice]) => closeChoice(index, choice)),
      ...(usage !== undefined && { usage }),
      ...(start?.serviceTier !== undefined && { serviceTier: start.serviceTier }),
      ...(start?.systemFingerprint !== undefined && { systemFingerprint: start.systemFingerprint }),
      ...(gateway !== undefined && { gateway }),
    };
  }

  private choice(index: number): OpenChoice {
    let choice = this.choices.get(index);
    if (choice === undefined) this.choices.set(index, (choice = { items: [] }));
    return choice;
  }

  private addLogProbabilities(choiceIndex: number, added: LogProbabilities): void {
    const choice = this.choice(choiceIndex);
    const { content, refusal } = choice.logProbabilities ?? {};
    choice.logProbabilities = {
      ...((content ?? added.content) && {
        content: [...(content ?? []), ...(added.content ?? [])],
      }),
      ...((refusal ?? added.refusal) && {
        refusal: [...(refusal ?? []), ...(added.refusal ?? [])],
      }),
    };
  }

  private addToItem(part: ItemPart): void {
    const { items } = this.choice(part.choiceIndex);
    const item = (items[part.itemIndex] ??= newItem(part));
    switch (part.type) {
      case "text-delta":
        if (item.type === "text") item.text += part.text;
        break;
      case "reasoning-delta":
        if (item.type === "reasoning") addThought(item, part);
        break;
      case "reasoning-end":
        if (item.type === "reasoning") sealThought(item, part);
        break;
      case "tool-call-delta":
        if (item.type === "tool-call") item.arguments += part.arguments;
        break;
      case "refusal-delta":
        if (item.type === "refusal") item.refusal += part.refusal;
        break;
      case "annotation":
        if (item.type === "text") item.annotations = [...(item.annotations ?? []), part.annotation];
        break;
      case "audio-delta":
        if (item.type === "audio-output") addAudio(item, part);
        break;
    }
  }
}

function newItem(part: ItemPart): AssistantPart {
  switch (part.type) {
    case "reasoning-start": {
      const { id, format } = part;
      return {
        type: "reasoning",
        ...(id !== undefined && { id }),
        ...(format !== undefined && { format }),
      };
    }
    case "reasoning-delta":
    case "reasoning-end":
      return { type: "reasoning" };
    case "tool-call-start": {
      const { type: _type, choiceIndex: _choice, itemIndex: _item, ...call } = part;
      return { type: "tool-call", ...call, arguments: "" };
    }
    case "refusal-delta":
      return { type: "refusal", refusal: "" };
    case "audio-delta":
      return { type: "audio-output", id: part.id ?? "" };
    case "image":
      return part.image;
    case "opaque":
      return part.part;
    case "text-start": {
      const { startsMessage, phase } = part;
      return {
        type: "text",
        text: "",
        ...(startsMessage !== undefined && { startsMessage }),
        ...(phase !== undefined && { phase }),
      };
    }
    default:
      return { type: "text", text: "" };
  }
}

function addThought(
  item: ReasoningPart,
  { text, summaryIndex }: { text: string; summaryIndex?: number },
): void {
  if (summaryIndex === undefined) {
    item.text = (item.text ?? "") + text;
    return;
  }
  const summary = [...(item.summary ?? [])];
  while (summary.length < summaryIndex) summary.push("");
  summary[summaryIndex] = (summary[summaryIndex] ?? "") + text;
  item.summary = summary;
}

function sealThought(
  item: ReasoningPart,
  { signature, encrypted, provenance }: ReasoningEnd,
): void {
  if (signature !== undefined) item.signature = signature;
  if (encrypted !== undefined) item.encrypted = encrypted;
  if (provenance !== undefined) item.provenance = provenance;
}

function addAudio(item: AudioOutputPart, part: AudioDelta): void {
  if (part.id !== undefined) item.id = part.id;
  if (part.data !== undefined) item.data = (item.data ?? "") + part.data;
  if (part.transcript !== undefined) item.transcript = (item.transcript ?? "") + part.transcript;
  if (part.expiresAtSeconds !== undefined) item.expiresAtSeconds = part.expiresAtSeconds;
}

function closeChoice(index: number, choice: OpenChoice): Choice {
  const parts = choice.items.filter((item) => item !== undefined && !isEmpty(item));
  for (const part of parts) {
    if (part.type === "tool-call" && part.kind === "function" && part.arguments.trim() === "")
      part.arguments = "{}";
  }
  return {
    index,
    parts,
    finish:
      choice.finish ??
      reconcileFinish(
        undefined,
        parts.some((part) => part.type === "tool-call"),
      ),
    ...(choice.logProbabilities && { logProbabilities: choice.logProbabilities }),
  };
}

/** Returns whether an item was opened and never filled, which is meaningless in any dialect. */
function isEmpty(part: AssistantPart): boolean {
  if (part.type === "text") return part.text === "";
  if (part.type !== "reasoning") return false;
  return (
    !part.text &&
    !part.summary?.length &&
    part.signature === undefined &&
    part.encrypted === undefined
  );
}
