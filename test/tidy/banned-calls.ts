import {
  isCallExpression,
  isIdentifier,
  isPropertyAccessExpression,
  SyntaxKind,
  type Node,
} from "typescript/unstable/ast";
import { isProgram, type Finding, type Rule } from "./rule.ts";
import type { SourceFile } from "./source-tree.ts";
import { lineOf } from "./syntax-nodes.ts";

/** A thing that only few files may touch. */
interface Ban {
  /** As it is written, such as `Date.now`; `console.` means every member. */
  name: string;
  /** Where the ban holds; the whole program unless it says otherwise. */
  within?: string;
  /** Files, or folders with a slash at the end, that may, each with the reason. */
  except: Readonly<Record<string, string>>;
  instead: string;
}

const main = {
  "src/main.ts": "reads the environment and writes to the terminal for everybody",
  "src/switchyard.ts": "a program of its own, that does the same",
  "src/migrate.ts": "a program of its own, that does the same",
};
const clock = { "src/platform/kernel/clock.ts": "is the clock" };

const bans: readonly Ban[] = [
  { name: "process.env", except: main, instead: "take the setting from the configuration" },
  { name: "console.", except: main, instead: "use the logger that is handed in" },
  { name: "Date.now", except: clock, instead: "use the injected clock" },
  { name: "performance.now", except: clock, instead: "use the injected clock" },
  {
    name: "Math.random",
    except: { "src/app/parts/build-inference.ts": "is the default of an injected source" },
    instead: "take the random source as a dependency",
  },
  {
    name: "fetch",
    within: "src/inference/",
    except: {},
    instead: "send through UpstreamClient, which knows deadlines and aborts",
  },
  {
    name: "Bun.connect",
    except: {
      "src/inference/upstream/connection.ts": "is the one place that opens upstream sockets",
      "src/inference/upstream/proxy-tunnel.ts": "opens them through a proxy, for the file above",
    },
    instead: "send through UpstreamClient",
  },
  {
    name: "Bun.serve",
    except: {
      "src/http/": "listens",
      "src/inference/sandbox/sandbox.ts": "is a server of its own, on loopback",
      "src/app/process/command-socket.ts": "listens on a socket of the data directory",
    },
    instead: "add an endpoint to the table",
  },
];

/**
 * What a node touches, as it is written; undefined where that cannot be told or is none of the
 * bans.
 */
function touched(node: Node): string | undefined {
  if (isCallExpression(node))
    return isIdentifier(node.expression) ? node.expression.text : undefined;
  if (!isPropertyAccessExpression(node) || !isIdentifier(node.expression)) return undefined;
  return `${node.expression.text}.${node.name.text}`;
}

const names = ({ name }: Ban, text: string): boolean =>
  name.endsWith(".") ? text.startsWith(name) : text === name;

const isExcepted = ({ except }: Ban, path: string): boolean =>
  Object.keys(except).some((entry) =>
    entry.endsWith("/") ? path.startsWith(entry) : path === entry,
  );

function findingsIn(file: SourceFile): Finding[] {
  const nodes = [SyntaxKind.CallExpression, SyntaxKind.PropertyAccessExpression].flatMap(
    (kind) => file.nodes.get(kind) ?? [],
  );
  return nodes.flatMap((node) => {
    const text = touched(node);
    const ban = text === undefined ? undefined : bans.find((each) => names(each, text));
    if (
      ban === undefined ||
      isExcepted(ban, file.path) ||
      !file.path.startsWith(ban.within ?? "src/")
    )
      return [];
    return [
      {
        path: file.path,
        line: lineOf(file.syntax, node),
        problem: `touches ${text}: ${ban.instead}`,
      },
    ];
  });
}

/** The world outside is touched in one place each. */
export const bannedCalls: Rule = {
  name: "banned calls",
  fix: "Do as the finding says, or add the file to test/tidy/banned-calls.ts with its reason.",
  check: ({ files }) => files.filter(({ path }) => isProgram(path)).flatMap(findingsIn),
};
