import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { ResponsesWS } from "openai/resources/responses/ws";
import { createAuthority } from "../../support/certificates.ts";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";

afterAll(endProcesses);

test("openai's clients are served over TLS, and closed with 1001 when the gateway ends", async () => {
  const authority = createAuthority();
  const issued = authority.issue("127.0.0.1");
  const directory = temporaryDirectory();
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(cert, issued.cert);
  writeFileSync(key, issued.key);
  const gateway = await startProcess({
    yaml: `server: { tls: { cert: ${cert}, key: ${key} } }\nsandbox: { enabled: true }\n`,
    environment: bootstrapVariables,
  });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: testLlmKey });
  const socket = new ResponsesWS(client, { ca: authority.cert } as never);
  const closed = new Promise<number>((resolve) => socket.on("close", (code) => resolve(code)));
  const text = await new Promise<string>((resolve, reject) => {
    socket.on("error", reject);
    socket.on("response.completed", ({ response }) => resolve(response.output_text));
    socket.send({ type: "response.create", model: "sandbox/chat:free", input: "Hello" });
  });
  expect(text).toContain("Hello");
  const voice = new OpenAIRealtimeWS(
    { model: "sandbox/voice:free", options: { ca: authority.cert } },
    client,
  );
  const status = await new Promise<string | undefined>((resolve, reject) => {
    voice.on("error", reject);
    voice.on("session.created", () => voice.send({ type: "response.create" }));
    voice.on("response.done", ({ response }) => resolve(response.status));
  });
  expect(status).toBe("completed");
  voice.close();
  const ended = gateway.terminate();
  expect(await closed).toBe(1001);
  expect(await ended).toBe(0);
});
