import { hostileFiles } from "../../test/support/documents/hostile/hostile-files.ts";
import { bindToParent } from "../process/bind-to-parent.ts";
import { extract } from "./extract.ts";
import { knownFiles } from "./pages.ts";

/**
 * Sends files to a gateway, four at once, until it is ended: a process of its own, so that what it
 * does is not counted as the gateway's latency. Arguments: address, key, and `hostile` or `pages`.
 * Each answer is a line with its status.
 */
bindToParent();
const [url = "", key = "", what = "hostile"] = process.argv.slice(2);
const known = what === "pages" ? (await knownFiles()).slice(0, 5) : [];
const files =
  what === "pages" ? known : (await hostileFiles()).filter(({ harmless }) => harmless !== true);
let next = 0;

async function send(): Promise<never> {
  for (;;) {
    const file = files[next++ % files.length];
    const { status } = await extract(
      { url, headers: { authorization: `Bearer ${key}` } },
      file?.bytes ?? new Uint8Array(),
    );
    console.log(String(status));
  }
}

await Promise.all(Array.from({ length: 4 }, send));
