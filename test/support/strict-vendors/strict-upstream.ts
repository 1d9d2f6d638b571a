import { scriptOf } from "../scripted-upstream/scripted-upstream.ts";
import type { ScriptedAnswer } from "../scripted-upstream/scripted-answer.ts";
import { amazonConverseAnswer } from "../scripted-upstream/amazon-converse-answer.ts";
import { converseHead } from "../upstream/amazon-converse-wire.ts";
import { startFaultUpstream } from "../upstream/fault-upstream.ts";
import type { RecordedRequest } from "../upstream/recorded-request.ts";
import { json, type Script, stream } from "../upstream/steps.ts";
import { fieldsOf } from "./reading.ts";
import { completionScript, fimScript } from "./completion-script.ts";
import type { Endpoint, VendorId, VendorRequest, VendorRule } from "./rule.ts";
import { nameOf, refusalsOf } from "./vendor-rules.ts";

/** A request that was refused, and the rules by which it was. */
interface Refusal {
  request: VendorRequest;
  /** Names of rules, such as `mistral/call-id`. */
  rules: readonly string[];
}

/** A vendor's request as it arrived. */
export interface ReceivedRequest extends VendorRequest {
  vendor: string;
  path: string;
  headers: Readonly<Record<string, string>>;
}

/** Returns the script that answers a request; `write` writes answers in the request's dialect. */
type Answering = (request: ReceivedRequest, write: (answer: ScriptedAnswer) => Script) => Script;

/**
 * An upstream on one port that answers as each vendor does: it refuses what the vendor refuses, with
 * the vendor's status and body, and answers everything else well.
 */
export interface StrictUpstream {
  /** Returns the base URL of a vendor, for `base_url` in a provider's entry. */
  baseUrl(vendor: VendorId): string;
  /** The refusals so far, in order. */
  readonly refusals: readonly Refusal[];
  /** The requests so far, as the vendors read them. */
  readonly received: readonly ReceivedRequest[];
  /** Queues answers for the next requests that are taken, one each. */
  say(...answers: ScriptedAnswer[]): void;
  /** Sets how requests are answered that are taken while nothing is queued. */
  answerBy(answering: Answering): void;
  /** Forgets the refusals, the requests and the queued answers. */
  forget(): void;
  stop(): void;
}

const endpoints: readonly (readonly [pattern: RegExp, endpoint: Endpoint])[] = [
  [/\/chat\/completions$/, "chat"],
  [/\/completions$/, "completions"],
  [/\/responses$/, "responses"],
  [/\/messages(?:\?|$)|\/invoke(?:-with-response-stream)?$|:(?:streamR|r)awPredict$/, "messages"],
  [/:(?:streamG|g)enerateContent(?:\?|$)/, "generate"],
  [/\/converse(?:-stream)?$/, "converse"],
];

/** Returns a request as its vendor reads it. */
function vendorRequestOf({
  path,
  body,
  headers,
}: Pick<RecordedRequest, "path" | "body" | "headers">): ReceivedRequest {
  const [, vendor = "", rest = ""] = /^\/([^/]+)(\/.*)$/.exec(path) ?? [];
  const endpoint = endpoints.find(([pattern]) => pattern.test(rest))?.[1];
  if (endpoint === undefined) throw new Error(`no vendor answers on ${path}`);
  const fields = fieldsOf(JSON.parse(body));
  const inPath = /\/models?\/([^:/]+(?:%3A[^/:]+)?)(?::|\/)/.exec(rest)?.[1];
  const model = inPath === undefined ? String(fields["model"]) : decodeURIComponent(inPath);
  return { vendor, path, headers: Object.fromEntries(headers), endpoint, model, body: fields };
}

const refuse = (rule: VendorRule, request: VendorRequest): Script =>
  json(rule.body(request), { status: rule.status });

const converseAnswer = ({ path }: RecordedRequest, answer: ScriptedAnswer): Script =>
  path.endsWith("-stream")
    ? stream(amazonConverseAnswer.events(answer), { headers: converseHead })
    : json(amazonConverseAnswer.whole(answer));

const answerTo = (request: RecordedRequest, endpoint: Endpoint, answer: ScriptedAnswer): Script =>
  endpoint === "converse"
    ? converseAnswer(request, answer)
    : endpoint === "completions"
      ? (request.path.includes("/fim/") ? fimScript : completionScript)(
          fieldsOf(JSON.parse(request.body)),
          answer,
        )
      : scriptOf(request, answer);

const understood: Answering = (_, write) => write({ text: ["Un", "der", "stood."] });

/** Starts the vendors' strict doubles. */
export async function startStrictUpstream(): Promise<StrictUpstream> {
  const upstream = await startFaultUpstream();
  const refusals: Refusal[] = [];
  const received: ReceivedRequest[] = [];
  const queued: ScriptedAnswer[] = [];
  let answering = understood;
  upstream.script((request) => {
    const read = vendorRequestOf(request);
    received.push(read);
    const rules = refusalsOf(read.vendor, read);
    const [first] = rules;
    if (first === undefined) {
      const write = (answer: ScriptedAnswer) => answerTo(request, read.endpoint, answer);
      const next = queued.shift();
      return next === undefined ? answering(read, write) : write(next);
    }
    refusals.push({ request: read, rules: rules.map(nameOf) });
    return refuse(first, read);
  });
  const origin = new URL(upstream.baseUrl).origin;
  return {
    baseUrl: (vendor) => `${origin}/${vendor}`,
    refusals,
    received,
    say: (...answers) => void queued.push(...answers),
    answerBy(by) {
      answering = by;
    },
    forget() {
      refusals.length = 0;
      received.length = 0;
      queued.length = 0;
    },
    stop: () => upstream.stop(),
  };
}
