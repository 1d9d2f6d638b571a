import type { ServedStream } from "../../../../inference/pipeline/stream/open-stream.ts";
import type { ServedWhole } from "../../../../inference/pipeline/served-answer.ts";
import { execute } from "../../../../inference/pipeline/execute.ts";
import { chatDialectOf } from "../../../../inference/pipeline/adapt.ts";
import type { ChatCall } from "../../../../inference/pipeline/inference-call.ts";
import { modelFor } from "../../../../inference/pipeline/plan/plan-call.ts";
import type { BackgroundJob } from "../../../../inference/responses/job-store.ts";
import type {
  ResponseItem,
  ResponseRecord,
} from "../../../../inference/responses/stored-response.ts";
import { assert } from "../../../../platform/kernel/assert.ts";
import { GatewayError } from "../../../../platform/kernel/errors.ts";
import type { FrameSource } from "../../../../platform/kernel/frame-source.ts";
import type { Dependencies } from "../../../dependencies.ts";
import { wholeText } from "../../answer-call.ts";
import { withPings } from "../../responses/stored-response.ts";
import { asksForMcp, asksForParser, asksForSearch, withoutOnline } from "../asked-tools.ts";
import { searchToolFor } from "../web-search.ts";
import { responsesFiles, withParsedFiles } from "../file-parser.ts";
import { type GatewayTools, onlyReads, readGatewayTools } from "../gateway-tools.ts";
import { boundEnd, failedEnd, ResponseEvents } from "./response-events.ts";
import { holdsMcpItems } from "./response-items.ts";
import { ResponseRounds } from "./response-rounds.ts";

/** A response, and who served its last round. */
type ServedResponse =
  | { kind: "whole"; served: ServedWhole; record: ResponseRecord | undefined; text: string }
  | { kind: "stream"; served: ServedStream; frames: FrameSource };

/** What serving a response needs. */
export type ResponseServices = Pick<
  Dependencies,
  | "inference"
  | "documents"
  | "toolCalls"
  | "upstreamServers"
  | "publicUrl"
  | "clock"
  | "maxToolRounds"
  | "search"
>;

/** A call, and its conversation, which is whole. */
interface WholeCall {
  call: ChatCall;
  conversation: readonly ResponseItem[];
}

/**
 * Serves a call whose conversation is whole, and runs the tools of MCP servers for its model. Throws
 * `service_unavailable` where an earlier run of its background job may have called some that would
 * be called twice.
 */
export async function serveResponse(
  deps: ResponseServices,
  { job, ...sent }: WholeCall & { job?: Pick<BackgroundJob, "mayHaveActed" | "beforeActing"> },
): Promise<ServedResponse> {
  const { call, conversation } = asksForParser(sent.call.body) ? await withTexts(deps, sent) : sent;
  const search = asksForSearch(deps, call.body) ? searchToolFor(deps, call) : undefined;
  if (search === undefined && !needsRounds(deps, { call, conversation }))
    return servedAlone(deps, call);
  const aborting = new AbortController();
  const { tools: requested = [] } = call.body as { tools?: unknown[] };
  const tools = await readGatewayTools(deps, {
    tools: requested,
    caller: call.caller,
    taken: namesOf(requested),
    search,
  });
  if (job?.mayHaveActed === true) assertRepeatable(tools);
  const rounds = new ResponseRounds({
    call,
    conversation,
    tools,
    deps,
    maxRounds: deps.maxToolRounds,
    signal: AbortSignal.any([aborting.signal, ...(call.signalOf ? [call.signalOf()] : [])]),
    seesPictures: modelSees(deps, call),
    beforeActing: job?.beforeActing,
  });
  await rounds.begin();
  return call.requirements.stream
    ? streamed(deps, { rounds, onCancel: () => aborting.abort() })
    : whole(deps, rounds);
}

/** Returns a call whose files are texts. */
async function withTexts(deps: ResponseServices, sent: WholeCall): Promise<WholeCall> {
  const parsed = await withParsedFiles(deps, { ...sent, face: responsesFiles });
  return { call: parsed.call, conversation: parsed.conversation ?? sent.conversation };
}

/** Throws where tools may have been called before that do more than read. */
function assertRepeatable({ all }: GatewayTools): void {
  const tool = all.find((each) => !onlyReads(each));
  if (tool === undefined) return;
  throw new GatewayError(
    "service_unavailable",
    `An earlier run of this response did not end. It is not run again, since ${tool.label}/${tool.definition.name} could be called ` +
      "twice. See which calls were made (surface mcp), and send the request again where that is right.",
  );
}

async function servedAlone(
  { inference }: ResponseServices,
  call: ChatCall,
): Promise<ServedResponse> {
  const served = await execute(inference, call);
  return served.kind === "stream"
    ? { kind: "stream", served, frames: served.stream }
    : { kind: "whole", served, record: undefined, text: wholeText(served, call) };
}

/** Returns the names of the functions that a client has. */
const namesOf = (tools: readonly unknown[]): ReadonlySet<string> =>
  new Set(
    tools
      .map((tool) => (Object(tool) as { name?: unknown }).name)
      .filter((name): name is string => typeof name === "string"),
  );

/**
 * Returns whether the gateway has to run tools. Where every route is of a provider that runs tools
 * of public servers itself, servers that are not registered here are its own matter.
 */
function needsRounds(
  deps: ResponseServices,
  { call, conversation }: { call: ChatCall; conversation: readonly ResponseItem[] },
): boolean {
  const asks = asksForMcp(call.body);
  if (!asks && !holdsMcpItems(conversation)) return false;
  const { tools = [] } = call.body as { tools?: unknown[] };
  const isForeign = tools
    .map((tool) => Object(tool) as { type?: unknown; server_url?: unknown; connector_id?: unknown })
    .filter(({ type }) => type === "mcp")
    .every(({ server_url: url, connector_id: connector }) =>
      typeof url === "string" ? !url.startsWith(deps.publicUrl()) : connector !== undefined,
    );
  return !(asks && isForeign && runsToolsItself(deps, call));
}

function runsToolsItself({ inference }: ResponseServices, call: ChatCall): boolean {
  const { model } = modelFor(inference, { ...call, id: String(call.body["model"]) });
  return (
    model.routes.length > 0 &&
    model.routes.every(
      (route) => chatDialectOf(route) === "openai-responses" && route.provider.id === "openai",
    )
  );
}

/** Returns whether the model of a call takes pictures. */
export function modelSees({ inference }: Pick<Dependencies, "inference">, call: ChatCall): boolean {
  const id = String(withoutOnline(call.body["model"]));
  const { model } = modelFor(inference, { ...call, id });
  return model.capabilities.includes("vision");
}

async function whole(deps: ResponseServices, rounds: ResponseRounds): Promise<ServedResponse> {
  let last: { served: ServedWhole; record: ResponseRecord } | undefined;
  for (;;) {
    const call = rounds.nextCall();
    let served: ServedWhole | ServedStream;
    try {
      served = await execute(deps.inference, call);
    } catch (error) {
      // What was answered so far has been charged, so it is sent.
      if (last === undefined || !(error instanceof GatewayError)) throw error;
      return ended(rounds, { ...last, changes: failedEnd(error) });
    }
    assert(served.kind === "whole", "a round of a whole response is whole");
    const record = JSON.parse(wholeText(served, call)) as ResponseRecord;
    last = { served, record };
    const after = await rounds.take(record, () => undefined);
    if (after === "ask-again") continue;
    return ended(rounds, { ...last, changes: after === "at-bound" ? boundEnd : {} });
  }
}

function ended(
  rounds: ResponseRounds,
  {
    served,
    record,
    changes,
  }: { served: ServedWhole; record: ResponseRecord; changes: ResponseRecord },
): ServedResponse {
  const { chargedNano } = rounds.usage;
  const shown = rounds.shown(record, changes);
  return {
    kind: "whole",
    served: { ...served, settled: { ...served.settled, chargedNano } },
    record: shown,
    text: JSON.stringify(shown),
  };
}

async function streamed(
  { inference }: ResponseServices,
  { rounds, onCancel }: { rounds: ResponseRounds; onCancel: () => void },
): Promise<ServedResponse> {
  const ask = async (): Promise<ServedStream> => {
    const served = await execute(inference, rounds.nextCall());
    assert(served.kind === "stream", "a round of a streamed response is streamed");
    return served;
  };
  const served = await ask();
  const events = new ResponseEvents({
    rounds,
    first: served.stream,
    ask: async () => (await ask()).stream,
    onCancel,
  });
  const frames = withPings(events, { keepAlive: inference.keepAlive, atOnce: false });
  return { kind: "stream", served, frames };
}
