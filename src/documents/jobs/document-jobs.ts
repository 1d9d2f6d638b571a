import type { Clock } from "../../platform/lib/clock.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { DocumentCredential, DocumentCredentialOf } from "./document-credential.ts";
import type { DocumentJob } from "./document-job.ts";
import type { DocumentJobRunner } from "./document-job-runner.ts";
import type { DocumentJobStore } from "./document-job-store.ts";

/** Jobs that a workspace may have under way; each holds a body in the database. */
const openJobsMax = 200;

/** A request to have a document parsed. */
export interface ParseRequest {
  workspaceId: string;
  /** The caller's `Idempotency-Key`; undefined when it sent none. */
  idempotencyKey: string | undefined;
  bodyText: string;
  waitMs: number;
}

/** Where a job stands when its caller is answered. */
export type ParseOutcome =
  | { kind: "completed"; job: DocumentJob; text: string }
  | { kind: "failed"; job: DocumentJob }
  | { kind: "under-way"; job: DocumentJob };

/** Document jobs as callers know them: the same key is the same job. */
export class DocumentJobs {
  private readonly parts: {
    store: DocumentJobStore;
    runner: DocumentJobRunner;
    credentialOf: DocumentCredentialOf;
    clock: Clock;
  };

  constructor(parts: DocumentJobs["parts"]) {
    this.parts = parts;
  }

  /** On whose key a workspace's documents are parsed; undefined when there is none. */
  credentialOf(workspaceId: string): DocumentCredential | undefined {
    return this.parts.credentialOf(workspaceId);
  }

  /** Begins a job or finds the one that was begun, and waits for it. Throws `GatewayError` `conflict` where the key has another body. */
  async parse(request: ParseRequest): Promise<ParseOutcome> {
    const { store, runner } = this.parts;
    const { id } = await this.jobFor(request);
    await runner.waitFor(id, request.waitMs);
    const job = await store.find(id);
    if (job === undefined) throw new GatewayError("not_found", "The document job was deleted.");
    if (job.status === "failed") {
      await store.markTold(id);
      return { kind: "failed", job };
    }
    const text = job.status === "completed" ? await store.resultText(id) : undefined;
    return text === undefined ? { kind: "under-way", job } : { kind: "completed", job, text };
  }

  private async jobFor(request: ParseRequest): Promise<DocumentJob | { id: string }> {
    const { store, runner } = this.parts;
    const { workspaceId, idempotencyKey, bodyText } = request;
    const bodyHash = new Bun.CryptoHasher("sha256").update(bodyText).digest("hex");
    const known =
      idempotencyKey === undefined ? undefined : await store.findByKey(workspaceId, idempotencyKey);
    if (known !== undefined) return this.takeUp(known, bodyHash);
    if (runner.openCountOf(workspaceId) >= openJobsMax) {
      const message = `${openJobsMax} document jobs of this workspace are under way. Wait until some have ended.`;
      throw new GatewayError("rate_limit_exceeded", message, { metadata: { limit: openJobsMax } });
    }
    const createdAtMs = this.parts.clock.nowMs();
    const id = newId("job", createdAtMs);
    const inserted = await store.insert({
      id,
      workspaceId,
      idempotencyKey: idempotencyKey ?? id,
      bodyHash,
      bodyText,
      createdAtMs,
    });
    if (inserted) {
      runner.enqueue(id, workspaceId);
      return { id };
    }
    // Another request with the same key was faster.
    const winner = await store.findByKey(workspaceId, idempotencyKey ?? id);
    return winner === undefined ? this.jobFor(request) : this.takeUp(winner, bodyHash);
  }

  /** Goes on with a job: a failure that was told and may pass is tried anew, and what nobody works on is begun. */
  private async takeUp(job: DocumentJob, bodyHash: string): Promise<DocumentJob> {
    const { store, runner } = this.parts;
    if (job.bodyHash !== bodyHash) {
      const message =
        "This Idempotency-Key was used with another body. Send the same body, or choose another key.";
      throw new GatewayError("conflict", message, { param: "Idempotency-Key" });
    }
    const again = job.status === "failed" && job.failureTold && job.failure?.final === false;
    if (again) await store.requeue(job.id);
    if (again || job.status === "queued" || job.status === "running")
      runner.enqueue(job.id, job.workspaceId);
    return job;
  }
}
