import { afterAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createAuthority } from "../../support/certificates.ts";
import { testLlmKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, temporaryDirectory } from "../../support/process.ts";
import { pythonPathOf, testClientsFolder } from "../clients/support/test-clients-folder.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";

/** The client of Amazon for Python, which moto brings. */
const folder = join(testClientsFolder, "s3-server");
const hasClient = existsSync(join(folder, "boto3"));
const missing = hasClient ? "" : " (missing: test-clients with boto3)";
afterAll(endProcesses);

const program = `
import json, sys, boto3
from botocore.config import Config
runtime = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=sys.argv[1], verify=sys.argv[2],
                       config=Config(retries={"max_attempts": 1}))
hello = [{"role": "user", "content": [{"text": "Hello there"}]}]
whole = runtime.converse(modelId="sandbox/chat:free", messages=hello, inferenceConfig={"maxTokens": 50})
events = list(runtime.converse_stream(modelId="sandbox/chat:free", messages=hello)["stream"])
try:
    runtime.converse(modelId="no/such", messages=hello)
    refusal = "none"
except runtime.exceptions.ResourceNotFoundException as error:
    refusal = error.response["Error"]["Message"]
def vectors(body):
    answer = runtime.invoke_model(modelId="sandbox/embed:free", body=json.dumps(body))
    counted = answer["ResponseMetadata"]["HTTPHeaders"]["x-amzn-bedrock-input-token-count"]
    return {**json.loads(answer["body"].read()), "counted": int(counted)}
nova = {"embeddingPurpose": "TEXT_RETRIEVAL", "text": {"truncationMode": "END", "value": "a fox"}}
cohere = {"texts": ["a fox", "a hen"], "input_type": "search_document"}
print(json.dumps({
    "titan": vectors({"inputText": "a fox", "normalize": True}),
    "nova": vectors({"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": nova}),
    "cohere": vectors(cohere),
    "typed": vectors({**cohere, "embedding_types": ["float"]}),
    "role": whole["output"]["message"]["role"],
    "stop": whole["stopReason"],
    "usage": whole["usage"],
    "events": list(dict.fromkeys(next(iter(event)) for event in events)),
    "refusal": refusal,
}))
`;

test.skipIf(!hasClient)(`boto3 talks to any model with a bearer key${missing}`, async () => {
  const directory = temporaryDirectory();
  const authority = createAuthority();
  const own = authority.issue("127.0.0.1");
  const [cert, key, trusted] = ["cert", "key", "trusted"].map((name) =>
    join(directory, `${name}.pem`),
  );
  await Promise.all([
    Bun.write(cert!, own.cert),
    Bun.write(key!, own.key),
    Bun.write(trusted!, authority.cert),
  ]);
  const gateway = await startProcess({
    yaml: `server: { tls: { cert: ${cert}, key: ${key} } }\n`,
    environment: bootstrapVariables,
  });
  const child = Bun.spawn(["python3", "-c", program, gateway.url, trusted!], {
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONPATH: pythonPathOf("s3-server"),
      AWS_BEARER_TOKEN_BEDROCK: testLlmKey,
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, failure] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect(failure).toBe("");
  const said: unknown = JSON.parse(text);
  expect(said).toMatchObject({
    role: "assistant",
    stop: "end_turn",
    events: ["messageStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"],
    refusal: expect.stringContaining("no/such"),
  });
  const { titan, nova, cohere, typed } = said as Record<string, Record<string, unknown>>;
  const fox = titan?.["embedding"];
  expect(titan).toEqual({
    embedding: expect.arrayContaining([expect.any(Number)]),
    embeddingsByType: { float: fox },
    inputTextTokenCount: 2,
    counted: 2,
  });
  expect(nova).toEqual({
    embeddings: [{ embeddingType: "TEXT", embedding: fox }],
    inputTokenCount: 2,
    counted: 2,
  });
  const texts = ["a fox", "a hen"];
  const vectors = [expect.any(Array), expect.any(Array)];
  expect(cohere).toEqual({
    response_type: "embeddings_floats",
    embeddings: vectors,
    texts,
    counted: 4,
  });
  expect(typed).toMatchObject({
    response_type: "embeddings_by_type",
    embeddings: { float: vectors },
  });
});
