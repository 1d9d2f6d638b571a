import { generationIdOf, timeOfId, type GenerationRecord } from "../../generation-record.ts";
import { GenerationStore } from "../../generation-store.ts";
import type { ArchiveBorder } from "./archive-border.ts";

/** Reads single records, from the row store or the archive. */
export class ArchivedGenerations extends GenerationStore {
  private readonly border: ArchiveBorder;

  constructor(
    options: ConstructorParameters<typeof GenerationStore>[0] & { border: ArchiveBorder },
  ) {
    super(options);
    this.border = options.border;
  }

  override async find(workspaceId: string, id: string): Promise<GenerationRecord | undefined> {
    const found = await super.find(workspaceId, id);
    const generationId = generationIdOf(id);
    if (found !== undefined || !/^gen_[0-9a-f]{32}$/.test(generationId)) return found;
    const { outbox, reads } = this.border;
    return timeOfId(generationId) < (await outbox.recordsFromMs())
      ? reads.find(workspaceId, generationId)
      : undefined;
  }
}
