import type { OpaquePart } from "../canonical/content.ts";
import type { Loss } from "../canonical/loss.ts";
import { responseParts } from "../canonical/response-parts.ts";
import type { CanonicalResponse, Choice } from "../canonical/response.ts";
import type { StreamPart } from "../canonical/stream-part.ts";
import type { ClientDialect, ResponseContext } from "./dialect.ts";

/** Collects what a client's dialect cannot carry of one answer, each kind once: `answer.image`, `answer.web_search_call`. */
export class AnswerLosses {
  readonly list: Loss[] = [];
  private readonly detect: ReturnType<ClientDialect["createLossDetector"]>;
  private readonly reason: string;

  constructor(client: ClientDialect, context: ResponseContext) {
    this.detect = client.createLossDetector(context);
    this.reason = `answers of ${client.id} have no place for it`;
  }

  observe(part: StreamPart): void {
    const name = "itemIndex" in part ? this.detect(part) : undefined;
    const field = `answer.${name}`;
    if (name === undefined || this.list.some((loss) => loss.field === field)) return;
    this.list.push({ field, reason: this.reason });
  }

  observeWhole(response: CanonicalResponse): void {
    if (response.choices.every(isPlainText)) return;
    for (const part of responseParts(response)) this.observe(part);
  }
}

/** Most answers are one text, of which nothing can be lost. */
const isPlainText = ({ parts: [only, ...more] }: Choice): boolean =>
  more.length === 0 && only?.type === "text" && only.annotations === undefined;

/** The type of a part that only its own dialect understands: its `type`, or the one member that Gemini's parts have instead. */
export const opaqueName = ({ value }: OpaquePart): string =>
  typeof value.type === "string" ? value.type : (Object.keys(value)[0] ?? "part");
