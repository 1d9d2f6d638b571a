import { PassingMap } from "../../../platform/kernel/passing/passing-map.ts";
import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { SharedScript } from "../../../platform/shared-state/redis-client.ts";
import { confirmScript, revertScript, settledScript, voidScript } from "./ledger-scripts.ts";
import type { SharedAccounts, Subject } from "./shared-accounts.ts";

/** Milliseconds before a report that did not reach the server is sent again. */
const retryMs = 500;

/**
 * A charge in progress. It has the entry of its hold where the server does not know the charge yet.
 */
export type OpenSubject = Subject & { entry?: string | undefined };

/** Reports the outcomes of requests until the shared server knows them. */
export class OpenCharges {
  private readonly accounts: SharedAccounts;
  private readonly onError: (error: unknown) => void;
  private readonly charges = new PassingMap<OpenSubject>();

  constructor({ accounts, onError }: { accounts: SharedAccounts; onError(error: unknown): void }) {
    this.accounts = accounts;
    this.onError = onError;
  }

  add(id: string, subject: OpenSubject): void {
    this.charges.set(id, subject);
  }

  get count(): number {
    return this.charges.size;
  }

  has(id: string): boolean {
    return this.charges.has(id);
  }

  all(): Iterable<[string, OpenSubject]> {
    return this.charges.entries();
  }

  /** Stops tracking a charge: the server has recorded it, or another process will resolve it. */
  drop(id: string): void {
    this.charges.delete(id);
  }

  /** Reports that a charge is committed. */
  confirm(id: string): void {
    this.send(confirmScript, id);
  }

  /** Reports that the database refused a charge, so that the server returns the money. */
  revert(id: string): void {
    this.send(revertScript, id);
  }

  /** Reports that a charge was decided without the server, which then has to read the database. */
  settled(id: string, subject: OpenSubject): void {
    this.add(id, subject);
    this.send(settledScript, id);
  }

  /** Reports that a hold is freed. */
  void(id: string, subject: OpenSubject): void {
    this.add(id, subject);
    this.send(voidScript, id);
  }

  /**
   * Runs a script for a charge, and repeats it while the server is away. A new run of the server
   * that does not know the charge reads the database.
   */
  private send(script: SharedScript, id: string): void {
    const subject = this.charges.get(id);
    if (subject === undefined) return;
    const [key = "", parent = ""] = subject.keyIds;
    this.accounts.run(script, subject.workspaceId, [id, key, parent]).then(
      () => this.drop(id),
      (error: unknown) => {
        if (error instanceof SharedStateAwayError)
          return void setTimeout(() => this.send(script, id), retryMs).unref();
        this.drop(id);
        this.onError(error);
      },
    );
  }
}
