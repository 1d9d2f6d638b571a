import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publicOrigin, startPeopled, type PeopledGateway } from "../api/people-browser.ts";
import { decideDevice } from "../consent/flows.ts";
import { agentCommand, missingAgent, onlyLoopback } from "./support/agent-run.ts";

const missing = missingAgent("claude");
const up = "\u001b[A";
const enter = "\r";

/** A program at a terminal, and the text that it has shown since the last wait. */
class Terminal {
  private shown = "";
  private wake = (): void => {};
  private readonly child: Bun.Subprocess;

  constructor(command: readonly string[], options: { cwd: string; env: Record<string, string> }) {
    const decoder = new TextDecoder();
    this.child = Bun.spawn([...command], {
      ...options,
      terminal: {
        cols: 120,
        rows: 45,
        data: (_, data) => {
          // Words are placed by moving the cursor instead of by blanks.
          const text = decoder.decode(data, { stream: true });
          this.shown += text
            .replaceAll(/\u001b\[\d*[CG]/g, " ")
            .replaceAll(/\u001b\[[\d;?<>=]*[A-Za-z]/g, "");
          this.wake();
        },
      },
    });
    void this.child.exited.then(() => this.wake());
  }

  /**
   * Waits for a text, and forgets what was shown up to its end. Rejects where the program ends
   * before.
   */
  async shows(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.shown);
      if (match !== null) {
        this.shown = this.shown.slice(match.index + match[0].length);
        return match;
      }
      if (this.child.exitCode !== null)
        throw new Error(`the program ended before it showed ${pattern}:\n${this.shown}`);
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  write(keys: string): void {
    this.child.terminal?.write(keys);
  }

  async end(): Promise<void> {
    this.child.kill();
    await this.child.exited;
  }
}

describe.skipIf(missing !== undefined)(
  `Claude Code${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const home = mkdtempSync(join(tmpdir(), "switchyard-login-"));
    let people: PeopledGateway;
    beforeAll(async () => {
      let origin = publicOrigin;
      people = await startPeopled(undefined, { publicUrl: () => origin });
      origin = people.gateway().origin;
      people.owner.origin = origin;
      const trusted = {
        hasCompletedOnboarding: true,
        theme: "dark",
        projects: { [home]: { hasTrustDialogAccepted: true } },
      };
      await Bun.write(join(home, ".claude.json"), JSON.stringify(trusted));
      const settings = {
        forceLoginMethod: "gateway",
        forceLoginGatewayUrl: people.gateway().origin,
      };
      await Bun.write(join(home, ".claude", "settings.json"), JSON.stringify(settings));
    }, 600_000);
    afterAll(async () => {
      await people.stop();
      rmSync(home, { recursive: true, force: true });
    });

    test("/login signs in with the device code that its user approves in the browser", async () => {
      const env = {
        ...onlyLoopback,
        PATH: process.env["PATH"] ?? "",
        HOME: home,
        TERM: "xterm-256color",
        BROWSER: "true",
        DISABLE_AUTOUPDATER: "1",
        DISABLE_ERROR_REPORTING: "1",
        DISABLE_TELEMETRY: "1",
      };
      const terminal = new Terminal(agentCommand("claude", []), { cwd: home, env });
      try {
        await terminal.shows(/Not logged in/);
        terminal.write("/login");
        await terminal.shows(/\/login/);
        terminal.write(enter);
        await terminal.shows(/Enter to connect/);
        terminal.write(enter);
        await terminal.shows(/No, cancel/);
        terminal.write(up);
        await terminal.shows(/❯\s*Yes, trust/);
        terminal.write(enter);
        const [, userCode = ""] = await terminal.shows(/Code:\s*([A-Z]{4}-[A-Z]{4})/);
        expect((await decideDevice(people.owner, userCode)).status).toBe(200);
        await terminal.shows(/Signed in to Cloud gateway as\s+owner@example\.com/);
        await terminal.shows(/No, cancel/);
        terminal.write(up);
        await terminal.shows(/❯\s*Yes, continue/);
        terminal.write(enter);
        await terminal.shows(/Connected to Cloud gateway/);
        const listed: unknown = await (await people.owner.ask("GET", "/api/v1/connections")).json();
        expect(JSON.stringify(listed)).toContain("Claude Code");
      } finally {
        await terminal.end();
      }
    }, 600_000);
  },
);
