import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { version } from "../../package.json";
import { buildDocumentation } from "../app/parts/build-operations.ts";
import { staticFiles } from "../documentation/documentation-site.ts";
import { type CommandContext, CommandError } from "./terminal.ts";

/** The address of the gateway in examples, as after a first start. */
const examplesUrl = "http://127.0.0.1:8787";

/** Writes the documentation site as files with relative links. */
export async function writeDocumentation(context: CommandContext, out: string): Promise<void> {
  const folder = resolve(context.workingDirectory, out);
  const isForeign =
    existsSync(folder) && readdirSync(folder).length > 0 && !existsSync(join(folder, "llms.txt"));
  if (isForeign) throw new CommandError(`${out} holds other files; name a new folder`, 2);
  const site = await buildDocumentation({ version, publicUrl: context.url ?? examplesUrl });
  const files = staticFiles(site);
  for (const [name, text] of files) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  if (!context.terminal.result({ folder, files: files.size }))
    context.terminal.line(
      `${files.size} files in ${folder}: open index.html through a web server.`,
    );
}
