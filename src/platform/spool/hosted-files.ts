import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError } from "../kernel/errors.ts";

/** Milliseconds for which a file is kept: as long as vendors keep theirs. */
const keptMs = 3_600_000;
/** Milliseconds between two sweeps of files that are over. */
const sweepMs = 300_000;
const nonceBytes = 12;
const tagBytes = 16;

/** A file that is handed out by its address. */
interface HostedFile {
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Files that can be fetched by their address for an hour, without a credential, such as
 * pictures that a client asked for by URL. The address holds a random token, and the file is encrypted with a key that is derived
 * from it, so that neither the disk nor its backup says what was made.
 */
export class HostedFiles {
  private readonly directory: string;
  private readonly nowMs: () => number;
  private readonly bytesMax: number;
  private usedBytes = 0;
  private sweptAtMs = 0;

  constructor({
    directory,
    nowMs,
    bytesMax,
  }: { directory: string; nowMs: () => number; bytesMax: number }) {
    this.directory = directory;
    this.nowMs = nowMs;
    this.bytesMax = bytesMax;
  }

  /** Stores a file and returns the token of its address. Throws `service_unavailable` where full. */
  async store({ type, bytes }: HostedFile): Promise<string> {
    await this.sweep();
    if (this.usedBytes + bytes.byteLength > this.bytesMax)
      throw new GatewayError(
        "service_unavailable",
        "The gateway hosts as many files as it may. Ask for b64_json.",
        {
          retryAfterSeconds: 60,
        },
      );
    this.usedBytes += bytes.byteLength;
    const token = randomBytes(32).toString("base64url");
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", keyOf(token), nonce);
    const head = Buffer.from(`${type}\n`);
    const sealed = Buffer.concat([cipher.update(head), cipher.update(bytes), cipher.final()]);
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    const content = Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
    await writeFile(this.pathOf(token), content, { mode: 0o600 });
    return token;
  }

  /** Returns the file of a token; undefined where there is none, or its hour is over. */
  async open(token: string): Promise<HostedFile | undefined> {
    if (!/^[\w-]{43}$/.test(token)) return undefined;
    const path = this.pathOf(token);
    const known = await stat(path).catch(() => undefined);
    if (known === undefined || known.mtimeMs + keptMs < this.nowMs()) return undefined;
    const content = await readFile(path);
    const decipher = createDecipheriv("aes-256-gcm", keyOf(token), content.subarray(0, nonceBytes));
    decipher.setAuthTag(content.subarray(nonceBytes, nonceBytes + tagBytes));
    const plain = Buffer.concat([
      decipher.update(content.subarray(nonceBytes + tagBytes)),
      decipher.final(),
    ]);
    const end = plain.indexOf("\n");
    return {
      type: plain.toString("latin1", 0, end),
      bytes: Uint8Array.from(plain.subarray(end + 1)),
    };
  }

  private pathOf(token: string): string {
    return join(this.directory, createHash("sha256").update(token).digest("hex"));
  }

  /** Deletes files whose hour is over, and counts the bytes of the others. */
  private async sweep(): Promise<void> {
    const nowMs = this.nowMs();
    if (nowMs - this.sweptAtMs < sweepMs) return;
    this.sweptAtMs = nowMs;
    let bytes = 0;
    for (const name of await readdir(this.directory).catch(() => [])) {
      const path = join(this.directory, name);
      const known = await stat(path).catch(() => undefined);
      if (known === undefined) continue;
      if (known.mtimeMs + keptMs < nowMs) await unlink(path).catch(() => undefined);
      else bytes += known.size;
    }
    this.usedBytes = bytes;
  }
}

const keyOf = (token: string): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", token, "", "switchyard hosted file v1", 32));
