// Embeddings and moderations with OpenAI's SDK, and rerank, which it has no method for.
import OpenAI from "openai";

const baseURL = `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`;
const apiKey = process.env["SWITCHYARD_KEY"];
const client = new OpenAI({ baseURL, apiKey });

const documents = ["Cats eat cat food", "The river is deep", "Dogs bark"];
const { data, usage } = await client.embeddings.create({ model: "sandbox/embed:free", input: documents });
console.log(data.length, "vectors of", data[0]?.embedding.length, "dimensions for", usage.prompt_tokens, "tokens");

const { results } = await client.moderations.create({ input: "What do cats eat?" });
console.log("flagged:", results[0]?.flagged);

const ranking = await fetch(`${baseURL}/rerank`, {
  method: "POST",
  headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
  body: JSON.stringify({ model: "sandbox/rerank:free", query: "What do cats eat?", documents, top_n: 1, return_documents: true }),
});
console.log(JSON.stringify(await ranking.json()));
