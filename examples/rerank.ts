// Documents in the order in which they fit a query, with Cohere's SDK.
import { CohereClientV2 } from "cohere-ai";

const environment = process.env["SWITCHYARD_URL"] ?? "http://127.0.0.1:8787";
const client = new CohereClientV2({ environment, token: process.env["SWITCHYARD_KEY"] ?? "" });

const documents = ["Dogs bark", "Cats eat cat food", "The river is deep"];
const { results } = await client.rerank({
  model: "sandbox/rerank:free",
  query: "What do cats eat?",
  documents,
  topN: 2,
});
for (const { index, relevanceScore } of results)
  console.log(relevanceScore.toFixed(2), documents[index]);
