import {
  type BatchAnswer,
  type ProviderBatchApi,
  codeOf,
  idIn,
  textOf,
} from "./provider-batches.ts";
import { type ProviderApi, ProviderCallError } from "./provider-api.ts";

/** The endpoint of its batches by wire format. */
const paths: Readonly<Record<string, string>> = { "google-generate": "generateContent" };

/** States on the wire, and those of its clients. */
const endStates = /_(?:SUCCEEDED|FAILED|CANCELLED|EXPIRED)$/;

/** Statuses and names of its errors by gRPC code. Source: google.rpc.Code */
const errors: Readonly<Record<number, { status: number; name: string }>> = {
  3: { status: 400, name: "INVALID_ARGUMENT" },
  4: { status: 504, name: "DEADLINE_EXCEEDED" },
  5: { status: 404, name: "NOT_FOUND" },
  7: { status: 403, name: "PERMISSION_DENIED" },
  8: { status: 429, name: "RESOURCE_EXHAUSTED" },
  9: { status: 400, name: "FAILED_PRECONDITION" },
  14: { status: 503, name: "UNAVAILABLE" },
  16: { status: 401, name: "UNAUTHENTICATED" },
};

type Fields = Record<string, unknown>;

const fieldsOf = (value: unknown): Fields => Object(value) as Fields;

/** Google's batches of the Gemini API. Source: https://ai.google.dev/gemini-api/docs/batch-api */
export function googleBatches(api: ProviderApi): ProviderBatchApi {
  const pathFor = (name: string, verb = ""): string =>
    `/${name.split("/").map(encodeURIComponent).join("/")}${verb}`;
  const batchOf = (id: string) => api.ask({ method: "GET", path: pathFor(id) });
  return {
    frame: {
      head: '{"batch":{"inputConfig":{"requests":{"requests":[',
      between: ",",
      tail: "]}},",
    },
    // Requests in the body of the call have less than 20 MB.
    bytesMax: 19_000_000,
    requestsMax: 50_000,
    isOneModel: true,
    pathOf: (dialect) => paths[dialect],
    write: ({ customId, text }) =>
      `{"request":${text},"metadata":{"key":${JSON.stringify(customId)}}}`,
    async create({ content, upstreamModel, marker }) {
      const { name } = await api.ask({
        method: "POST",
        path: `/models/${encodeURIComponent(upstreamModel)}:batchGenerateContent`,
        body: [content, `"displayName":${JSON.stringify(marker)}}}`],
        headers: { "content-type": "application/json" },
      });
      return { id: idIn(name, /^batches\//), file: null };
    },
    async find({ marker }) {
      const { operations } = await api.ask({ method: "GET", path: "/batches?pageSize=100" });
      const found = (Array.isArray(operations) ? operations : []).find(
        (operation: unknown) => fieldsOf(fieldsOf(operation)["metadata"])["displayName"] === marker,
      ) as Fields | undefined;
      return found && { id: String(found["name"]), file: null };
    },
    async endOf({ id }) {
      const { done, metadata, error } = await batchOf(id);
      const state = String(fieldsOf(metadata)["state"]);
      if (done !== true && !endStates.test(state)) return undefined;
      const { code } = fieldsOf(error);
      const name = errors[Number(code)]?.name;
      return { rejection: state.endsWith("_FAILED") ? codeOf(name ?? code) : null };
    },
    async *answers({ id }) {
      const { response, metadata } = await batchOf(id);
      const output = fieldsOf(response ?? fieldsOf(metadata)["output"]);
      const file = textOf(output["responsesFile"]);
      if (file !== undefined) {
        const { origin, pathname } = new URL(api.baseUrl);
        for await (const line of api.lines(
          `${origin}/download${pathname}${pathFor(file, ":download?alt=media")}`,
        ))
          yield answerOf(line, line["key"]);
      }
      const inlined = output["inlinedResponses"];
      const list = Array.isArray(inlined) ? inlined : fieldsOf(inlined)["inlinedResponses"];
      for (const each of Array.isArray(list) ? list : [])
        yield answerOf(fieldsOf(each), fieldsOf(fieldsOf(each)["metadata"])["key"]);
    },
    async cancel({ id }) {
      await api.ask({ method: "POST", path: pathFor(id, ":cancel") }).catch((error: unknown) => {
        if (!(error instanceof ProviderCallError && [400, 404].includes(error.status))) throw error;
      });
    },
    async forget({ id }) {
      await api.ask({ method: "DELETE", path: pathFor(id) });
    },
  };
}

function answerOf({ response, error }: Fields, key: unknown): BatchAnswer {
  const customId = textOf(key) ?? null;
  if (response !== undefined && response !== null)
    return { customId, status: 200, text: JSON.stringify(response) };
  if (error === undefined || error === null) return { customId, status: 0, text: "" };
  const status = errors[Number(fieldsOf(error)["code"])]?.status ?? 500;
  return { customId, status, text: JSON.stringify({ error }) };
}
