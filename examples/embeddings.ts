// Vectors of texts with OpenAI's SDK; the second request is answered from the gateway's cache and
// costs nothing.
import OpenAI from "openai";

const baseURL = `${process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787"}/v1`;
const client = new OpenAI({ baseURL, apiKey: process.env["SWITCHYARD_KEY"] });

const texts = ["Cats eat cat food", "The river is deep", "Dogs bark"];
for (const time of ["first", "second"]) {
  const { data, response } = await client.embeddings
    .create(
      { model: "sandbox/embed:free", input: texts, dimensions: 64 },
      { headers: { "gw-cache-ttl": "600" } },
    )
    .withResponse();
  const cache = response.headers.get("x-service-cache-status");
  console.log(
    `${time}: ${data.data.length} vectors of ${data.data[0]?.embedding.length} dimensions, ${cache}`,
  );
}
