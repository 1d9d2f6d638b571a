import { lowestIdAt } from "../../generation-record.ts";
import {
  type GenerationPage,
  type GenerationPageQuery,
  GenerationSearch,
  olderOf,
  pageOf,
} from "../../generation-search.ts";
import { type ArchiveBorder, acrossBorder, divided } from "./archive-border.ts";

/** Lists records, from the row store and then from the archive. */
export class ArchivedSearch extends GenerationSearch {
  private readonly border: ArchiveBorder;

  constructor(
    options: ConstructorParameters<typeof GenerationSearch>[0] & { border: ArchiveBorder },
  ) {
    super(options);
    this.border = options.border;
  }

  override page(query: GenerationPageQuery): Promise<GenerationPage> {
    return acrossBorder(this.border, async (borderMs) => {
      const { older, newer } = divided(query, borderMs);
      const isOlder = query.after !== undefined && query.after <= lowestIdAt(borderMs);
      const first: GenerationPage =
        newer === undefined || isOlder ? { records: [], next: undefined } : await super.page(newer);
      if (first.next !== undefined || older === undefined) return first;
      const window = {
        ...older,
        low: lowestIdAt(older.fromMs),
        end: olderOf(query.after, lowestIdAt(older.toMs)),
      };
      const rest = await this.border.reads.page(window, query.limit + 1 - first.records.length);
      return pageOf([...first.records, ...rest], query.limit);
    });
  }
}
