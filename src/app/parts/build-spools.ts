import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../platform/kernel/clock.ts";
import { HostedFiles } from "../../platform/spool/hosted-files.ts";
import { Spool } from "../../platform/spool/spool.ts";
import type { AppSettings } from "../settings-of.ts";

/** Returns a place for uploads outside of a data directory. */
const elsewhere = () => ({
  directory: join(tmpdir(), "switchyard-spool"),
  bytesMax: 4 * 1024 ** 3,
});

/** Builds the places of uploads, and of pictures that are handed out by their address. */
export function buildSpools({ spool: place = elsewhere() }: AppSettings, clock: Clock) {
  return {
    spool: new Spool(place),
    hostedFiles: new HostedFiles({
      directory: join(place.directory, "hosted"),
      bytesMax: place.bytesMax,
      nowMs: () => clock.nowMs(),
    }),
  };
}
