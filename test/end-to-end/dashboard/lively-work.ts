import { at, textAt } from "../api/at.ts";
import { pollUntil } from "../../support/poll-until.ts";
import type { DashboardScene } from "./dashboard-scene.ts";

/** A gateway and a key, with which programs work. */
interface Access {
  baseUrl: string;
  key: string;
}

async function send(
  { baseUrl, key }: Access,
  path: string,
  body?: FormData | object,
): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(
    baseUrl + path,
    body === undefined
      ? { headers }
      : body instanceof FormData
        ? { method: "POST", headers, body }
        : {
            method: "POST",
            headers: { ...headers, "content-type": "application/json" },
            body: JSON.stringify(body),
          },
  );
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

async function upload(
  access: Access,
  name: string,
  text: string,
  purpose: string,
): Promise<string> {
  const form = new FormData();
  form.append("purpose", purpose);
  form.append("file", new File([text], name));
  return textAt(await send(access, "/files", form), "id");
}

/** A batch: its file, the model that is asked, its requests, and how many ask for no such model. */
const batches = [
  ["support-tickets.jsonl", "acme/small", 14, 1],
  ["release-notes.jsonl", "contoso/coder", 6, 0],
] as const;

async function runBatch(
  access: Access,
  [name, model, count, failing]: (typeof batches)[number],
): Promise<void> {
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      custom_id: `line-${index}`,
      method: "POST",
      url: "/v1/chat/completions",
      body: {
        model: index < failing ? "acme/retired" : model,
        max_tokens: 200,
        messages: [{ role: "user", content: `Summarise number ${index}.` }],
      },
    }),
  );
  const file = await upload(access, name, lines.join("\n"), "batch");
  const batch = await send(access, "/batches", {
    input_file_id: file,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { name },
  });
  await pollUntil(
    async () => at(await send(access, `/batches/${textAt(batch, "id")}`), "status") === "completed",
  );
}

const runs = [
  ["Review of the release notes", 2, "contoso/coder", 3],
  ["Nightly research", 5, "acme/large", 4],
] as const;

/** Lets programs run batches, store files and open runs of agents, which spend something. */
export async function workInBatchesAndRuns(
  ask: DashboardScene["ask"],
  access: Access,
): Promise<void> {
  for (const batch of batches) await runBatch(access, batch);
  await upload(access, "price-list.csv", "part,price\nbolt,0.20\n".repeat(400), "user_data");
  for (const [name, limit, model, count] of runs) {
    const run = await ask("developer", "POST", "/runs", { name, limit });
    for (let index = 0; index < count; index += 1)
      await send({ ...access, key: textAt(run, "key") }, "/chat/completions", {
        model,
        messages: [{ role: "user", content: `Step ${index + 1}` }],
      });
  }
}
