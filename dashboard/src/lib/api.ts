import { infiniteQueryOptions } from "@tanstack/react-query";
import type { Bodies } from "./api-types.ts";
import { tabWorkspace } from "./workspace.ts";

/** A refusal of the API: what went wrong in its words, and the trace id to report it with. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly traceId: string | null;
  /** Which of several reasons for the code it was. */
  readonly reason: string | undefined;
  /** The field of the body that it is about. */
  readonly param: string | undefined;

  constructor(options: {
    status: number;
    code: string;
    message: string;
    traceId: string | null;
    reason?: string | undefined;
    param?: string | undefined;
  }) {
    super(options.message);
    this.status = options.status;
    this.code = options.code;
    this.traceId = options.traceId;
    this.reason = options.reason;
    this.param = options.param;
  }
}

/** Whether the same may be answered later; what the service refuses, it refuses again. */
export const isWorthRetrying = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status >= 500 || error.status === 429;

interface ErrorBody {
  error?: { code?: string; message?: string; param?: string; metadata?: { reason?: string } };
}

/** Reads a refusal. */
export async function refusalOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as ErrorBody;
  return new ApiError({
    status: response.status,
    code: body.error?.code ?? "unknown",
    message: body.error?.message ?? `The service answered ${response.status}.`,
    traceId: response.headers.get("x-request-id"),
    reason: body.error?.metadata?.reason,
    param: body.error?.param,
  });
}

const base = "/api/v1";

/** Leads to signing in, and back to the same place. */
const signInAgain = (): void =>
  location.assign(`/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`);

/**
 * Names the workspace of this tab, since another tab of the session may have entered another one.
 */
function workspaceHeader(): Record<string, string> {
  const id = tabWorkspace();
  return id === undefined ? {} : { "x-service-workspace": id };
}

/** A body in JSON, as an operation takes it: `sending` makes it. */
class JsonBody {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  toString(): string {
    return JSON.stringify(this.#value);
  }
}

/** What an operation is sent: its method, and a body of the type that the API declares. */
export interface Sending {
  method: string;
  body?: JsonBody | FormData;
}

/** Sends a body to an operation, in the type of which it has to be. */
export const sending = <Name extends keyof Bodies>(name: Name, body: Bodies[Name]): Sending => ({
  method: name.slice(0, name.indexOf(" ")),
  body: new JsonBody(body),
});

/** Sends a body that people write themselves: the API says what is wrong with it. */
export const sendingAsWritten = (body: Readonly<Record<string, unknown>>): Sending => ({
  method: "POST",
  body: new JsonBody(body),
});

/** What is asked of the API beside its path. */
export interface RequestOptions extends Partial<Sending> {
  signal?: AbortSignal;
  /** An LLM key that is sent in place of the session's cookie, for what sessions may not do. */
  key?: string;
}

/**
 * Asks the API with the session's cookie, or a key, and gives the answer that succeeded. Throws
 * `ApiError`.
 */
export async function send(
  path: string,
  { method = "GET", body, signal, key }: RequestOptions = {},
): Promise<Response> {
  const response = await fetch(base + path, {
    method,
    credentials: key === undefined ? "same-origin" : "omit",
    headers: {
      ...(key === undefined ? workspaceHeader() : { authorization: `Bearer ${key}` }),
      ...(body instanceof JsonBody ? { "content-type": "application/json" } : {}),
    },
    ...(signal === undefined ? {} : { signal }),
    ...(body === undefined ? {} : { body: body instanceof JsonBody ? String(body) : body }),
  });
  if (response.ok) return response;
  // A session that has ended; a key that has is its caller's matter.
  if (response.status === 401 && key === undefined) signInAgain();
  throw await refusalOf(response);
}

/** The JSON of an answer. Throws `ApiError`. */
export const request = async <Answer>(path: string, options?: RequestOptions): Promise<Answer> =>
  (await (await send(path, options)).json()) as Answer;

/** The query of an address: what is undefined or empty is left out. */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== "") query.set(name, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** A list of the API. */
export interface List<Row> {
  data: readonly Row[];
  has_more?: boolean;
  next_cursor?: string | null;
}

/** Reads a list page by page, as people ask for more of it; narrowed by filters. */
export const pagedQuery = <Row>(
  queryKey: readonly string[],
  path: string,
  limit = 50,
  filters: Readonly<Record<string, string | undefined>> = {},
) =>
  infiniteQueryOptions({
    queryKey: [...queryKey, "*", filters],
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      request<List<Row>>(path + queryOf({ ...filters, limit, cursor: pageParam })),
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
