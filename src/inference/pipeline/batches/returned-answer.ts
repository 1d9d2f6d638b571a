import type { ReturningLeg } from "../../../platform/kernel/models/batch-leg.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";

/** An answer of a provider that came in its batch. */
export class ReturnedAnswer implements UpstreamResponse {
  readonly status: number;
  readonly headers = {};
  private text: string | undefined;

  constructor({ status, text }: ReturningLeg) {
    this.status = status;
    this.text = text;
  }

  next(): Uint8Array | undefined {
    const { text } = this;
    this.text = undefined;
    return text === undefined ? undefined : Buffer.from(text);
  }

  takeText(): string | undefined {
    const { text } = this;
    this.text = undefined;
    return text;
  }

  readText(): Promise<string> {
    return Promise.resolve(this.takeText() ?? "");
  }

  expectMore(): void {}

  expectEnd(): void {}

  abort(): void {}
}
