import { afterAll, describe } from "bun:test";
import { anthropicErrorNames } from "./adapters/anthropic-error-names.ts";
import { openaiErrorNames } from "./adapters/openai-failure.ts";
import { missingForPython, pythonDriver } from "./python/python-client.ts";
import { describeClient } from "./support/client-suite.ts";
import { clientStage } from "./support/client-stage.ts";

const missing = missingForPython();

describe.skipIf(missing !== undefined)(
  `Python's clients${missing ? ` (missing: ${missing})` : ""}`,
  () => {
    const stage = clientStage();
    const driver = pythonDriver();
    afterAll(() => driver.stop());

    const clients = [
      driver.client("chat", { name: "openai, chat", errorNames: openaiErrorNames, cannot: {} }),
      driver.client("responses", {
        name: "openai, responses",
        errorNames: openaiErrorNames,
        cannot: {},
      }),
      driver.client("messages", {
        name: "anthropic",
        errorNames: anthropicErrorNames,
        cannot: {
          "cost in streams": "its helper keeps only the fields of usage that it knows",
        },
      }),
    ];
    for (const client of clients) describeClient(client, stage);
  },
);
