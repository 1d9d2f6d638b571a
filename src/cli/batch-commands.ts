import { createReadStream, createWriteStream, existsSync, openAsBlob } from "node:fs";
import { basename } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type GatewayApi, runningGateway } from "./gateway-api.ts";
import { type CommandContext, CommandError } from "./terminal.ts";
import { textLines } from "./text-lines.ts";

/** A batch as the API shows it. */
interface BatchRecord {
  id: string;
  status: string;
  output_file_id: string | null;
  error_file_id: string | null;
  request_counts: { total: number; completed: number; failed: number };
  cost: number;
  metadata: Record<string, string> | null;
  errors: { data: { line: number | null; message: string }[] } | null;
}

/** Milliseconds between looks at a batch. */
const lookEveryMs = 1_000;

const endStatuses = new Set(["completed", "failed", "expired", "cancelled"]);

/** Returns one line about a batch: a bar, the counts and the cost so far. */
function progressLine({ status, request_counts: counts, cost, metadata }: BatchRecord): string {
  const { total, completed, failed } = counts;
  const width = 24;
  const full = total === 0 ? 0 : Math.floor(((completed + failed) / total) * width);
  const bar = `${"#".repeat(full)}${".".repeat(width - full)}`;
  const note = Object.entries(metadata ?? {}).find(([name]) => name.endsWith("_note"))?.[1];
  const text = `[${bar}] ${completed + failed}/${total} ${status}, ${failed} failed, $${cost}`;
  return note === undefined ? text : `${text}. ${note}`;
}

/** Shows the progress of a batch until it has ended, and returns it. */
async function follow(context: CommandContext, api: GatewayApi, id: string): Promise<BatchRecord> {
  for (let shown = ""; ; ) {
    const batch = (await api.ask("GET", `/batches/${encodeURIComponent(id)}`)) as BatchRecord;
    const line = progressLine(batch);
    if (line !== shown) context.terminal.note(line);
    shown = line;
    if (endStatuses.has(batch.status)) return batch;
    await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
  }
}

/** Reports how a batch ended. Throws `CommandError` for one whose input was refused. */
function report({ terminal }: CommandContext, batch: BatchRecord): void {
  if (batch.status === "failed") {
    const [first] = batch.errors?.data ?? [];
    const place = first?.line == null ? "" : `line ${first.line}: `;
    throw new CommandError(`the input was refused: ${place}${first?.message ?? "see the batch"}`);
  }
  if (terminal.result(batch)) return;
  terminal.line(`${batch.id} is ${batch.status}.`);
  for (const [what, id] of [
    ["answers", batch.output_file_id],
    ["errors", batch.error_file_id],
  ])
    if (id !== null) terminal.line(`The ${what} are in the file ${id}.`);
}

/** Shows the progress of a batch until it has ended. */
export async function watchBatch(context: CommandContext, id: string): Promise<void> {
  report(context, await follow(context, await runningGateway(context), id));
}

/** Returns the endpoint that the first line of an input names. */
async function endpointOf(path: string): Promise<string> {
  for await (const line of textLines(createReadStream(path))) {
    if (line.trim() === "") continue;
    try {
      const { url } = JSON.parse(line) as { url?: unknown };
      if (typeof url === "string") return url;
    } catch {
      // Reported below.
    }
    break;
  }
  throw new CommandError(`${path}: its first line is no request with a url`, 2);
}

/** Uploads an input, runs it as a batch, and downloads the results beside the input. */
export async function runBatch(context: CommandContext, path: string): Promise<void> {
  if (!existsSync(path)) throw new CommandError(`there is no file ${path}`, 2);
  const endpoint = await endpointOf(path);
  const api = await runningGateway(context);
  const form = new FormData();
  form.append("purpose", "batch");
  form.append("file", await openAsBlob(path), basename(path));
  const { id: fileId } = (await api.upload("/files", form)) as { id: string };
  const asked = { input_file_id: fileId, endpoint, completion_window: "24h" };
  const { id } = (await api.ask("POST", "/batches", asked)) as BatchRecord;
  context.terminal.note(`${id}: watch it again with: switchyard batches watch ${id}`);
  const batch = await follow(context, api, id);
  for (const [name, resultId] of [
    ["output", batch.output_file_id],
    ["errors", batch.error_file_id],
  ] as const) {
    if (resultId === null) continue;
    const target = `${path.replace(/\.jsonl$/, "")}.${name}.jsonl`;
    const { body } = await api.send("GET", `/files/${resultId}/content`);
    if (body === null) continue;
    await pipeline(Readable.fromWeb(body), createWriteStream(target));
    context.terminal.note(`Wrote ${target}.`);
  }
  report(context, batch);
}
