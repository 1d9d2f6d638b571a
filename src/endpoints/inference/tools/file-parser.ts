import { anthropicMessages } from "../../../inference/dialects/anthropic-messages/index.ts";
import type { ClientDialect } from "../../../inference/dialects/dialect.ts";
import { openaiChat } from "../../../inference/dialects/openai-chat/index.ts";
import { openaiResponses } from "../../../inference/dialects/openai-responses/index.ts";
import { isArchive } from "../../../documents/converter/converter-messages.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import { modelFor } from "../../../inference/pipeline/plan/plan-call.ts";
import { badField, GatewayError } from "../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../dependencies.ts";
import type { Wire } from "./dialogue-rounds.ts";
import { roundCall } from "./round-call.ts";
import { isParserPlugin, withoutOnline } from "./asked-tools.ts";

/** The largest file, in bytes, and the most files of a request. */
const fileBytesMax = 5 * 1024 * 1024;
const filesMax = 20;

/** The capability of models that read PDFs themselves. No model reads office files. */
const readsFiles = "document-input";

/** A file of a part in base64, and its name. */
interface PartFile {
  base64: string;
  name: unknown;
}

/** Where a dialect has files, and how it has texts. */
interface FileFace {
  dialect: ClientDialect;
  /** The member of the body that holds the conversation. */
  member: "messages" | "input";
  /** Returns the file that a part holds in itself; undefined for every other part. */
  fileOf(part: Wire): PartFile | undefined;
  textPart(text: string): Wire;
}

/** Returns the content of a `data:` URL in base64; undefined for every other text. */
function dataOf(url: unknown): string | undefined {
  if (typeof url !== "string") return undefined;
  const [head = "", base64] = url.split(",", 2);
  return /^data:.*;base64$/i.test(head) ? base64 : undefined;
}

const fileWith = (base64: string | undefined, name: unknown): PartFile | undefined =>
  base64 === undefined ? undefined : { base64, name };

/** Files of chat: `{type: "file", file: {file_data, filename}}`. */
export const chatFiles: FileFace = {
  dialect: openaiChat,
  member: "messages",
  fileOf(part) {
    const { file_data: data, filename } = Object(part["file"]) as Wire;
    return part["type"] === "file" ? fileWith(dataOf(data), filename) : undefined;
  },
  textPart: (text) => ({ type: "text", text }),
};

/** Files of Messages: `{type: "document", source: {type: "base64", data}, title}`. */
export const messagesFiles: FileFace = {
  dialect: anthropicMessages,
  member: "messages",
  fileOf(part) {
    const { type, data } = Object(part["source"]) as Wire;
    const isFile = part["type"] === "document" && type === "base64" && typeof data === "string";
    return isFile ? { base64: data, name: part["title"] } : undefined;
  },
  textPart: (text) => ({ type: "text", text }),
};

/** Files of Responses: `{type: "input_file", file_data, filename}`. */
export const responsesFiles: FileFace = {
  dialect: openaiResponses,
  member: "input",
  fileOf: ({ type, file_data: data, filename }) =>
    type === "input_file" ? fileWith(dataOf(data), filename) : undefined,
  textPart: (text) => ({ type: "input_text", text }),
};

type ParserDependencies = Pick<Dependencies, "documents" | "inference" | "clock">;

/**
 * Returns a call whose files are text: office files, and PDFs where its model does not read them.
 * Also returns the conversation as it is sent. Throws `bad_request` for a file that cannot be
 * converted.
 */
export async function withParsedFiles(
  deps: ParserDependencies,
  {
    call,
    face,
    conversation = call.body[face.member],
  }: { call: ChatCall; face: FileFace; conversation?: unknown },
): Promise<{ call: ChatCall; conversation: Wire[] | undefined }> {
  if (!Array.isArray(conversation)) return { call, conversation: undefined };
  const id = String(withoutOnline(call.body["model"]));
  const { capabilities } = modelFor(deps.inference, { ...call, id }).model;
  const parsing = {
    deps,
    call,
    face,
    modelReads: capabilities.includes(readsFiles),
    count: { files: 0 },
  };
  const parsed: Wire[] = [];
  for (const [index, message] of (conversation as Wire[]).entries())
    parsed.push(await parsedMessage(parsing, { message, place: `${face.member}[${index}]` }));
  const { plugins = [] } = call.body as { plugins?: unknown[] };
  const others = plugins.filter((plugin) => !isParserPlugin(plugin));
  if (parsing.count.files === 0 && face === chatFiles) return { call, conversation: parsed };
  const edits = new Map<string, unknown>([
    ["plugins", others.length === 0 ? undefined : others],
    ...(parsing.count.files === 0 ? [] : ([[face.member, parsed]] as const)),
  ]);
  const edited = roundCall(call, {
    dialect: face.dialect,
    isFirst: true,
    nowMs: deps.clock.nowMs(),
    edits,
  });
  return { call: edited, conversation: parsed };
}

interface Parsing {
  deps: ParserDependencies;
  call: ChatCall;
  face: FileFace;
  modelReads: boolean;
  count: { files: number };
}

async function parsedMessage(
  parsing: Parsing,
  { message, place }: { message: Wire; place: string },
): Promise<Wire> {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts: Wire[] = [];
  for (const [index, part] of (content as Wire[]).entries())
    parts.push(await parsedPart(parsing, { part, param: `${place}.content[${index}]` }));
  return { ...message, content: parts };
}

async function parsedPart(
  { deps, call, face, modelReads, count }: Parsing,
  { part, param }: { part: Wire; param: string },
): Promise<Wire> {
  const file = face.fileOf(part);
  if (file === undefined) return part;
  if (file.base64.length > (fileBytesMax * 4) / 3 + 4)
    throw badField(param, `is larger than ${fileBytesMax} bytes`);
  const bytes = Buffer.from(file.base64, "base64");
  if (modelReads && !isArchive(bytes)) return part;
  count.files += 1;
  if (count.files > filesMax)
    throw badField(param, `is more than the ${filesMax} files that one request may have`);
  const name = typeof file.name === "string" ? file.name.replaceAll(/["\r\n<>]/g, "_") : "file";
  return face.textPart(await textOf(deps, { bytes, name, param, call }));
}

async function textOf(
  { documents }: ParserDependencies,
  { bytes, name, param, call }: { bytes: Uint8Array; name: string; param: string; call: ChatCall },
): Promise<string> {
  const signal = call.signalOf?.() ?? new AbortController().signal;
  const conversion = await documents.converter.convert(bytes, signal, { takesOffice: true });
  if (conversion.kind === "converted")
    return `<file name="${name}">\n${conversion.markdown}\n</file>`;
  if (conversion.kind === "refused") throw badField(param, conversion.message);
  throw new GatewayError(
    "service_unavailable",
    `${param}: the file could not be converted now. Try again in a few seconds.`,
    { param, retryAfterSeconds: 5 },
  );
}
