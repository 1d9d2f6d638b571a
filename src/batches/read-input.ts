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
  readonly problem: InputProblem;

  constructor(problem: InputProblem) {
    super(problem.message);
    this.problem = problem;
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
  /** Returns why a model may not be used; undefined where it may. */
  refuseModel(model: string): string | undefined;
}

/**
 * Reads the lines of a batch's input, some at a time, and gathers their problems. Once there is a
 * problem, lines are only checked.
 */
export class InputReader {
  readonly problems: InputProblem[] = [];
  total = 0;
  private readonly rule: InputRule;
  private readonly customIds = new Set<string>();

  constructor(rule: InputRule) {
    this.rule = rule;
  }

  /** Reads the lines of an input. Does not throw for a problem of it. */
  async *lines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly BatchLine[]> {
    let some: BatchLine[] = [];
    const linesLimit = linesMax[this.rule.form];
    try {
      for await (const { line, start, bytes } of cutLines(pieces)) {
        this.total += 1;
        if (this.total > linesLimit)
          throw new UnreadableInputError({
            code: "too_many_requests",
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
    if (this.total === 0 && this.problems.length === 0)
      this.problems.push({
        code: "empty_file",
        message: "The input has no requests.",
        param: null,
        line: null,
      });
    if (some.length > 0) yield some;
  }

  /** Returns the custom id of a valid line; notes the problem of any other. */
  private check(line: number, bytes: Uint8Array): string | undefined {
    const request = parsedObject(bytes);
    if (request === undefined)
      return this.note(line, "invalid_json_line", "The line is not one JSON object.", null);
    const { custom_id: customId, url, body } = request;
    if (typeof customId !== "string" || customId === "" || customId.length > 512)
      return this.note(line, "missing_required_parameter", "custom_id: is required.", "custom_id");
    if (this.customIds.has(customId))
      return this.note(
        line,
        "duplicate_custom_id",
        "custom_id: is that of another line.",
        "custom_id",
      );
    this.customIds.add(customId);
    if (request["method"] !== "POST")
      return this.note(line, "invalid_method", "method: must be POST.", "method");
    if (url !== this.rule.endpoint && `/v1${String(url)}` !== this.rule.endpoint)
      return this.note(
        line,
        "mismatched_url",
        `url: must be the endpoint of the batch, ${this.rule.endpoint}.`,
        "url",
      );
    if (typeof body !== "object" || body === null || Array.isArray(body))
      return this.note(line, "missing_required_parameter", "body: must be an object.", "body");
    return this.checkBody(line, body as Record<string, unknown>) ? customId : undefined;
  }

  private checkBody(line: number, body: Record<string, unknown>): boolean {
    // Anthropic checks the parameters of a request when it is run.
    if (this.rule.form === "anthropic") return true;
    if (body["stream"] === true) {
      this.note(line, "invalid_stream", "body.stream: lines are answered whole.", "body.stream");
      return false;
    }
    const { model } = body;
    const isMissing = model === undefined && !modelIsOptional.has(this.rule.endpoint);
    if (isMissing || (model !== undefined && typeof model !== "string")) {
      this.note(line, "missing_required_parameter", "body.model: is required.", "body.model");
      return false;
    }
    const refusal = typeof model === "string" ? this.rule.refuseModel(model) : undefined;
    if (refusal === undefined) return true;
    this.note(line, "invalid_model", `body.model: ${refusal}`, "body.model");
    return false;
  }

  private note(line: number, code: string, message: string, param: string | null): undefined {
    if (this.problems.length < problemsMax) this.problems.push({ code, message, param, line });
    return undefined;
  }
}

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
