// Gives a command-line program a token: a person types a code on a page of the gateway (RFC 8628).
// No client id is needed.
export {};

const gateway = process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787";
const model = process.env["MODEL"] ?? "sandbox/chat:free";

const post = (path: string, fields: Record<string, string>): Promise<Response> =>
  fetch(`${gateway}/api/v1${path}`, { method: "POST", body: new URLSearchParams(fields) });

const started = (await (
  await post("/oauth/device/code", { client_name: "Example CLI", scope: "inference" })
).json()) as {
  device_code: string;
  user_code: string;
  verification_uri: string;
  interval: number;
};
console.log(`Open ${started.verification_uri} and type ${started.user_code}`);

/** Polls until the person has decided. */
async function accessToken(intervalS: number): Promise<string> {
  await Bun.sleep(intervalS * 1000);
  const answer = await post("/oauth/token", {
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
    device_code: started.device_code,
  });
  const body = (await answer.json()) as { access_token?: string; error?: string };
  if (body.access_token !== undefined) return body.access_token;
  if (body.error === "authorization_pending") return accessToken(intervalS);
  if (body.error === "slow_down") return accessToken(intervalS + 5);
  throw new Error(body.error);
}

const token = await accessToken(started.interval);
const answer = await fetch(`${gateway}/api/v1/chat/completions`, {
  method: "POST",
  headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
});
const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
console.log(choices[0]?.message.content);
