import { openaiChat } from "../../../../inference/dialects/openai-chat/index.ts";
import type { ChatCall } from "../../../../inference/pipeline/inference-call.ts";
import { modelFor } from "../../../../inference/pipeline/plan-call.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../../dependencies.ts";
import type { Wire } from "../dialogue-rounds.ts";
import { roundCall } from "../round-call.ts";
import { withoutOnline } from "../web-search.ts";

/** The largest file, in bytes, and the most files of a request. */
const fileBytesMax = 5 * 1024 * 1024;
const filesMax = 20;

/** The capability of models that read files themselves. */
const readsFiles = "document-input";

const isParser = (plugin: unknown): boolean => (Object(plugin) as Wire)["id"] === "file-parser";

type ParserDependencies = Pick<Dependencies, "documents" | "inference" | "clock">;

/**
 * Returns a call whose PDFs are text, where it asks for OpenRouter's `file-parser` and its model
 * does not read files; every other call as it is. Throws `bad_request` for a file that cannot be
 * converted.
 */
export async function withParsedFiles(deps: ParserDependencies, call: ChatCall): Promise<ChatCall> {
  const { plugins, messages, model: asked } = call.body;
  if (!Array.isArray(plugins) || !plugins.some(isParser)) return call;
  const id = String(withoutOnline(asked));
  if (modelFor(deps.inference, { ...call, id }).model.capabilities.includes(readsFiles))
    return call;
  const count = { files: 0 };
  const parsed: Wire[] = [];
  for (const [index, message] of (messages as Wire[]).entries())
    parsed.push(await parsedMessage(deps, { message, index, call, count }));
  if (count.files === 0) return call;
  const others = plugins.filter((plugin: unknown) => !isParser(plugin));
  return roundCall(call, {
    dialect: openaiChat,
    isFirst: true,
    nowMs: deps.clock.nowMs(),
    edits: new Map<string, unknown>([
      ["messages", parsed],
      ["plugins", others.length === 0 ? undefined : others],
    ]),
  });
}

async function parsedMessage(
  deps: ParserDependencies,
  {
    message,
    index,
    call,
    count,
  }: { message: Wire; index: number; call: ChatCall; count: { files: number } },
): Promise<Wire> {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const parts: Wire[] = [];
  for (const [place, part] of (content as Wire[]).entries()) {
    const param = `messages[${index}].content[${place}]`;
    const file = fileOf(part, param);
    if (file === undefined) {
      parts.push(part);
      continue;
    }
    count.files += 1;
    if (count.files > filesMax)
      throw refused(param, `is more than the ${filesMax} files that one request may have`);
    parts.push({ type: "text", text: await textOf(deps, { ...file, param, call }) });
  }
  return { ...message, content: parts };
}

const refused = (param: string, reason: string): GatewayError =>
  new GatewayError("bad_request", `${param}: ${reason}`, { param });

/** Returns the file of a part as bytes; undefined for a part that holds none in itself. */
function fileOf(part: Wire, param: string): { bytes: Uint8Array; name: string } | undefined {
  const { file_data: data, filename } = Object(part["file"]) as Wire;
  if (part["type"] !== "file" || typeof data !== "string") return undefined;
  const [head = "", base64] = data.split(",", 2);
  if (base64 === undefined || !/^data:.*;base64$/i.test(head)) return undefined;
  if (base64.length > (fileBytesMax * 4) / 3 + 4)
    throw refused(param, `is larger than ${fileBytesMax} bytes`);
  const name = typeof filename === "string" ? filename.replaceAll(/["\r\n<>]/g, "_") : "file";
  return { bytes: Buffer.from(base64, "base64"), name };
}

async function textOf(
  { documents }: ParserDependencies,
  { bytes, name, param, call }: { bytes: Uint8Array; name: string; param: string; call: ChatCall },
): Promise<string> {
  const signal = call.signalOf?.() ?? new AbortController().signal;
  const conversion = await documents.converter.convert(bytes, signal);
  if (conversion.kind === "converted")
    return `<file name="${name}">\n${conversion.markdown}\n</file>`;
  if (conversion.kind === "refused") throw refused(param, conversion.message);
  throw new GatewayError(
    "service_unavailable",
    `${param}: the file could not be converted now. Try again in a few seconds.`,
    { param, retryAfterSeconds: 5 },
  );
}
