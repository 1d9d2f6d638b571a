import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The place of the first secrets, as the configuration has it. */
interface FirstSecretsPlace {
  firstSecrets: "print" | "file";
  dataDirectory: string;
}

/** What a first start shows once: a key, and the token of the link that claims the owner account. */
interface FirstSecrets {
  firstSecret: string | undefined;
  claimToken: string | undefined;
  /** The origin of the gateway's pages. */
  url: string;
}

const keyLabel = "First key";

/**
 * Writes the first key and the claim link into the data directory, for this user alone, and returns
 * the file's path; undefined where they are printed or there are none. A key of an earlier start
 * stays until the account is claimed; then the file goes.
 */
export function keepFirstSecrets(
  { firstSecrets, dataDirectory }: FirstSecretsPlace,
  { firstSecret, claimToken, url }: FirstSecrets,
): string | undefined {
  const path = join(dataDirectory, "first-start.txt");
  if (firstSecrets === "print" || (firstSecret === undefined && claimToken === undefined)) {
    rmSync(path, { force: true });
    return undefined;
  }
  const key = firstSecret ?? keyIn(path);
  const lines = [
    ...(claimToken === undefined ? [] : [`Dashboard  ${url}/claim?token=${claimToken}`]),
    ...(key === undefined ? [] : [`${keyLabel}  ${key}`]),
  ];
  // A file that exists would keep its mode.
  rmSync(path, { force: true });
  writeFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600, flag: "wx" });
  return path;
}

function keyIn(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const line = readFileSync(path, "utf8")
    .split("\n")
    .find((each) => each.startsWith(keyLabel));
  return line?.slice(keyLabel.length).trim();
}
