import type { Kysely } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import type { KeyVault } from "../platform/vault/key-vault.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Bucket } from "./bucket.ts";
import { DirectoryBucket } from "./directory-bucket.ts";
import { FileStore, type FileTables } from "./file-store.ts";
import { FileSweep, type SweptCopies } from "./file-sweep.ts";
import { ObjectStore } from "./object-store.ts";
import type { S3Place } from "./s3-bucket.ts";
import { UploadStore } from "./upload-store.ts";

/** Where files are stored, and how much a workspace may store. */
export interface FileSettings {
  /** The absolute path of a directory, or a bucket. */
  place: { directory: string } | { s3: S3Place };
  /** Returns the most bytes that a workspace of a plan may store. */
  quotaBytesOf(plan: string): number;
  /**
   * The size from which files that requests use again are stored at providers; absent means the
   * default, and infinite never.
   */
  uploadFromBytes?: number;
}

/** The files of workspaces, ready to start. */
export interface Files {
  objects: ObjectStore;
  store: FileStore;
  uploads: UploadStore;
  sweep: FileSweep;
  quotaBytesOf(plan: string): number;
}

/** The dependencies of files. */
export interface FileParts {
  database: Kysely<FileTables>;
  vault: Pick<KeyVault, "sealRecord" | "openRecord" | "learn">;
  clock: Clock;
  logger: Pick<Logger, "error">;
  isLeader: (() => boolean) | undefined;
  /** The copies at providers; absent where there are none. */
  copies?: SweptCopies | undefined;
  /** Called after each sweep, with whether it succeeded. */
  onSweep(ok: boolean): void;
}

/** Opens the bucket that the settings name. The code of S3 is loaded only where it is used. */
async function openBucket(place: FileSettings["place"]): Promise<Bucket> {
  if ("directory" in place) return new DirectoryBucket(place.directory);
  const { S3Bucket } = await import("./s3-bucket.ts");
  return new S3Bucket(place.s3);
}

/** Opens the files of workspaces. Nothing is started. */
export async function openFiles(
  { place, quotaBytesOf }: FileSettings,
  { database, vault, clock, logger, isLeader, copies, onSweep }: FileParts,
): Promise<Files> {
  const objects = new ObjectStore({
    bucket: await openBucket(place),
    vault,
    onError: (error) =>
      logger.error({ err: error }, "a file could not be deleted from its storage"),
  });
  const onDeleted = () => void copies?.sweep();
  const store = new FileStore({ database, objects, clock, onDeleted });
  const uploads = new UploadStore({ database, objects, files: store, clock });
  const sweep = new FileSweep({
    database,
    files: store,
    uploads,
    objects,
    clock,
    isLeader,
    copies,
    onSwept: () => onSweep(true),
    onError(error) {
      onSweep(false);
      logger.error({ err: error }, "expired files could not be deleted");
    },
  });
  return { objects, store, uploads, sweep, quotaBytesOf };
}
