import type { StoredContent } from "../../../platform/spool/spool.ts";

/** A file within JSON: its bytes as base64, as a data URL where it has a type. */
export class InlineFile {
  readonly urlType: string | undefined;

  constructor(
    readonly content: StoredContent,
    urlType?: string,
  ) {
    this.urlType = urlType;
  }
}
