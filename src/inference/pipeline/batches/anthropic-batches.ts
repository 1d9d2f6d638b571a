import { type BatchAnswer, type ProviderBatchApi, idIn, textOf } from "./provider-batches.ts";
import { type ProviderApi, ProviderCallError } from "./provider-api.ts";

/** The endpoint of its batches by wire format. */
const paths: Readonly<Record<string, string>> = { "anthropic-messages": "/v1/messages" };

const pathFor = (id: string, verb = ""): string =>
  `/messages/batches/${encodeURIComponent(id)}${verb}`;

/** Anthropic's message batches. Source: https://docs.anthropic.com/en/api/creating-message-batches */
export function anthropicBatches(plain: ProviderApi): ProviderBatchApi {
  const api = plain.with({ "anthropic-version": "2023-06-01" });
  return {
    frame: { head: '{"requests":[', between: ",", tail: "]}" },
    bytesMax: 256 * 1024 * 1024,
    requestsMax: 100_000,
    isOneModel: false,
    pathOf: (dialect) => paths[dialect],
    write: ({ customId, text }) => `{"custom_id":${JSON.stringify(customId)},"params":${text}}`,
    async create({ content, headers: { "anthropic-version": _, ...headers } }) {
      const { id } = await api.ask({
        method: "POST",
        path: "/messages/batches",
        body: [content],
        headers: { "content-type": "application/json", ...headers },
      });
      return { id: idIn(id, /^msgbatch/), file: null };
    },
    // Its batches carry no text of ours, so that one is known by its time and size. The ids in its
    // results show whether it is ours.
    async find({ sinceMs, requests, known }) {
      const { data } = await api.ask({ method: "GET", path: "/messages/batches?limit=100" });
      const found = (Array.isArray(data) ? data : []).find((batch: unknown) => {
        const fields = Object(batch) as Record<string, unknown>;
        const { id, created_at: created, request_counts: counts } = fields;
        const sum = Object.values(Object(counts) as object).reduce<number>(
          (total, count) => total + Number(count),
          0,
        );
        const isFree = !known.has(String(id));
        return isFree && sum === requests && Date.parse(String(created)) >= sinceMs - clockSkewMs;
      }) as { id: string } | undefined;
      return found && { id: found.id, file: null };
    },
    async endOf({ id }) {
      const { processing_status: status } = await api.ask({ method: "GET", path: pathFor(id) });
      return status === "ended" ? { rejection: null } : undefined;
    },
    // `results_url` is not followed, since the credential is sent to the provider's address alone.
    async *answers({ id }) {
      for await (const line of api.lines(pathFor(id, "/results"))) yield answerOf(line);
    },
    async cancel({ id }) {
      await api.ask({ method: "POST", path: pathFor(id, "/cancel") }).catch((error: unknown) => {
        if (!(error instanceof ProviderCallError && [400, 409].includes(error.status))) throw error;
      });
    },
    async forget({ id }) {
      await api.ask({ method: "DELETE", path: pathFor(id) });
    },
  };
}

/** Milliseconds by which the provider's clock may differ. */
const clockSkewMs = 60_000;

/** The statuses of its errors by type. Source: https://docs.anthropic.com/en/api/errors */
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

function answerOf({ custom_id: id, result }: Record<string, unknown>): BatchAnswer {
  const customId = textOf(id) ?? null;
  const { type, message, error } = Object(result) as Record<string, unknown>;
  if (type === "succeeded") return { customId, status: 200, text: JSON.stringify(message) };
  if (type !== "errored") return { customId, status: 0, text: "" };
  const kind = textOf(Object(Object(error).error).type) ?? "";
  return { customId, status: statuses[kind] ?? 500, text: JSON.stringify(error) };
}
