import type { Clock } from "../../../platform/kernel/clock.ts";
import { ArchiveUnavailableError } from "../archive-client.ts";
import type { ArchiveReads } from "../archive-reads.ts";
import type { Outbox } from "../outbox.ts";

/** The border between row store and archive, for the stores that read from both. */
export interface ArchiveBorder {
  reads: ArchiveReads;
  outbox: Outbox;
  clock: Clock;
  /**
   * Whether the archive answers for everything that it has, or only for what the row store has no
   * longer.
   */
  always: boolean;
}

/**
 * Runs a query with the wall time before which records are read from the archive: those that the
 * row store has no longer or, where the archive is always read, all archived ones. Where the latter
 * fails because the archive does not answer, the row store answers.
 */
export async function acrossBorder<Answer>(
  { outbox, always }: ArchiveBorder,
  ask: (borderMs: number) => Promise<Answer>,
): Promise<Answer> {
  const recordsFromMs = await outbox.recordsFromMs();
  const borderMs = always
    ? Math.max(recordsFromMs, await outbox.archivedBeforeMs())
    : recordsFromMs;
  try {
    return await ask(borderMs);
  } catch (error) {
    if (!(error instanceof ArchiveUnavailableError) || borderMs === recordsFromMs) throw error;
    return ask(recordsFromMs);
  }
}

/** Splits a range at the border; a part is undefined where it is empty. */
export function divided<Range extends { fromMs: number; toMs: number }>(
  range: Range,
  borderMs: number,
): { older: Range | undefined; newer: Range | undefined } {
  const [fromMs, toMs] = [Math.max(range.fromMs, borderMs), Math.min(range.toMs, borderMs)];
  return {
    older: range.fromMs < toMs ? { ...range, toMs } : undefined,
    newer: fromMs < range.toMs ? { ...range, fromMs } : undefined,
  };
}
