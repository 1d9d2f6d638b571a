import type { ProbeKey, ProbeOutcome } from "../account/byok/key-prober.ts";
import { errorDetails } from "./attempt.ts";
import type { CatalogSnapshot, Provider } from "./catalog/model.ts";
import { verdictOf } from "./key-failure.ts";
import { classifyStatus } from "./upstream/classify-failure.ts";
import { Lifeline } from "./upstream/lifeline.ts";
import { upstreamTarget, type UpstreamClient } from "./upstream/upstream-client.ts";
import { UpstreamFailure } from "./upstream/upstream-failure.ts";

const connectTimeoutMs = 5_000;
const answerTimeoutMs = 20_000;
/** What is read of an answer: enough for an error's words, and for most lists of models. */
const answerBytesMax = 1024 * 1024;

/** Lists a provider's models with a key, which every vendor has and none charges for. */
export const probeKeyThrough =
  ({ catalog, upstream }: { catalog(): CatalogSnapshot; upstream: UpstreamClient }): ProbeKey =>
  async ({ providerId, secret }) => {
    const provider = catalog().providers.get(providerId);
    if (provider?.baseUrl === undefined) return "unknown";
    try {
      return await probe(provider, { baseUrl: provider.baseUrl, secret, upstream });
    } catch (error) {
      if (error instanceof UpstreamFailure) return "unknown";
      throw error;
    }
  };

async function probe(
  { credentialHeader: { name, prefix }, headers, proxy }: Provider,
  { baseUrl, secret, upstream }: { baseUrl: string; secret: string; upstream: UpstreamClient },
): Promise<ProbeOutcome> {
  const target = upstreamTarget(
    `${baseUrl}/models`,
    {
      accept: "application/json",
      "user-agent": "switchyard",
      ...headers,
      [name]: prefix + secret,
    },
    { proxy },
  );
  const response = await upstream.send({
    target: { ...target, headPrefix: target.headPrefix.replace(/^POST /, "GET ") },
    body: "",
    connectTimeoutMs,
    timeouts: { firstTokenMs: answerTimeoutMs, idleMs: answerTimeoutMs, totalMs: answerTimeoutMs },
    lifeline: new Lifeline(undefined, { aborts: false }),
  });
  const text = await response.readText(answerBytesMax).catch(() => {
    response.abort();
    return "";
  });
  if (response.status >= 200 && response.status < 300) return "accepted";
  const failure = classifyStatus({
    status: response.status,
    ...errorDetails(text),
    retryAfter: undefined,
  });
  return verdictOf(failure)?.kind === "refused" ? "refused" : "unknown";
}
