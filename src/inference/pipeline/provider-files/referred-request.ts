import type { DialectId } from "../../canonical/dialect-id.ts";
import type { RequestFile } from "../../dialects/file-parts.ts";
import { type FilePlace, filePlaceIn } from "../../dialects/file-places.ts";

type Json = Record<string, unknown>;

/**
 * A request as a provider is sent it, in which contents of files can be replaced by the provider's
 * names for them. The contents are cut out before the text is parsed, since they are most of it.
 */
export class ReferredRequest {
  /** The files whose contents can be replaced. */
  readonly files: readonly RequestFile[];
  private readonly root: Json;
  private readonly marks: ReadonlyMap<string, RequestFile>;
  private readonly places = new Map<string, ((reference: string) => void)[]>();

  private constructor(root: Json, marks: ReadonlyMap<string, RequestFile>, dialect: DialectId) {
    this.root = root;
    this.marks = marks;
    const read = filePlaceIn[dialect];
    if (read !== undefined) this.collect(root, read);
    this.files = [...marks].flatMap(([mark, file]) => (this.places.has(mark) ? [file] : []));
  }

  /** Reads a request in a dialect. */
  static read(
    text: string,
    { files, dialect }: { files: readonly RequestFile[]; dialect: DialectId },
  ): ReferredRequest {
    const marks = new Map<string, RequestFile>();
    let short = text;
    for (const file of files) {
      const mark = `@${crypto.randomUUID()}@`;
      marks.set(mark, file);
      short = short.replaceAll(file.base64, mark);
    }
    return new ReferredRequest(JSON.parse(short) as Json, marks, dialect);
  }

  /** Returns the text of the request, with the names of these files in place of their contents. */
  write(references: ReadonlyMap<RequestFile, string>): string {
    for (const [mark, file] of this.marks) {
      const reference = references.get(file);
      if (reference !== undefined) for (const put of this.places.get(mark) ?? []) put(reference);
    }
    let text = JSON.stringify(this.root);
    for (const [mark, { base64 }] of this.marks) text = text.replaceAll(mark, () => base64);
    return text;
  }

  /** Notes the places of contents in a value. */
  private collect(value: unknown, read: (part: Json) => FilePlace | undefined): void {
    const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(Object(value));
    for (const [key, each] of entries) {
      if (typeof each !== "object" || each === null) continue;
      const place = Array.isArray(each) ? undefined : read(each as Json);
      if (place === undefined || !this.marks.has(place.content)) {
        this.collect(each, read);
        continue;
      }
      const puts = this.places.get(place.content) ?? [];
      puts.push((reference) => ((value as Json)[key] = place.named(reference)));
      this.places.set(place.content, puts);
    }
  }
}
