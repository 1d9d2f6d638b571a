/** A chat completion request as it is put on the wire. */
export interface ChatRequest {
  host: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /**
   * `large` answers at once, `paced` streams one event every 10 ms, `quiet` streams one event and
   * then nothing.
   */
  model: string;
  stream: boolean;
  /** Size of the JSON body. */
  bodyBytes: number;
}

/** The JSON body: what matters stands in front, then as much prose as the size asks for. */
export function chatBody({
  model,
  stream,
  bodyBytes,
}: Pick<ChatRequest, "model" | "stream" | "bodyBytes">): string {
  const options = { model, stream, max_tokens: 200, temperature: 0.5 };
  const textLength =
    bodyBytes - JSON.stringify({ ...options, messages: [{ role: "user", content: "" }] }).length;
  const content = prose
    .repeat(Math.ceil(Math.max(textLength, 1) / prose.length))
    .slice(0, Math.max(textLength, 1));
  return JSON.stringify({ ...options, messages: [{ role: "user", content }] });
}

const prose =
  "Tell me, in plain words, how a marshalling yard sorts its wagons onto the tracks they leave by. ";

/** Head and body as one HTTP/1.1 request. */
export function requestBytes(request: ChatRequest): Buffer {
  const body = Buffer.from(chatBody(request));
  const headers = {
    host: request.host,
    "content-type": "application/json",
    ...request.headers,
    "content-length": String(body.length),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.concat([
    Buffer.from(`POST ${request.path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`),
    body,
  ]);
}
