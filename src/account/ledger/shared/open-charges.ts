import { SharedStateAwayError } from "../../../platform/shared-state/shared-state-error.ts";
import type { SharedScript } from "../../../platform/shared-state/shared-state.ts";
import { confirmScript, revertScript } from "./ledger-scripts.ts";
import type { SharedAccounts, Subject } from "./shared-accounts.ts";

/** Pause before the server is told again what it could not hear. */
const tellAgainMs = 500;

/** Charges that the shared server does not know to be committed or refused. */
export class OpenCharges {
  private readonly accounts: SharedAccounts;
  private readonly onError: (error: unknown) => void;
  private readonly charges = new Map<string, Subject>();

  constructor({ accounts, onError }: { accounts: SharedAccounts; onError(error: unknown): void }) {
    this.accounts = accounts;
    this.onError = onError;
  }

  add(id: string, subject: Subject): void {
    this.charges.set(id, subject);
  }

  has(id: string): boolean {
    return this.charges.has(id);
  }

  all(): Iterable<[string, Subject]> {
    return this.charges;
  }

  /** Somebody else will see to it. */
  drop(id: string): void {
    this.charges.delete(id);
  }

  /** It is committed. */
  confirm(id: string): void {
    this.tell(confirmScript, id);
  }

  /** The database refused it: the money is back. */
  revert(id: string): void {
    this.tell(revertScript, id);
  }

  /** Tells the server, again and again while it is away; a run that knows nothing of the charge reads the database. */
  private tell(script: SharedScript, id: string): void {
    const subject = this.charges.get(id);
    if (subject === undefined) return;
    const [key = "", parent = ""] = subject.keyIds;
    this.accounts.run(script, subject.workspaceId, [id, key, parent]).then(() => this.drop(id), (error: unknown) => {
      if (error instanceof SharedStateAwayError) return void setTimeout(() => this.tell(script, id), tellAgainMs).unref();
      this.drop(id);
      this.onError(error);
    });
  }
}
