/** A call of a tool, with the id by which its result is given back. */
export interface Call {
  id: string;
  name: string;
  arguments: unknown;
}

/** A picture or a document that a question brings along. */
export interface SentFile {
  mediaType: "image/png" | "application/pdf";
  /** In base64. */
  data: string;
  name: string;
}

/** One turn of a conversation, as every client can put it in its own words. */
export type Turn =
  | { role: "user"; text: string; file?: SentFile }
  | { role: "assistant"; said: Reply }
  | { role: "tools"; results: readonly { id: string; name: string; text: string }[] };

/** What a client asks a model. */
export interface Question {
  model: string;
  turns: readonly Turn[];
  stream: boolean;
  /** Offers the tool `weatherTool`. */
  tools?: boolean;
  /** Asks for an object of the schema `planSchema`. */
  structured?: boolean;
  /** Asks for reasoning, and for what its replay needs. */
  reasoning?: boolean;
  /** Leaves the stream at its first text, in the way in which users of the client do. */
  leaveAtText?: boolean;
  maxTokens?: number;
}

/** What a client hands to its user. */
export interface Reply {
  text: string;
  /** The reasoning that the client tells its users; undefined where it tells none. */
  reasoning?: string | undefined;
  calls: Call[];
  finish: "stop" | "length" | "calls";
  /** `cost` is undefined where the client drops what it does not know. */
  usage: { input: number; output: number; cost: number | undefined };
  /** The turn as the client itself has it, to be sent back as it is. */
  native: unknown;
  /** The object that structured output was parsed into. */
  parsed?: unknown;
}

/** A failure as the client's users see it. */
export interface ClientFailure {
  /** HTTP status; undefined where none came, as in a stream. */
  status: number | undefined;
  /** Name of the client's class or kind of errors. */
  name: string;
  message: string;
}

/** How a client is set up. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:8787`. */
  origin: string;
  apiKey: string;
  retries: number;
}

/** Statuses of errors that each client has its own names for. */
type NamedStatus = 400 | 401 | 404 | 429 | 502;

/** What a client may lack; the suite's expectation is dropped where it does. */
type Ability =
  | "broken streams"
  | "cost in streams"
  | "cost of whole answers"
  | "counts in streams"
  | "ids of calls"
  | "reasoning"
  | "reasoning in streams"
  | "reasoning_content"
  | "retries"
  | "signatures"
  | "words in streams";

/** An unmodified client, behind words that all of them understand. */
export interface ClientUnderTest {
  /** Package and surface, such as "openai, chat". */
  name: string;
  connect(options: ClientOptions): (question: Question) => Promise<Reply>;
  failureOf(error: unknown): ClientFailure;
  errorNames: Readonly<Record<NamedStatus, string>>;
  /** What it cannot do, each with the reason. */
  cannot: Partial<Record<Ability, string>>;
}

/** The tool that questions offer. */
export const weatherTool = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
} as const;

/** The schema of structured output. */
export const planSchema = {
  type: "object",
  properties: {
    steps: { type: "array", items: { type: "string" } },
    total: { type: "integer" },
  },
  required: ["steps", "total"],
  additionalProperties: false,
} as const;
