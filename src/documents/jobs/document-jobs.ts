import type { Clock } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { DocumentCredential, DocumentCredentialOf } from "./ask-parser.ts";
import type { DocumentJob, DocumentJobStore } from "./document-job-store.ts";
import type { DocumentJobRunner } from "./document-job-runner.ts";

/** The most unfinished jobs of a workspace; each holds a body in the database. */
const openJobsMax = 200;

/** A request to parse a document. */
export interface ParseRequest {
  workspaceId: string;
  /** The caller's `Idempotency-Key`; undefined when it sent none. */
  idempotencyKey: string | undefined;
  bodyText: string;
  waitMs: number;
}

/** The state of a job when its caller is answered. */
export type ParseOutcome =
  | { kind: "completed"; job: DocumentJob; text: string }
  | { kind: "failed"; job: DocumentJob }
  | { kind: "under-way"; job: DocumentJob };

/** Document jobs as callers know them: the same key is the same job. */
export class DocumentJobs {
  constructor(
    private readonly parts: {
      store: DocumentJobStore;
      runner: DocumentJobRunner;
      credentialOf: DocumentCredentialOf;
      clock: Clock;
    },
  ) {}

  /** Returns the credential that parses a workspace's documents; undefined when there is none. */
  credentialOf(workspaceId: string): DocumentCredential | undefined {
    return this.parts.credentialOf(workspaceId);
  }

  /**
   * Starts a job or finds the one that was started, and waits for it. Throws `GatewayError`
   * `conflict` where the key has another body.
   */
  async parse(request: ParseRequest): Promise<ParseOutcome> {
    const { store, runner } = this.parts;
    const { id } = await this.jobFor(request);
    await runner.waitFor(id, request.waitMs);
    const job = await store.find(id);
    if (job === undefined) throw new GatewayError("not_found", "The document job was deleted.");
    if (job.status === "failed") {
      await store.markFailureShown(id);
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

  /**
   * Continues a job: a reported failure that may pass is retried, and a job that no gateway works
   * on is started.
   */
  private async takeUp(job: DocumentJob, bodyHash: string): Promise<DocumentJob> {
    const { store, runner } = this.parts;
    if (job.bodyHash !== bodyHash) {
      const message =
        "This Idempotency-Key was used with another body. Send the same body, or choose another key.";
      throw new GatewayError("conflict", message, { param: "Idempotency-Key" });
    }
    const again = job.status === "failed" && job.failureShown && job.failure?.final === false;
    if (again) await store.requeue(job.id);
    if (again || job.status === "queued" || job.status === "running")
      runner.enqueue(job.id, job.workspaceId);
    return job;
  }
}
