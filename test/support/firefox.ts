import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const executablePath = "/usr/bin/firefox-esr";

/** Whether this machine has the browser. */
export const hasFirefox = existsSync(executablePath);

/** The suffix for the title of a test that needs the browser. */
export const missingFirefox = hasFirefox ? "" : " (missing: firefox-esr)";

/** A page of the browser, by WebDriver BiDi (W3C), which Debian's build speaks itself. */
export interface FirefoxPage {
  setCookie(cookie: { name: string; value: string; domain: string }): Promise<void>;
  /** Loads an address, and resolves with its load event. */
  go(url: string): Promise<void>;
  resize(size: { width: number; height: number }): Promise<void>;
  /** Evaluates JavaScript in the page, and returns the text that it gives. */
  evaluate(expression: string): Promise<string>;
  /** Presses a key and lets it go: a character, or a code of WebDriver (section 17.4.2). */
  press(key: string): Promise<void>;
  /** Errors on the console and exceptions so far. */
  problems: string[];
  close(): Promise<void>;
}

type Answer = Record<string, unknown>;

/** Reads the address that the browser prints once it listens. */
async function listeningAddress(stderr: ReadableStream<Uint8Array>): Promise<string> {
  let printed = "";
  const decoder = new TextDecoder();
  for await (const bytes of stderr) {
    printed += decoder.decode(bytes, { stream: true });
    const found = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(printed)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`the browser did not start: ${printed}`);
}

/** Connects to the browser: sends commands, and hands out what it reports in between. */
async function connect(url: string, onEvent: (method: string, parameters: Answer) => void) {
  const socket = new WebSocket(`${url}/session`);
  const waiting = new Map<number, PromiseWithResolvers<Answer>>();
  let sent = 0;
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(String(data)) as Answer & { id?: number };
    if (message.id === undefined)
      return onEvent(String(message["method"]), Object(message["params"]) as Answer);
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message["type"] === "success") asked?.resolve(Object(message["result"]) as Answer);
    else asked?.reject(new Error(String(message["message"])));
  });
  const opened = Promise.withResolvers<void>();
  socket.addEventListener("open", () => opened.resolve());
  socket.addEventListener("error", () => opened.reject(new Error("no connection to the browser")));
  await opened.promise;
  return {
    send(method: string, params: Answer): Promise<Answer> {
      sent += 1;
      const asked = Promise.withResolvers<Answer>();
      waiting.set(sent, asked);
      socket.send(JSON.stringify({ id: sent, method, params }));
      return asked.promise;
    },
    close: () => socket.close(),
  };
}

/** Starts the browser without a window and with an empty profile. */
export async function startFirefox(): Promise<FirefoxPage> {
  const profile = mkdtempSync(join(tmpdir(), "switchyard-firefox-"));
  const child = Bun.spawn(
    [executablePath, "--headless", "--no-remote", "--profile", profile].concat([
      "--remote-debugging-port",
      "0",
    ]),
    { stdout: "ignore", stderr: "pipe" },
  );
  const problems: string[] = [];
  const { send, close } = await connect(await listeningAddress(child.stderr), (method, entry) => {
    if (method === "log.entryAdded" && entry["level"] === "error")
      problems.push(String(entry["text"]));
  });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  const { contexts } = await send("browsingContext.getTree", {});
  const context: unknown = Object(Array.isArray(contexts) ? contexts[0] : undefined).context;
  return {
    problems,
    async setCookie({ name, value, domain }) {
      const cookie = { name, domain, path: "/", httpOnly: true, value: { type: "string", value } };
      await send("storage.setCookie", { cookie });
    },
    async go(url) {
      await send("browsingContext.navigate", { context, url, wait: "complete" });
    },
    async resize(viewport) {
      await send("browsingContext.setViewport", { context, viewport });
    },
    async evaluate(expression) {
      const target = { context };
      const { result, exceptionDetails } = await send("script.evaluate", {
        ...{ expression, target, awaitPromise: true },
      });
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
      return String(Object(result).value);
    },
    async press(value) {
      const actions = [
        { type: "keyDown", value },
        { type: "keyUp", value },
      ];
      await send("input.performActions", {
        context,
        actions: [{ type: "key", id: "key", actions }],
      });
    },
    async close() {
      close();
      child.kill();
      await child.exited;
      rmSync(profile, { recursive: true, force: true });
    },
  };
}
