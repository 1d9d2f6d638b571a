import type { StoredContent } from "../../../platform/spool/spool.ts";

/** A file within JSON: its bytes as base64, as a data URL where it has a type. */
export class InlineFile {
  readonly content: StoredContent;
  readonly urlType: string | undefined;

  constructor(content: StoredContent, urlType?: string) {
    this.content = content;
    this.urlType = urlType;
  }
}
