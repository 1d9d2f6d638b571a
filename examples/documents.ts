// A document parsed by the provider whose key you have saved, as a job that is begun once and
// picked up by its key.
import { randomUUID } from "node:crypto";

const url = `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1/documents/parse`;
const headers = {
  authorization: `Bearer ${process.env["SWITCHYARD_KEY"]}`,
  "content-type": "application/json",
  "idempotency-key": randomUUID(),
};
const body = JSON.stringify({
  source: { type: "url", url: "https://example.com/report.pdf", file_name: "report.pdf" },
  output: { formats: ["markdown"] },
});

let response = await fetch(url, { method: "POST", headers, body });
while (response.status === 202)
  response = await fetch(`${url}?wait_seconds=60`, { method: "POST", headers, body });
const { document, error } = (await response.json()) as {
  document?: { markdown: string };
  error?: { code: string; message: string };
};
if (error !== undefined) throw new Error(`${error.code}: ${error.message}`);
console.log(document?.markdown);
console.log("pages:", response.headers.get("x-service-documents-pages"));
