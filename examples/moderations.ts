// Whether texts are harmful, and in which way, with OpenAI's SDK; without a model the gateway
// chooses a guard model.
import OpenAI from "openai";

const baseURL = `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`;
const client = new OpenAI({ baseURL, apiKey: process.env["SWITCHYARD_KEY"] });

const texts = ["What do cats eat?", "I will kill you"];
const { results } = await client.moderations.create({ input: texts });
for (const [index, { flagged, categories }] of results.entries()) {
  const found = Object.entries(categories)
    .filter(([, is]) => is)
    .map(([category]) => category);
  console.log(`${texts[index]}: ${flagged ? found.join(", ") : "harmless"}`);
}
