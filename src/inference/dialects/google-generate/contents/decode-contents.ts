import type {
  AssistantPart,
  DocumentPart,
  ImagePart,
  Message,
  OpaquePart,
  SystemMessage,
  TextPart,
  ToolMessage,
  ToolResultPart,
  UserPart,
  ToolCallPart,
} from "../../../canonical/message.ts";
import { writtenAt } from "../../../canonical/written-places.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { asObject, badRequest, RequestFields, withoutUndefined } from "../../shared/wire-fields.ts";
import { googleItself, missingSignature, openSeals } from "./seals.ts";

/** Decodes the instructions and the conversation. */
export function decodeContents(body: RequestFields): Message[] {
  const conversation = new ContentDecoder();
  contentsOf(body).forEach((content) => conversation.add(content));
  return [...decodeInstructions(body), ...conversation.messages];
}

/** Returns the entries of `contents`, which clients also write as one text or one content. */
function contentsOf(body: RequestFields): RequestFields[] {
  const { contents } = body.object;
  if (typeof contents === "string")
    return [new RequestFields({ parts: [{ text: contents }] }, "contents")];
  if (asObject(contents) !== undefined) return [new RequestFields(contents, "contents")];
  return body.nestedList("contents") ?? [];
}

/** Returns the parts of a content; older clients write one part without a list. */
function partsOf(content: RequestFields): RequestFields[] {
  const { parts } = content.object;
  return asObject(parts) === undefined
    ? (content.nestedList("parts") ?? [])
    : [new RequestFields(parts, content.pathOf("parts"))];
}

function decodeInstructions(body: RequestFields): SystemMessage[] {
  const { systemInstruction } = body.object;
  if (systemInstruction === undefined || systemInstruction === null) return [];
  const path = "systemInstruction";
  if (typeof systemInstruction === "string") {
    const part = writtenAt(path, { type: "text", text: systemInstruction } as const);
    return systemInstruction === "" ? [] : [writtenAt(path, { role: "system", parts: [part] })];
  }
  const parts = partsOf(new RequestFields(systemInstruction, path)).map((part) =>
    writtenAt<TextPart>(part.path, { type: "text", text: part.requiredString("text") }),
  );
  return parts.length === 0 ? [] : [writtenAt(path, { role: "system", parts })];
}

/**
 * Decodes the contents one after another. Neighbouring contents of the model are one turn, since
 * clients keep a content for each chunk of a stream. Calls without an id get one, and results
 * without an id belong to the earliest unanswered call of their name.
 */
class ContentDecoder {
  readonly messages: Message[] = [];
  private readonly calls = new CalledNames();
  private callCount = 0;
  private turn: TurnDecoder | undefined;

  add(content: RequestFields): void {
    const role = content.string("role") ?? "user";
    if (role === "model" || role === "assistant") {
      this.addTurn(content);
      return;
    }
    this.turn = undefined;
    if (role === "user" || role === "function" || role === "tool") this.addSaid(content);
    else if (role === "system")
      this.messages.push(
        writtenAt(content.path, { role, parts: partsOf(content).map(decodeText) }),
      );
    else throw badRequest(content.pathOf("role"), "must be user or model.");
  }

  private addTurn(content: RequestFields): void {
    if (this.turn === undefined) {
      this.turn = new TurnDecoder((call) => this.callId(call));
      const { parts } = this.turn;
      this.messages.push(writtenAt(content.path, { role: "assistant", parts }));
    }
    for (const call of this.turn.add(partsOf(content))) this.calls.note(call);
  }

  private addSaid(content: RequestFields): void {
    const parts = partsOf(content);
    const isResult = (part: RequestFields): boolean =>
      asObject(part.object.functionResponse) !== undefined;
    for (const part of parts.filter(isResult)) this.messages.push(this.result(part));
    const said = parts.filter((part) => !isResult(part));
    if (said.length === 0 && parts.length > 0) return;
    this.messages.push(
      writtenAt(content.path, {
        role: "user",
        parts: said.map((part) => writtenAt(part.path, decodeUserPart(part))),
      }),
    );
  }

  private callId(call: RequestFields): string {
    this.callCount += 1;
    return call.string("id") || `call_${this.callCount}`;
  }

  private result(part: RequestFields): ToolMessage {
    const response = new RequestFields(
      part.object.functionResponse,
      part.pathOf("functionResponse"),
    );
    const name = response.string("name");
    const id = response.string("id") || undefined;
    const answered = this.calls.answer({ id, name });
    const { parts, isError } = resultParts(response);
    return writtenAt(
      part.path,
      withoutUndefined<ToolMessage>({
        role: "tool",
        toolCallId: answered ?? `call_${name ?? "unknown"}`,
        name,
        parts,
        isError,
      }),
    );
  }
}

/** The calls of a conversation by their names, for results that have no id. */
class CalledNames {
  private readonly answered = new Set<string>();
  private readonly byName = new Map<string, { ids: string[]; next: number }>();

  note({ id, name }: ToolCallPart): void {
    const calls = this.byName.get(name);
    if (calls === undefined) this.byName.set(name, { ids: [id], next: 0 });
    else calls.ids.push(id);
    this.answered.delete(id);
  }

  /** Returns the id of the call that a result is for, and notes that it has one. */
  answer({ id, name }: { id: string | undefined; name: string | undefined }): string | undefined {
    const answered = id ?? this.nextOf(name ?? "");
    if (answered !== undefined) this.answered.add(answered);
    return answered;
  }

  private nextOf(name: string): string | undefined {
    const calls = this.byName.get(name);
    if (calls === undefined) return undefined;
    while (this.answered.has(calls.ids[calls.next] ?? "")) calls.next += 1;
    return calls.ids[calls.next];
  }
}

/**
 * Returns the parts of a result: its text, where the object has only the member that Google's
 * clients write a text into, or else the object as JSON; and the media beside it.
 */
function resultParts(response: RequestFields): {
  parts: ToolResultPart[];
  isError: true | undefined;
} {
  const object = response.objectField("response") ?? {};
  const [only, ...others] = Object.keys(object);
  const plain = only !== undefined && others.length === 0 ? object[only] : undefined;
  const isError = only === "error" && others.length === 0;
  const isPlain = typeof plain === "string" && (isError || only === "output" || only === "result");
  const text = isPlain ? plain : JSON.stringify(object);
  const media = (response.nestedList("parts") ?? []).map((part) =>
    writtenAt(part.path, decodeUserPart(part)),
  );
  return {
    parts: [
      { type: "text", text },
      ...media.filter((part): part is ToolResultPart => part.type !== "audio"),
    ],
    isError: isError ? true : undefined,
  };
}

/** Decodes the parts of a turn of the model, with the reasoning that their signatures carry. */
class TurnDecoder {
  readonly parts: AssistantPart[] = [];

  constructor(private readonly idOf: (call: RequestFields) => string) {}

  /** Adds the parts of a content of the turn. Returns the calls among them. */
  add(parts: readonly RequestFields[]): ToolCallPart[] {
    const calls: ToolCallPart[] = [];
    for (const part of parts) {
      const call = this.addPart(part);
      if (call !== undefined) calls.push(call);
    }
    return calls;
  }

  private addPart(part: RequestFields): ToolCallPart | undefined {
    const written = part.string("thoughtSignature") ?? "";
    const seal = written === missingSignature ? "" : written;
    const carried = openSeals(seal);
    if (carried !== undefined && carried.thoughts.length > 0) this.restore(part, carried.thoughts);
    const own = carried === undefined && seal !== "" ? seal : undefined;
    const { functionCall, text, thought } = part.object;
    if (asObject(functionCall) !== undefined) {
      const call = writtenAt(part.path, this.call(part, carried?.call ?? sealedBy(own)));
      this.parts.push(call);
      return call;
    }
    if (typeof text === "string" && thought === true)
      this.addThought(part, { text, ...sealedBy(own) });
    else if (typeof text === "string") this.addText(part, { text, own });
    else this.push(part, decodeModelMedia(part));
    return undefined;
  }

  /**
   * Adds a text, which continues the one before it: streams give an answer in pieces, of which
   * some are white space alone. One that only bears a signature is no part of the answer.
   */
  private addText(
    part: RequestFields,
    { text, own }: { text: string; own: string | undefined },
  ): void {
    const before = this.parts.at(-1);
    if (before?.type === "text") before.text += text;
    else if (text !== "") this.push(part, { type: "text", text });
    if (own !== undefined) this.push(part, { type: "reasoning", ...sealedBy(own) });
  }

  /** Adds a thought, which continues one before it that bears no signature. */
  private addThought(
    part: RequestFields,
    { text, ...seal }: { text: string } & Pick<ToolCallPart, "signature" | "provenance">,
  ): void {
    const before = this.parts.at(-1);
    if (before?.type === "reasoning" && before.signature === undefined && before.text !== undefined)
      Object.assign(before, { text: before.text + text, ...seal });
    else this.push(part, { type: "reasoning", text, ...seal });
  }

  /** Puts carried reasoning in place of the thoughts that the client was shown of it. */
  private restore(part: RequestFields, thoughts: readonly AssistantPart[]): void {
    while (this.parts.at(-1)?.type === "reasoning") this.parts.pop();
    for (const thought of thoughts) this.push(part, thought);
  }

  private push(part: RequestFields, decoded: AssistantPart): void {
    this.parts.push(writtenAt(part.path, decoded));
  }

  private call(
    part: RequestFields,
    seal: Pick<ToolCallPart, "signature" | "provenance">,
  ): ToolCallPart {
    const call = new RequestFields(part.object.functionCall, part.pathOf("functionCall"));
    return {
      type: "tool-call",
      kind: "function",
      id: this.idOf(call),
      name: call.requiredString("name"),
      arguments: JSON.stringify(call.objectField("args") ?? {}),
      ...seal,
    };
  }
}

/** Returns Google's own signature with its maker. */
const sealedBy = (signature: string | undefined): Pick<ToolCallPart, "signature" | "provenance"> =>
  signature === undefined ? {} : { signature, provenance: googleItself };

function decodeModelMedia(part: RequestFields): AssistantPart {
  const decoded = decodeUserPart(part);
  return decoded.type === "image" || decoded.type === "text" ? decoded : opaque(part);
}

const decodeText = (part: RequestFields): TextPart =>
  writtenAt(part.path, { type: "text", text: part.requiredString("text") });

/** Decodes a part that a user may send; parts that only this dialect has are kept as they are. */
function decodeUserPart(part: RequestFields): UserPart {
  const { text, inlineData, fileData } = part.object;
  if (typeof text === "string") return { type: "text", text };
  if (asObject(inlineData) !== undefined)
    return decodeBytes(new RequestFields(inlineData, part.pathOf("inlineData"))) ?? opaque(part);
  if (asObject(fileData) !== undefined)
    return decodeAddress(new RequestFields(fileData, part.pathOf("fileData"))) ?? opaque(part);
  if (Object.keys(part.object).length === 0)
    throw badRequest(part.path, 'is empty; write a part such as {"text": "Hello"}.');
  return opaque(part);
}

const opaque = (part: RequestFields): OpaquePart => ({
  type: "opaque",
  dialect: "google-generate",
  value: part.object as JsonObject,
});

/** Returns a media type in lower case and without parameters. */
const mediaTypeOf = (written: string): string => (written.split(";")[0] ?? "").trim().toLowerCase();

function decodeBytes(blob: RequestFields): UserPart | undefined {
  const written = blob.requiredString("mimeType");
  const mediaType = mediaTypeOf(written);
  const data = standardBase64(blob.requiredString("data"));
  const [kind, name = ""] = mediaType.split("/");
  if (kind === "image")
    return {
      type: "image",
      source: {
        type: "base64",
        mediaType: mediaType === "image/jpg" ? "image/jpeg" : mediaType,
        data,
      },
    };
  if (kind === "audio") {
    const format = audioFormats[name] ?? (name === "l16" ? "pcm16" : name);
    return { type: "audio", data, format };
  }
  if (mediaType === "application/pdf") return document(blob, { type: "base64", mediaType, data });
  if (kind !== "text" && mediaType !== "application/json") return undefined;
  const text = Buffer.from(data, "base64").toString("utf8");
  return document(blob, { type: "text", text, ...(mediaType !== "text/plain" && { mediaType }) });
}

/** Names of audio formats that other vendors spell differently. */
const audioFormats: Readonly<Record<string, string>> = {
  mpeg: "mp3",
  "x-wav": "wav",
  wave: "wav",
  "x-flac": "flac",
  "x-aac": "aac",
};

/** Returns base64 in its first alphabet; clients in Python write the one for addresses. */
const standardBase64 = (data: string): string =>
  /[-_]/.test(data) ? data.replaceAll("-", "+").replaceAll("_", "/") : data;

function document(fields: RequestFields, source: DocumentPart["source"]): DocumentPart {
  const title = fields.string("displayName");
  return { type: "document", source, ...(title !== undefined && { title }) };
}

/** Addresses at Google, which no other vendor can read. */
const googleOnly = /^(?:gs:|https:\/\/generativelanguage\.googleapis\.com\/)|youtu\.?be/i;

function decodeAddress(file: RequestFields): ImagePart | DocumentPart | undefined {
  const url = file.requiredString("fileUri");
  if (!/^https?:\/\//i.test(url) || googleOnly.test(url)) return undefined;
  const mediaType = mediaTypeOf(file.string("mimeType") ?? "");
  const isPicture =
    mediaType.startsWith("image/") ||
    (mediaType === "" && /\.(?:png|jpe?g|gif|webp|heic|heif)(?:[?#]|$)/i.test(url));
  if (isPicture) return { type: "image", source: { type: "url", url } };
  if (/^(?:audio|video)\//.test(mediaType)) return undefined;
  return document(file, { type: "url", url });
}
