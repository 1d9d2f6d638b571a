import { afterAll, describe } from "bun:test";
import { anthropicErrorNames } from "./adapters/anthropic-error-names.ts";
import { openaiErrorNames } from "./adapters/openai-failure.ts";
import { missingForPython, pythonDriver } from "./python/python-client.ts";
import { describeClient } from "./support/client-suite.ts";
import { clientStage } from "./support/client-stage.ts";

const missing = missingForPython();

const googleGenai = {
  name: "google-genai",
  errorNames: {
    400: "ClientError",
    401: "ClientError",
    404: "ClientError",
    429: "ClientError",
    502: "ServerError",
  },
  cannot: {
    "cost in streams": "keeps only the fields of usage that it knows",
    "cost of whole answers": "keeps only the fields of usage that it knows",
    "ids of calls": "Google's own answers are kept, and older models give calls no ids",
    retries: "looks at the status only",
  },
} as const;

const langchainGoogle = {
  ...googleGenai,
  name: "langchain-google-genai",
  errorNames: {
    400: "GoogleInvalidRequestError",
    401: "GoogleAuthenticationError",
    404: "GoogleModelNotFoundError",
    429: "GoogleRateLimitError",
    502: "GoogleAPIError",
  },
} as const;

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

describe.each([
  ["google", "generate", googleGenai],
  ["langchain", "langchain", langchainGoogle],
] as const)("in %s's packages", (name, surface, client) => {
  const lacking = missingForPython(name);
  describe.skipIf(lacking !== undefined)(
    `Google's client${lacking ? ` (missing: ${lacking})` : ""}`,
    () => {
      const stage = clientStage();
      const driver = pythonDriver(name);
      afterAll(() => driver.stop());
      describeClient(driver.client(surface, client), stage);
    },
  );
});
