import { isDeeperThan } from "../platform/kernel/json/json-scanner.ts";
import type { FileStore } from "../files/file-store.ts";
import type { Batch, BatchForm, BatchLine, InputProblem } from "./batch.ts";

/** The most lines of a batch, the most bytes of a line, and the most problems that are listed. */
export const linesMax: Readonly<Record<BatchForm, number>> = { openai: 50_000, anthropic: 100_000 };
const lineBytesMax = 32 * 1024 * 1024;
const problemsMax = 100;

/** The most levels of JSON in a line, as in other requests. */
const levelsMax = 1_000;

/** Lines that are checked before they are stored. */
const linesAtOnce = 500;

/** A problem that ends the reading. */
class UnreadableInputError extends Error {
  constructor(readonly problem: InputProblem) {
    super(problem.message);
  }
}

/** A line of an input, with its place in bytes. */
interface InputLine {
  line: number;
  start: number;
  bytes: Uint8Array;
}

/** Cuts an input into lines as it comes. Empty lines are left out, but numbered. */
async function* cutLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<InputLine> {
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let start = 0;
  let line = 1;
  const take = (): Uint8Array => {
    const bytes = waiting.length === 1 ? (waiting[0] as Uint8Array) : Buffer.concat(waiting);
    waiting = [];
    waitingBytes = 0;
    return bytes;
  };
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, from)) {
      waiting.push(piece.subarray(from, end));
      const bytes = take();
      if (bytes.some((byte) => byte > 32)) yield { line, start, bytes };
      start += bytes.byteLength + 1;
      line += 1;
      from = end + 1;
    }
    waiting.push(piece.subarray(from));
    waitingBytes += piece.byteLength - from;
    if (waitingBytes > lineBytesMax)
      throw new UnreadableInputError({
        code: "line_too_long",
        message: `The line is longer than ${lineBytesMax} bytes.`,
        param: null,
        line,
      });
  }
  const bytes = take();
  if (bytes.some((byte) => byte > 32)) yield { line, start, bytes };
}

/** What the requests of a batch have to be. */
export interface InputRule {
  batchId: string;
  form: BatchForm;
  /** The path of every line. */
  endpoint: string;
  /** Returns why a model cannot be used by that name; undefined where it can. */
  refuseModel(model: string): ModelRefusal | undefined;
}

/** Why a request's model cannot be used. */
export interface ModelRefusal {
  code: "model_not_found" | "invalid_model";
  message: string;
}

/**
 * Reads the lines of a batch's input, some at a time, and gathers their problems. Once there is a
 * problem, lines are only checked.
 */
export class InputReader {
  readonly problems: InputProblem[] = [];
  total = 0;
  /** The first of the lines whose model is unknown, and how many there are. */
  private readonly unknown: InputProblem[] = [];
  private unknownCount = 0;
  private readonly customIds = new Set<string>();

  constructor(private readonly rule: InputRule) {}

  /** Reads the lines of an input. Does not throw for a problem of it. */
  async *lines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly BatchLine[]> {
    let some: BatchLine[] = [];
    const linesLimit = linesMax[this.rule.form];
    try {
      for await (const { line, start, bytes } of cutLines(pieces)) {
        this.total += 1;
        if (this.total > linesLimit)
          throw new UnreadableInputError({
            code: "too_many_tasks",
            message: `A batch has at most ${linesLimit} requests.`,
            param: null,
            line,
          });
        const customId = this.check(line, bytes);
        if (customId === undefined && this.problems.length >= problemsMax) return;
        if (customId !== undefined && this.problems.length === 0)
          some.push({
            batchId: this.rule.batchId,
            line,
            customId,
            start,
            length: bytes.byteLength,
            tries: 0,
          });
        if (some.length < linesAtOnce) continue;
        yield some;
        some = [];
      }
    } catch (error) {
      if (!(error instanceof UnreadableInputError)) throw error;
      this.problems.push(error.problem);
    }
    // OpenAI refuses a batch of a model that it does not know; of several, each line is for itself.
    if (this.unknownCount === this.total && this.problems.length === 0)
      this.problems.push(...this.unknown);
    if (this.total === 0 && this.problems.length === 0)
      this.problems.push({
        code: "empty_file",
        message: "The input has no requests.",
        param: null,
        line: null,
      });
    if (some.length > 0) yield some;
  }

  /**
   * Returns the custom id of a valid line; notes the problem of any other, with the code, the text
   * and the parameter that OpenAI gives it.
   */
  private check(line: number, bytes: Uint8Array): string | undefined {
    const request = parsedObject(bytes);
    if (request === undefined)
      return this.note(line, {
        code: "invalid_json_line",
        message: "This line is not parseable as valid JSON.",
        param: null,
      });
    for (const name of requiredMembers)
      if ((request[name] ?? "") === "") return this.note(line, missing(name));
    const problem = this.memberProblem(request);
    if (problem !== undefined) return this.note(line, problem);
    const customId = request["custom_id"] as string;
    this.customIds.add(customId);
    const wrong = this.bodyProblem(line, request["body"] as Record<string, unknown>);
    return wrong === undefined ? customId : this.note(line, wrong);
  }

  private memberProblem({
    custom_id: customId,
    method,
    url,
    body,
  }: Record<string, unknown>): LineProblem | undefined {
    if (typeof customId !== "string" || customId.length > 512)
      return {
        code: "invalid_custom_id",
        message: "The custom_id of a request must be a text of at most 512 characters.",
        param: "custom_id",
      };
    if (this.customIds.has(customId))
      return {
        code: "duplicate_custom_id",
        message:
          `The custom_id '${customId}' for this request is a duplicate of another request. ` +
          "The custom_id parameter must be unique for each request in a batch.",
        param: "custom_id",
      };
    if (method !== "POST")
      return {
        code: "invalid_method",
        message: "The method of a request in a batch must be POST.",
        param: "method",
      };
    if (url !== this.rule.endpoint && `/v1${String(url)}` !== this.rule.endpoint)
      return {
        code: "invalid_url",
        message: `The URL provided for this request does not match the batch endpoint ${this.rule.endpoint}.`,
        param: "url",
      };
    if (typeof body !== "object" || Array.isArray(body))
      return { code: "invalid_request", message: "The body must be an object.", param: "body" };
    return undefined;
  }

  private bodyProblem(line: number, body: Record<string, unknown>): LineProblem | undefined {
    // Anthropic checks the parameters of a request when it is run.
    if (this.rule.form === "anthropic") return undefined;
    const { endpoint } = this.rule;
    const { model, models, stream, background } = body;
    if (stream === true)
      return {
        code: "streaming_unsupported",
        message: `${endpointTitles[endpoint] ?? endpoint}: Streaming is not supported in the Batch API.`,
        param: "body.stream",
      };
    // Its answer would be that the work has begun.
    if (background === true)
      return invalidRequest(
        "Background mode is not supported in the Batch API.",
        "body.background",
      );
    const isMissing = model === undefined && models === undefined && !modelIsOptional.has(endpoint);
    if (isMissing || (model !== undefined && typeof model !== "string"))
      return invalidRequest("Model parameter is required.", "body.model");
    if (endpoint === "/v1/chat/completions" && body["messages"] === undefined)
      return invalidRequest("Messages parameter is required.", "body.messages");
    // Where several models are named, those that cannot be used are passed over.
    const refusal =
      typeof model === "string" && models === undefined ? this.rule.refuseModel(model) : undefined;
    if (refusal?.code !== "model_not_found") return refusal && { ...refusal, param: "body.model" };
    this.unknownCount += 1;
    if (this.unknown.length < problemsMax)
      this.unknown.push({ ...refusal, param: "body.model", line });
    return undefined;
  }

  private note(line: number, problem: LineProblem): undefined {
    if (this.problems.length < problemsMax) this.problems.push({ ...problem, line });
    return undefined;
  }
}

/** A problem of a line. */
type LineProblem = Omit<InputProblem, "line">;

const requiredMembers = ["custom_id", "method", "url", "body"] as const;

const missing = (param: string): LineProblem => ({
  code: "missing_required_parameter",
  message: `Missing required parameter: '${param}'.`,
  param,
});

const invalidRequest = (message: string, param: string): LineProblem => ({
  code: "invalid_request",
  message,
  param,
});

/** What OpenAI calls its endpoints in messages. */
const endpointTitles: Readonly<Record<string, string>> = {
  "/v1/chat/completions": "Chat Completions",
  "/v1/completions": "Completions",
  "/v1/responses": "Responses",
};

/** Endpoints that choose a model where none is named. */
const modelIsOptional: ReadonlySet<string> = new Set(["/v1/moderations"]);

/** Returns the body of a line's request as JSON text. */
export async function readBody(
  files: FileStore,
  { inputFileId }: Batch,
  { start, length }: BatchLine,
): Promise<string> {
  const input = await files.heldFile(inputFileId);
  if (input === undefined) throw new Error("the input of a batch is gone");
  const pieces: Uint8Array[] = [];
  for await (const piece of files.read(input, { from: start, to: start + length }))
    pieces.push(piece);
  const { body } = parsedObject(Buffer.concat(pieces)) ?? {};
  return JSON.stringify(body ?? null);
}

const decoder = new TextDecoder();

/** Returns the object in a line; undefined where it is none, or is nested too deeply. */
function parsedObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes));
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    if (bytes.byteLength > levelsMax && isDeeperThan(value, levelsMax)) return undefined;
    return value as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
