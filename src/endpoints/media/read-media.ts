import { bodyPieces } from "../../http/uploads/body-pieces.ts";
import { z } from "zod";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { answerOnceFor } from "../../access/idempotent-answers.ts";
import { boundaryOf, fieldText, formParts } from "../../http/uploads/multipart.ts";
import type { Reply } from "../../http/reply.ts";
import { declaredLengthOf, parseJsonObject, readJsonText } from "../../http/bodies/read-body.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { usePreset } from "../../identity/presets/preset.ts";
import { providerIdIn } from "../../inference/catalog/model.ts";
import type { Upload } from "../../inference/surfaces/media/uploads.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { SpooledContent } from "../../platform/spool/spool.ts";
import type { Dependencies } from "../dependencies.ts";
import { formMembers } from "./form-members.ts";
import { withStoredUploads } from "./stored-uploads.ts";
import { modelInPath } from "../inference/request-names.ts";
import { inferenceHeaders } from "../inference/request-headers.ts";

/** The request headers of calls that make something. */
export const mediaHeaders = inferenceHeaders.extend({
  "Idempotency-Key": z
    .string()
    .max(255)
    .optional()
    .describe("A repetition with the same key gets the first answer and is not charged."),
});

/** A request with files, as JSON or as a form. */
export interface MediaBody {
  body: Record<string, unknown>;
  uploads: readonly Upload[];
  /** The id of the preset that the request names as its model. */
  presetId: string | undefined;
  /** A hash of all that was sent, for requests that may be repeated; empty for others. */
  fingerprint: string;
  /** Frees the files, once everyone to whom they were lent has closed them too. */
  close(): Promise<void>;
  /** Keeps the files beyond the request, until `close` is called once more. */
  lend(): void;
}

type Services = Pick<
  Dependencies,
  "spool" | "presets" | "inference" | "files" | "directory" | "clock"
>;

/** The most bytes of a form's plain fields, of which samples of voices are the longest. */
const fieldBytesMax = 8 * 1024 * 1024;

/**
 * The most forms that wait for slow storage. The platform keeps more than a megabyte of each, and none
 * of further ones, which are written at once and keep the process waiting.
 */
const waitingMax = 48;

/** What a route accepts. */
interface MediaLimits {
  /** The most bytes of a whole form, and of a body of JSON. */
  formBytesMax: number;
  jsonBytesMax: number;
  /** The most bytes of one file, by the name of its field without brackets. */
  fileBytesMax: number;
}

/**
 * Reads a request with files. Forms are read as they come, and files beyond 1 MiB go to disk. Where
 * reading fails, or the client leaves, nothing is left. Throws `GatewayError`.
 */
export async function readMedia(
  context: RequestContext,
  { services, limits, settings }: { services: Services; limits: MediaLimits } & OfPreset,
): Promise<MediaBody> {
  const type = context.request.headers.get("content-type");
  const read = /^multipart\/form-data\b/i.test(type ?? "")
    ? await readForm(context, { services, limits })
    : await readJson(context, limits);
  try {
    const model = modelInPath(context);
    return await completed(context, {
      read: model === undefined ? read : { ...read, body: { ...read.body, model } },
      services,
      settings,
      fileBytesMax: limits.fileBytesMax,
    });
  } catch (error) {
    await read.close();
    throw error;
  }
}

/**
 * Answers a request with files once for each idempotency key, and removes its files afterwards.
 * Throws `GatewayError`.
 */
export async function answerMedia(
  context: RequestContext,
  reading: {
    services: Services & Pick<Dependencies, "idempotentAnswers">;
    limits: MediaLimits;
  } & OfPreset,
  answer: (sent: MediaBody) => Promise<Reply>,
): Promise<Reply> {
  const sent = await readMedia(context, reading);
  try {
    return await answerOnceFor(
      reading.services.idempotentAnswers,
      { context, bodyText: sent.fingerprint },
      () => answer(sent),
    );
  } finally {
    await sent.close();
  }
}

type ReadBody = Omit<MediaBody, "presetId">;

/**
 * The settings of a preset that each surface takes, as member of the request and of the preset;
 * those of other surfaces are left out.
 */
export const presetSettings = {
  images: {
    size: "size",
    quality: "quality",
    background: "background",
    output_format: "format",
  },
  speech: {
    voice: "voice",
    instructions: "instructions",
    speed: "speed",
    response_format: "format",
  },
  transcriptions: { language: "language", response_format: "format" },
} as const;

interface OfPreset {
  settings: Readonly<Record<string, string>>;
}

/**
 * Returns a request with the files of the workspace that it names, and with its preset. Throws
 * `GatewayError`.
 */
export async function completed<Read extends Pick<MediaBody, "body" | "uploads">>(
  context: RequestContext,
  {
    read,
    services,
    fileBytesMax,
    settings,
  }: { read: Read; services: Omit<Services, "spool">; fileBytesMax: number } & OfPreset,
): Promise<Read & Pick<MediaBody, "presetId">> {
  const whole = await withStoredUploads(context, read, { files: services.files, fileBytesMax });
  return { ...whole, ...withPreset(context, { services, body: whole.body, settings }) };
}

async function readJson(
  { request }: RequestContext,
  { jsonBytesMax }: MediaLimits,
): Promise<ReadBody> {
  const text = await readJsonText(request, jsonBytesMax);
  return {
    body: parseJsonObject(text),
    uploads: [],
    fingerprint: new Bun.CryptoHasher("sha256").update(text).digest("hex"),
    close: async () => undefined,
    lend: () => undefined,
  };
}

async function readForm(
  { request }: RequestContext,
  { services: { spool }, limits }: { services: Services; limits: MediaLimits },
): Promise<ReadBody> {
  const fields: [string, string][] = [];
  let fieldBytesLeft = fieldBytesMax;
  const uploads: (Upload & { content: SpooledContent })[] = [];
  // Hashing takes longer than storing, so only requests that may be repeated are hashed.
  const hash = request.headers.has("idempotency-key") ? new Bun.CryptoHasher("sha256") : undefined;
  let readers = 1;
  const close = async (): Promise<void> => {
    readers -= 1;
    if (readers <= 0) for (const { content } of uploads.splice(0)) await content.close();
  };
  const boundary = boundaryOf(request.headers.get("content-type"));
  const room = await spool.room(roomOf(request, limits), request);
  try {
    const waits = (waitingCount: number): boolean => spool.isSlow && waitingCount < waitingMax;
    const pieces = bodyPieces(request, limits.formBytesMax, { waits });
    for await (const part of formParts(pieces, boundary)) {
      const { name: field, filename, type } = part;
      hash?.update(JSON.stringify([field, filename]));
      if (filename === undefined && !isBinary(type)) {
        const text = await fieldText(part, { bytesMax: fieldBytesLeft });
        fieldBytesLeft -= Buffer.byteLength(text);
        hash?.update(text);
        fields.push([field, text]);
        continue;
      }
      const content = await spool.store(
        counted(part.content, { hash, field, bytesMax: limits.fileBytesMax }),
        room,
      );
      uploads.push({ field, filename: filename ?? nameByType(type), type, content });
    }
    return {
      body: formMembers(fields),
      uploads: [...uploads],
      fingerprint: hash?.digest("hex") ?? "",
      close,
      lend: () => void (readers += 1),
    };
  } catch (error) {
    await close();
    throw error;
  } finally {
    room.close();
  }
}

/** Returns the bytes that a form declares; 0 where it names none, or is refused anyway. */
function roomOf(request: RequestContext["request"], { formBytesMax }: MediaLimits): number {
  const declared = declaredLengthOf(request) ?? 0;
  return declared > formBytesMax ? 0 : declared;
}

/** Returns a name for a file without one, since providers tell its format by its ending. */
function nameByType(type = ""): string {
  const [, ending] = /^(?:audio|video|image)\/(?:x-)?([a-z0-9]+)\b/i.exec(type) ?? [];
  return ending === undefined ? "file" : `file.${ending.toLowerCase()}`;
}

/** Returns whether a part without a filename is bytes all the same. */
const isBinary = (type: string | undefined): boolean =>
  type !== undefined && !/^(?:text\/plain|application\/json)\b/i.test(type);

async function* counted(
  pieces: AsyncIterable<Uint8Array>,
  {
    hash,
    field,
    bytesMax,
  }: { hash: Bun.CryptoHasher | undefined; field: string; bytesMax: number },
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const piece of pieces) {
    size += piece.byteLength;
    if (size > bytesMax)
      throw new GatewayError(
        "content_too_large",
        `${field}: the file is larger than the limit of ${bytesMax} bytes. Send a smaller one.`,
        { param: field, metadata: { limit_bytes: bytesMax } },
      );
    hash?.update(piece);
    yield piece;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** Returns how a preset's settings of pictures or sound are written. */
const presetFieldsOf = ({ settings }: OfPreset) => ({
  settings: (config: Members, body: Members) =>
    Object.fromEntries(
      Object.entries(settings).flatMap(([member, setting]) =>
        config[setting] === undefined || (body[member] ?? undefined) !== undefined
          ? []
          : [[member, config[setting]]],
      ),
    ),
  hasSystem: () => true,
  systemMember: () => undefined,
});

function withPreset(
  context: RequestContext,
  {
    services,
    body,
    settings,
  }: { services: Omit<Services, "spool">; body: Record<string, unknown> } & OfPreset,
): Pick<MediaBody, "body" | "presetId"> {
  const { workspace } = context.caller as LlmKeyCaller;
  const model = body["model"];
  if (typeof model !== "string" || !model.startsWith("@preset/"))
    return { body, presetId: undefined };
  const used = usePreset(services.presets, {
    workspaceId: workspace.id,
    presetFields: presetFieldsOf({ settings }),
    text: JSON.stringify(body),
    body,
    providerIdOf: (name) => providerIdIn(services.inference.catalog(), name) ?? name.toLowerCase(),
  });
  const presetId = used.preset?.id;
  if (presetId !== undefined) services.directory.uses.note(presetId, services.clock.nowMs());
  return { body: { ...used.body }, presetId };
}
