import type { Clock } from "../../../platform/kernel/clock.ts";
import { dayMs, minuteMs } from "../../../platform/kernel/clock.ts";
import type { Provider } from "../../catalog/model.ts";
import type { RequestFile } from "../../dialects/file-parts.ts";
import type { UpstreamClient } from "../../upstream/upstream-client.ts";
import { ProviderApi, ProviderCallError } from "../batches/provider-api.ts";
import { anthropicFiles } from "./anthropic-files.ts";
import { googleFiles } from "./google-files.ts";
import { openaiFiles } from "./openai-files.ts";
import type { ProviderFileApi } from "./provider-file-api.ts";

const apis = { openai: openaiFiles, anthropic: anthropicFiles, google: googleFiles };

/** The account of the platform's credential. */
export const platformAccount = "platform";

/** The copy of a file in an account at a provider. */
interface Copy {
  id: string;
  workspaceId: string;
  provider: string;
  account: string;
  /** Null until its upload was answered. */
  upstreamId: string | null;
  usedAtMs: number;
  expiresAtMs: number;
}

/** A file in an account at a provider. */
interface Place {
  workspaceId: string;
  fileId: string;
  provider: string;
  account: string;
}

/** The rows of the copies, which are written before an upload begins. */
interface Copies {
  find(place: Place): Promise<Copy | undefined>;
  /** Returns the id of a new row; undefined where there is one already. */
  begin(place: Place, expiresAtMs: number): Promise<string | undefined>;
  uploaded(id: string, upstreamId: string): Promise<void>;
  used(copy: Copy): Promise<void>;
  drop(id: string): Promise<void>;
  due(): Promise<Copy[]>;
  postpone(id: string): Promise<void>;
  isGivenUp(copy: Copy): boolean;
}

/** The dependencies of files at providers. */
interface ProviderFileParts {
  copies: Copies;
  upstream: UpstreamClient;
  clock: Clock;
  /** The size in bytes from which a file is uploaded that is used again. */
  bytesMin: number;
  /** Returns a provider with the credential of an account; undefined where there is none now. */
  providerOf(account: Pick<Copy, "provider" | "account" | "workspaceId">): Provider | undefined;
  onError(error: unknown): void;
}

/** Where a request is sent. */
interface Target {
  provider: Provider;
  account: string;
  workspaceId: string;
  /** Whether later requests with the file are likely to be sent there too. */
  isSettled: boolean;
}

/** An upload delays its request, which is sent inline where it takes longer. */
const timeouts = { firstTokenMs: 60_000, idleMs: 30_000, totalMs: 120_000 };

/** How long a copy is kept at most, before it is uploaded again. */
const copyMs = 7 * dayMs;

/** How long a provider is left alone that has failed to store a file. */
const restMs = 10 * minuteMs;

/** The files of which it is remembered that they were used. */
const usesMax = 10_000;

/**
 * The files of workspaces that providers store, so that requests name them in place of sending their
 * contents each time.
 */
export class ProviderFiles {
  /** Files that were sent inline, by place, in the order of their use. */
  private readonly uses = new Set<string>();
  private readonly restingUntilMs = new Map<string, number>();
  private sweeping: Promise<void> | undefined;
  private isStopping = false;

  constructor(private readonly parts: ProviderFileParts) {}

  /** Returns the API for files of a provider; undefined where it has none. */
  apiOf(provider: Provider): ProviderFileApi | undefined {
    const { filesApi, apiKey, baseUrl } = provider;
    if (filesApi === undefined || apiKey === undefined || baseUrl === undefined) return undefined;
    return apis[filesApi](new ProviderApi(provider, this.parts.upstream, { timeouts }));
  }

  /** Returns the files of a request that may be named, where any may. */
  worthNaming(files: readonly RequestFile[]): RequestFile[] {
    return files.filter(({ bytes }) => bytes >= this.parts.bytesMin);
  }

  /** Returns what requests to a provider name a file by; undefined where its content is to be sent. */
  async nameOf(
    file: RequestFile,
    { target, api, bytesOfAll }: { target: Target; api: ProviderFileApi; bytesOfAll: number },
  ): Promise<{ name: string; copyId: string } | undefined> {
    const { provider, account, workspaceId, isSettled } = target;
    const place = { workspaceId, fileId: file.id, provider: provider.id, account };
    const { copies, clock } = this.parts;
    const copy = await copies.find(place);
    if (copy !== undefined) {
      if (copy.upstreamId === null || copy.expiresAtMs <= clock.nowMs() + minuteMs)
        return undefined;
      await copies.used(copy);
      return { name: copy.upstreamId, copyId: copy.id };
    }
    const isUsedAgain = this.noteUse(`${file.id} ${provider.id} ${account}`);
    const pays = isUsedAgain || bytesOfAll > api.inlineBytesMax;
    const isResting = (this.restingUntilMs.get(accountKey(target)) ?? 0) > clock.nowMs();
    return isSettled && pays && !isResting ? this.upload(file, { place, api }) : undefined;
  }

  /** Reports what failed; its request is sent with the contents. */
  failed(error: unknown): void {
    this.parts.onError(error);
  }

  /** Forgets a copy that its provider does not know. */
  async forget(copyId: string): Promise<void> {
    await this.parts.copies.drop(copyId);
  }

  /**
   * Deletes the copies at providers that are not needed any more, one sweep at a time. Never rejects.
   */
  sweep(): Promise<void> {
    return (this.sweeping ??= this.sweepNow()
      .catch(this.parts.onError)
      .finally(() => (this.sweeping = undefined)));
  }

  /** Resolves when a sweep in progress has ended; no other begins. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.sweeping;
  }

  private async sweepNow(): Promise<void> {
    if (this.isStopping) return;
    const failing = new Set<string>();
    for (const copy of await this.parts.copies.due()) {
      if (this.isStopping) return;
      if (failing.has(copy.provider)) continue;
      if (!(await this.remove(copy))) failing.add(copy.provider);
    }
  }

  /** Deletes a copy; returns false where its provider failed to. */
  private async remove(copy: Copy): Promise<boolean> {
    const { copies, providerOf, onError } = this.parts;
    const provider = providerOf(copy);
    const api = provider && this.apiOf(provider);
    try {
      const name = copy.upstreamId ?? (await api?.find(copy.id));
      // Without a credential nothing can be deleted; the provider does so by itself in time.
      if (name !== undefined) await api?.remove(name);
    } catch (error) {
      const isRefused = error instanceof ProviderCallError && error.status < 500;
      if (!isRefused && !copies.isGivenUp(copy)) {
        onError(error);
        await copies.postpone(copy.id);
        return false;
      }
    }
    await copies.drop(copy.id);
    return true;
  }

  private async upload(
    file: RequestFile,
    { place, api }: { place: Place; api: ProviderFileApi },
  ): Promise<{ name: string; copyId: string } | undefined> {
    const { copies, clock, onError } = this.parts;
    const { mostMs, leastMs } = api.lives;
    const wantedMs = Math.min(copyMs, mostMs, (file.expiresAtMs ?? Infinity) - clock.nowMs());
    const livesMs = Math.max(leastMs, wantedMs);
    const copyId = await copies.begin(place, clock.nowMs() + Math.max(wantedMs, 0));
    if (copyId === undefined) return undefined;
    try {
      const content = Buffer.from(file.base64, "base64");
      const name = await api.upload({ file, content, marker: copyId, livesMs });
      await copies.uploaded(copyId, name);
      return { name, copyId };
    } catch (error) {
      this.restingUntilMs.set(accountKey(place), clock.nowMs() + restMs);
      onError(error);
      // Where the provider may have stored it all the same, the sweep looks for it.
      if (error instanceof ProviderCallError && error.status < 500) await copies.drop(copyId);
      return undefined;
    }
  }

  /** Notes that a file was sent inline; returns whether it was before. */
  private noteUse(key: string): boolean {
    const isKnown = this.uses.delete(key);
    this.uses.add(key);
    if (this.uses.size > usesMax) {
      const [oldest] = this.uses;
      if (oldest !== undefined) this.uses.delete(oldest);
    }
    return isKnown;
  }
}

const accountKey = ({
  provider,
  account,
}: {
  provider: string | Pick<Provider, "id">;
  account: string;
}): string => `${typeof provider === "string" ? provider : provider.id} ${account}`;
