import {
  type BatchAnswer,
  type ProviderBatchApi,
  type ProviderJob,
  beforeBatch,
  codeOf,
  idIn,
  textOf,
} from "./provider-batches.ts";
import { type ProviderApi, ProviderCallError } from "./provider-api.ts";

/** The endpoints of its batches by wire format. */
const paths: Readonly<Record<string, string>> = {
  "openai-chat": "/v1/chat/completions",
  "openai-responses": "/v1/responses",
  "openai-embeddings": "/v1/embeddings",
  "openai-moderations": "/v1/moderations",
};

const endStatuses = new Set(["completed", "failed", "expired", "cancelled"]);

/** The member of a batch's metadata that the gateway writes. */
const markerName = "gateway_batch";

/** Separates the parts of a form; it occurs in no JSON text, which has no bare line breaks. */
const boundary = "switchyard-batch-input";

/** OpenAI's batches. Source: https://platform.openai.com/docs/api-reference/batch */
export function openaiBatches(api: ProviderApi): ProviderBatchApi {
  const jobOf = (batch: Record<string, unknown>): ProviderJob => ({
    id: idIn(batch["id"], /^batch/),
    file: textOf(batch["input_file_id"]) ?? null,
  });
  const batchOf = ({ id }: ProviderJob) =>
    api.ask({ method: "GET", path: `/batches/${encodeURIComponent(id)}` });
  const remove = async (file: string): Promise<void> => {
    await api
      .ask({ method: "DELETE", path: `/files/${encodeURIComponent(file)}` })
      .catch(ignoreGone);
  };
  return {
    frame: { head: "", between: "\n", tail: "\n" },
    bytesMax: 200 * 1024 * 1024,
    requestsMax: 50_000,
    isOneModel: true,
    pathOf: (dialect) => paths[dialect],
    write: ({ customId, path, text }) =>
      `{"custom_id":${JSON.stringify(customId)},"method":"POST","url":"${path}","body":${text}}`,
    async create({ content, path, marker }) {
      const sent = await beforeBatch(upload(api, { content, name: `${marker}.jsonl` }));
      const file = idIn(sent["id"], /^file/);
      try {
        return jobOf(
          await api.askJson("/batches", {
            input_file_id: file,
            endpoint: path,
            completion_window: "24h",
            metadata: { [markerName]: marker },
          }),
        );
      } catch (error) {
        if (error instanceof ProviderCallError) await remove(file).catch(() => undefined);
        throw error;
      }
    },
    async find({ marker }) {
      const { data } = await api.ask({ method: "GET", path: "/batches?limit=100" });
      const found = (Array.isArray(data) ? data : []).find(
        (batch: unknown) => Object(Object(batch).metadata)[markerName] === marker,
      ) as Record<string, unknown> | undefined;
      return found && jobOf(found);
    },
    endOf: async (job) => endIn(await batchOf(job)),
    async *answers(job) {
      const batch = await batchOf(job);
      for (const name of ["output_file_id", "error_file_id"]) {
        const file = textOf(batch[name]);
        if (file === undefined) continue;
        for await (const line of api.lines(`/files/${encodeURIComponent(file)}/content`))
          yield answerOf(line);
      }
    },
    async cancel({ id }) {
      await api
        .ask({ method: "POST", path: `/batches/${encodeURIComponent(id)}/cancel` })
        .catch(ignoreEnded);
    },
    async forget(job) {
      const batch = await batchOf(job);
      for (const file of [batch["output_file_id"], batch["error_file_id"], job.file])
        if (typeof file === "string") await remove(file);
    },
  };
}

/** Returns how a batch has ended, with the code of the first error where it failed as a whole. */
function endIn({
  status,
  errors,
}: Record<string, unknown>): { rejection: string | null } | undefined {
  if (!endStatuses.has(String(status))) return undefined;
  const [first] = (Object(errors) as { data?: unknown[] }).data ?? [];
  return { rejection: status === "failed" ? codeOf(Object(first).code) : null };
}

function upload(
  api: ProviderApi,
  {
    content,
    name,
  }: { content: Parameters<ProviderBatchApi["create"]>[0]["content"]; name: string },
): Promise<Record<string, unknown>> {
  const head =
    `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n` +
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: application/jsonl\r\n\r\n`;
  return api.ask({
    method: "POST",
    path: "/files",
    body: [head, content, `\r\n--${boundary}--\r\n`],
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
  });
}

/** Returns the answer in a line of the output or of the errors. */
function answerOf({ custom_id: id, response }: Record<string, unknown>): BatchAnswer {
  const customId = textOf(id) ?? null;
  const { status_code: status, body } = Object(response) as Record<string, unknown>;
  return typeof status === "number" && body !== undefined
    ? { customId, status, text: JSON.stringify(body) }
    : { customId, status: 0, text: "" };
}

/** Ignores that a file is gone already. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof ProviderCallError && error.status === 404)) throw error;
}

/** Ignores that a batch has ended meanwhile. */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof ProviderCallError && [400, 409].includes(error.status))) throw error;
}
