import type { Provider } from "../../catalog/model.ts";
import { AbortScope } from "../../upstream/abort-scope.ts";
import {
  type BodyPart,
  type UpstreamClient,
  type UpstreamRequest,
  type UpstreamResponse,
  upstreamTarget,
} from "../../upstream/upstream-client.ts";

/** A provider's refusal or failure of a call about a batch or a file. */
export class ProviderCallError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A call to the API of a provider. */
interface ApiCall {
  method: "GET" | "POST" | "DELETE";
  /** The path below the provider's address, or a whole address of its host. */
  path: string;
  body?: readonly BodyPart[];
  headers?: Readonly<Record<string, string>>;
}

/** The deadlines of calls about batches: hundreds of megabytes take their time. */
const batchTimeouts = { firstTokenMs: 600_000, idleMs: 120_000, totalMs: 3_600_000 };

const connectTimeoutMs = 10_000;

/** The most bytes of an answer that is read as JSON. */
const jsonBytesMax = 64 * 1024 * 1024;

/** The most characters of a line, and the beginning of one that was longer. */
const lineCharactersMax = 64 * 1024 * 1024;
const noJson = "#";

/** Calls the API of one provider with the credential of its record. */
export class ProviderApi {
  private readonly headers: Readonly<Record<string, string>>;
  private readonly timeouts: UpstreamRequest["timeouts"];

  constructor(
    private readonly provider: Provider,
    private readonly upstream: UpstreamClient,
    {
      headers = {},
      timeouts = batchTimeouts,
    }: {
      headers?: Readonly<Record<string, string>>;
      timeouts?: UpstreamRequest["timeouts"];
    } = {},
  ) {
    this.headers = headers;
    this.timeouts = timeouts;
  }

  /** Returns the same API with headers that each call sends. */
  with(headers: Readonly<Record<string, string>>): ProviderApi {
    return new ProviderApi(this.provider, this.upstream, { headers, timeouts: this.timeouts });
  }

  /** The address of the provider, without a slash at its end. */
  get baseUrl(): string {
    return this.provider.baseUrl ?? "";
  }

  /** Sends a call. Rejects with `ProviderCallError` for an answer with an error status. */
  async send({ method, path, body = [], headers }: ApiCall): Promise<UpstreamResponse> {
    const { credentialHeader, apiKey = "", headers: own, proxy } = this.provider;
    const url = path.startsWith("/") ? this.baseUrl + path : path;
    const target = upstreamTarget(
      url,
      {
        accept: "application/json",
        "user-agent": "switchyard",
        ...this.headers,
        ...own,
        [credentialHeader.name]: credentialHeader.prefix + apiKey,
      },
      { proxy },
    );
    const response = await this.upstream.send({
      target: { ...target, headPrefix: target.headPrefix.replace(/^POST /, `${method} `) },
      body: body.length === 0 ? "" : body,
      headers,
      connectTimeoutMs,
      timeouts: this.timeouts,
      abortScope: new AbortScope(undefined, { aborts: false }),
    });
    if (response.status >= 200 && response.status < 300) return response;
    const text = await response.readText(65_536).catch(() => "");
    throw new ProviderCallError(
      response.status,
      `${this.provider.name} answered ${response.status}: ${text.slice(0, 500)}`,
    );
  }

  /** Sends a call and returns the object of its answer. */
  async ask(call: ApiCall): Promise<Record<string, unknown>> {
    const text = await (await this.send(call)).readText(jsonBytesMax);
    return Object(text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
  }

  /** Sends a call with a JSON body. */
  askJson(path: string, body: unknown): Promise<Record<string, unknown>> {
    return this.ask({
      method: "POST",
      path,
      body: [JSON.stringify(body)],
      headers: { "content-type": "application/json" },
    });
  }

  /**
   * Reads the lines of an answer as they come; a line that is no JSON, or is too long, is an empty
   * object. The answer is aborted where its reader ends before.
   */
  async *lines(path: string): AsyncGenerator<Record<string, unknown>> {
    const response = await this.send({ method: "GET", path });
    response.expectMore();
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for (;;) {
        const piece = await response.next();
        const text = decoder.decode(piece, { stream: piece !== undefined });
        const [first = "", ...others] = text.split("\n");
        const lines = [rest + first, ...others];
        rest = piece === undefined ? "" : (lines.pop() ?? "");
        if (rest.length > lineCharactersMax) rest = noJson;
        for (const line of lines) if (line.trim() !== "") yield objectIn(line);
        if (piece === undefined) return;
      }
    } finally {
      response.abort();
    }
  }
}

function objectIn(line: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(line)) as Record<string, unknown>;
  } catch {
    return {};
  }
}
