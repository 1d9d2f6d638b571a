// Gives an app a key of its own: it opens a page of the gateway, a person approves, and the app
// exchanges the code (PKCE). An app that runs in a browser uses its own address in place of the
// server on loopback.
import { createHash, randomBytes } from "node:crypto";

const gateway = process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787";
const model = process.env["MODEL"] ?? "sandbox/chat:free";

const verifier = randomBytes(32).toString("base64url");
const { promise: code, resolve } = Promise.withResolvers<string>();
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    resolve(new URL(request.url).searchParams.get("code") ?? "");
    return new Response("You can close this page.");
  },
});

const page = new URL("/auth", gateway);
page.search = new URLSearchParams({
  callback_url: `http://127.0.0.1:${server.port}/callback`,
  code_challenge: createHash("sha256").update(verifier).digest("base64url"),
  code_challenge_method: "S256",
  key_label: "Example app",
}).toString();
console.log(`Open ${page.href}`);

const exchanged = await fetch(`${gateway}/api/v1/auth/keys`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    code: await code,
    code_verifier: verifier,
    code_challenge_method: "S256",
  }),
});
await server.stop();
if (!exchanged.ok) throw new Error(await exchanged.text());
const { key } = (await exchanged.json()) as { key: string };

const answer = await fetch(`${gateway}/api/v1/chat/completions`, {
  method: "POST",
  headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
  body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
});
const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
console.log(choices[0]?.message.content);
