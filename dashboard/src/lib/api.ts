/** A refusal of the API: what went wrong in its words, and the trace id to report it with. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly traceId: string | null;

  constructor(options: { status: number; code: string; message: string; traceId: string | null }) {
    super(options.message);
    this.status = options.status;
    this.code = options.code;
    this.traceId = options.traceId;
  }
}

interface ErrorBody {
  error?: { code?: string; message?: string };
}

/** Reads a refusal; a session that has ended leads to signing in, and back to the same place. */
async function refusalOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as ErrorBody;
  if (response.status === 401) {
    location.assign(`/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`);
  }
  return new ApiError({
    status: response.status,
    code: body.error?.code ?? "unknown",
    message: body.error?.message ?? `The service answered ${response.status}.`,
    traceId: response.headers.get("x-request-id"),
  });
}

const base = "/api/v1";

/** Asks the API with the session's cookie. Throws `ApiError`. */
export async function request<Answer>(path: string, options: { method?: string; body?: unknown; signal?: AbortSignal } = {}): Promise<Answer> {
  const { method = "GET", body, signal } = options;
  const response = await fetch(base + path, {
    method,
    credentials: "same-origin",
    ...(signal === undefined ? {} : { signal }),
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  if (!response.ok) throw await refusalOf(response);
  return (await response.json()) as Answer;
}

/** The query of an address: what is undefined or empty is left out. */
export function queryOf(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined && value !== "") query.set(name, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** A list of the API. */
export interface List<Row> {
  data: readonly Row[];
  has_more?: boolean;
  next_cursor?: string | null;
}
