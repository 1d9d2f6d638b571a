import type { ClientDialect, Meaning, ReadStream, SeenError } from "./client-dialect.ts";
import { fieldsOf, listOf, numberOf, textOf, wordOf, type Fields } from "./json-value.ts";
import type { WireEvent } from "./wire-events.ts";

const errorOf = (body: Fields): SeenError | undefined => {
  const { error } = body;
  if (typeof error !== "object" || error === null) return undefined;
  const { message, metadata } = fieldsOf(error);
  return { code: fieldsOf(metadata).code, message, metadata: fieldsOf(metadata) };
};

const finishWords: Readonly<Record<string, string>> = {
  STOP: "stop",
  MAX_TOKENS: "length",
  SAFETY: "content_filter",
  PROHIBITED_CONTENT: "content_filter",
};

/** Returns whether the prompt itself was refused, in which case there are no candidates. */
const isBlocked = ({ promptFeedback }: Fields): boolean =>
  fieldsOf(promptFeedback).blockReason !== undefined;

const candidateOf = (body: Fields): Fields => fieldsOf(listOf(body.candidates)[0]);
const partsOf = (candidate: Fields): Fields[] => listOf(fieldsOf(candidate.content).parts);

function mean(body: Fields): Meaning {
  const candidate = candidateOf(body);
  const parts = partsOf(candidate);
  const joined = (isThought: boolean): string =>
    parts
      .filter(({ thought }) => (thought === true) === isThought)
      .map(({ text }) => textOf(text))
      .join("");
  const calls = parts.flatMap(({ functionCall }) => functionCall ?? []).map(fieldsOf);
  const reason = textOf(candidate.finishReason ?? (isBlocked(body) ? "SAFETY" : ""));
  const ends = calls.length > 0 && reason === "STOP" ? "tool_calls" : finishWords[reason];
  const usage = fieldsOf(body.usageMetadata);
  const { cachedContentTokenCount: cached, thoughtsTokenCount: reasoning } = usage;
  return {
    id: textOf(body.responseId),
    said: joined(false),
    refused: textOf(candidate.finishMessage),
    thought: joined(true),
    seals: parts.map(({ thoughtSignature: seal }) => textOf(seal)).filter((seal) => seal !== ""),
    calls: calls.map(({ id, name, args }) => ({
      id: textOf(id),
      name: textOf(name),
      arguments: JSON.stringify(args),
    })),
    finish: reason === "" ? undefined : (ends ?? reason),
    usage:
      typeof usage.promptTokenCount === "number"
        ? {
            input: usage.promptTokenCount,
            output: numberOf(usage.candidatesTokenCount ?? 0) + numberOf(reasoning ?? 0),
            ...(typeof cached === "number" && { cached }),
            ...(typeof reasoning === "number" && { reasoning }),
          }
        : undefined,
    costUsd: usage.cost,
  };
}

/** Adds up chunks, each of which is a whole answer of its own. */
function readStream(events: readonly WireEvent[]): ReadStream {
  const errors: SeenError[] = [];
  const breaches: string[] = [];
  const parts: Fields[] = [];
  let body: Fields = {};
  let endings = 0;
  for (const { name, id, data } of events) {
    if (name !== undefined) breaches.push(`the event ${name} has a name`);
    if (id !== undefined) breaches.push("an event has an id");
    if (endings > 0) breaches.push("a chunk after the end");
    const error = errorOf(data);
    if (error !== undefined) {
      errors.push(error);
      continue;
    }
    const candidate = candidateOf(data);
    if (textOf(data.responseId) === "") breaches.push("a chunk without responseId");
    parts.push(...partsOf(candidate));
    const { finishReason } = candidate;
    body = {
      ...body,
      ...data,
      candidates: [{ ...candidate, content: { role: "model", parts: joinedTexts(parts) } }],
    };
    if (finishReason === undefined && !isBlocked(data)) continue;
    endings += 1;
    if (typeof fieldsOf(data.usageMetadata).totalTokenCount !== "number")
      breaches.push("the last chunk has no usage");
  }
  return { body, errors, endings, breaches, metadata: body.service_metadata };
}

const isPlain = ({ text, thoughtSignature: seal }: Fields): boolean =>
  text !== undefined && seal === undefined;

/** Returns the parts with pieces of one text put together. */
function joinedTexts(parts: readonly Fields[]): Fields[] {
  const joined: Fields[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    const goesOn =
      last !== undefined && isPlain(last) && isPlain(part) && last.thought === part.thought;
    if (goesOn)
      joined[joined.length - 1] = { ...last, text: textOf(last.text) + textOf(part.text) };
    else joined.push(part);
  }
  return joined;
}

/** Returns an id as a part of a path; a colon and a slash stay, as clients write them. */
const inPath = (id: string): string =>
  /^[\w.:-]+\/[\w.:-]+$/.test(id) ? id : encodeURIComponent(id.toWellFormed());

/** Google's `generateContent`, whose path says the model and whether the answer is streamed. */
export const googleClient: ClientDialect<"google-generate"> = {
  name: "google-generate",
  path: "/models/acme/large:generateContent",
  address({ model, stream, ...body }) {
    const method = stream === true ? "streamGenerateContent?alt=sse" : "generateContent";
    return { path: `/models/${inPath(wordOf(model))}:${method}`, body };
  },
  ask: (text) => ({
    contents: [{ role: "user", parts: [{ text }] }],
    generationConfig: { maxOutputTokens: 300, thinkingConfig: { includeThoughts: true } },
  }),
  capped: (maxOutputTokens) => ({ generationConfig: { maxOutputTokens } }),
  mean,
  errorOf,
  envelopeBreaches: ({ error }) => {
    const { code, message, status, details } = fieldsOf(error);
    return [
      ...(typeof code === "number" ? [] : ["the error has no code"]),
      ...(typeof message === "string" ? [] : ["the error has no message"]),
      ...(/^[A-Z_]+$/.test(textOf(status)) ? [] : ["the error has no status"]),
      ...(listOf(details).length > 0 ? [] : ["the error has no details"]),
    ];
  },
  readStream,
};
