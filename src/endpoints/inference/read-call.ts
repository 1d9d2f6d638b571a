import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import { usePreset } from "../../account/presets/apply-preset.ts";
import type { PresetDialect } from "../../account/presets/preset-spellings.ts";
import { countRequest } from "../../http/count-request.ts";
import { parseJsonObject, readJsonText } from "../../http/read-body.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { CanonicalRequest } from "../../inference/canonical/request.ts";
import { providerIdIn } from "../../inference/catalog/provider-names.ts";
import { chatCall } from "../../inference/chat-call.ts";
import type { CallOrigin, ChatCall } from "../../inference/inference-call.ts";
import { estimateInputTokens } from "../../inference/input-estimate.ts";
import type { Dependencies } from "../dependencies.ts";
import { callOrigin } from "./call-origin.ts";
import { rateClassOf } from "./rate-class.ts";
import type { RequestHeaders } from "../../http/http-request.ts";

/** Larger bodies are refused with 413: above what any provider takes, below what hurts. */
export const inferenceBodyBytesMax = 32 * 1024 * 1024;

type Body = Readonly<Record<string, unknown>>;

/** What tells the chat-shaped routes apart when their requests are read. */
export interface CallReader {
  dialect: PresetDialect;
  /** Prefix of the ids that clients of the dialect see. */
  idPrefix: string;
  /** Throws `GatewayError` `bad_request` that names the field. */
  validate(body: Body): void;
  decode(body: Body): CanonicalRequest;
  /** Request headers that mean something to the dialect, in lower case. */
  dialectHeaders: readonly string[];
}

type CallServices = Pick<
  Dependencies,
  "counters" | "clock" | "inference" | "presets" | "directory"
>;

const noHeaders: Readonly<Record<string, string>> = {};

/** The headers of these names that a request has. */
export function pickHeaders(
  headers: RequestHeaders,
  names: readonly string[],
): Readonly<Record<string, string>> {
  if (names.length === 0) return noHeaders;
  const picked: Record<string, string> = {};
  for (const name of names) {
    const value = headers.get(name);
    if (value !== null) picked[name] = value;
  }
  return picked;
}

/** Reads, counts and checks a request of a chat-shaped route. Throws `GatewayError`. */
export async function readCall(
  context: RequestContext,
  reader: CallReader,
  services: CallServices,
): Promise<ChatCall> {
  const caller = context.caller as LlmKeyCaller;
  const sent = await readJsonText(context.request, inferenceBodyBytesMax);
  const { text, body, preset } = usePreset(services.presets, {
    workspaceId: caller.workspace.id,
    dialect: reader.dialect,
    text: sent,
    body: parseJsonObject(sent),
    providerIdOf: (name) => providerIdIn(services.inference.catalog(), name) ?? name.toLowerCase(),
  });
  const counting = countRequest(services.counters, {
    caller,
    rateClass: rateClassOf(body["model"]),
    headers: context.headers,
  });
  if (counting !== undefined) await counting;
  reader.validate(body);
  if (preset !== undefined) services.directory.uses.note(preset.id, services.clock.nowMs());
  return callOf(context, { services, reader, text, body });
}

/** The call of a request whose body was read, counted and checked. */
function callOf(
  context: RequestContext,
  {
    reader,
    services,
    text,
    body,
  }: { reader: CallReader; services: CallServices; text: string; body: Body },
): ChatCall | Promise<ChatCall> {
  const { idPrefix, dialect, decode } = reader;
  const { counters, clock, inference } = services;
  const arriving = callOrigin(context, {
    idPrefix,
    body,
    counters,
    estimateTokens: () => estimateInputTokens(text, body),
  });
  const callFrom = (origin: CallOrigin): ChatCall =>
    chatCall(origin, {
      dialect,
      decode,
      text,
      body,
      dialectHeaders: pickHeaders(context.request.headers, reader.dialectHeaders),
      signatures: inference.callSignatures.of(origin.caller.workspace.id),
      nowSeconds: () => Math.floor(clock.nowMs() / 1000),
    });
  return arriving instanceof Promise ? arriving.then(callFrom) : callFrom(arriving);
}
