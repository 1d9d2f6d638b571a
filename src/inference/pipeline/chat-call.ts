import { searchTool } from "../../platform/kernel/models/charged-extras.ts";
import type { UsagePart } from "../../platform/kernel/usage.ts";
import type { CatalogModel, UpstreamRoute } from "../catalog/model.ts";
import { Affinity, namedSession } from "../routing/affinity.ts";
import { routeFor } from "../routing/route-dialect.ts";
import type { CanonicalRequest, RequestNeeds } from "../canonical/request.ts";
import type { DialectId } from "../canonical/dialect-id.ts";
import { withoutConversation, adapt, chatDialectOf } from "./adapt.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { ClientDialect } from "../dialects/dialect.ts";
import { upstreamDialects } from "../dialects/index.ts";
import {
  CachedPrompt,
  estimateInputTokens,
  mayUsePart,
  needsOf,
  parametersOf,
  wishesOf,
  type RequirementReader,
} from "../dialects/shared/requirements.ts";
import {
  askedExtras,
  sentExtras,
  type AskedExtras,
  type SentExtras,
} from "../dialects/shared/extras/charged-extras.ts";
import type { RequestRequirements, CallOrigin, ChatCall, ClientRequest } from "./inference-call.ts";

/** A chat-like request as its endpoint has read it. */
interface ReadChat
  extends Pick<ClientRequest, "text" | "body" | "dialectHeaders" | "signatures" | "nowSeconds">,
    Pick<ChatCall, "losses" | "files"> {
  dialect: ClientDialect;
  presetId: string | undefined;
}

/**
 * Builds the call of a chat-like request. Its members are named one by one because spreading
 * objects of this size costs a microsecond.
 */
export function chatCall(origin: CallOrigin, read: ReadChat): ChatCall {
  const { dialect } = read;
  let canonical: CanonicalRequest | undefined;
  const call: ChatCall = {
    traceId: origin.traceId,
    generationId: origin.generationId,
    shownId: origin.shownId,
    caller: origin.caller,
    startedMs: origin.startedMs,
    signalOf: origin.signalOf,
    wantsBalance: origin.wantsBalance,
    forcedProviders: origin.forcedProviders,
    tokensUsed: origin.tokensUsed,
    sessionId: origin.sessionId,
    conversation: origin.conversation,
    customer: origin.customer,
    metadata: origin.metadata,
    origin: origin.origin,
    appTitle: origin.appTitle,
    userAgent: origin.userAgent,
    traceParent: origin.traceParent,
    headerOf: origin.headerOf,
    admission: origin.admission,
    roundOf: origin.roundOf,
    line: origin.line,
    leg: origin.leg,
    batchId: origin.batchId,
    dialect: dialect.id,
    text: read.text,
    body: read.body,
    dialectHeaders: read.dialectHeaders,
    signatures: read.signatures,
    losses: read.losses,
    nowSeconds: read.nowSeconds,
    canonical: () => (canonical ??= dialect.decodeRequest(read.body)),
    releaseConversation: () => {
      canonical = undefined;
      read.text = "";
      read.body = withoutConversation(read.body);
      call.text = read.text;
      call.body = read.body;
      call.files = read.files = undefined;
    },
    surface: "chat",
    recordedAs: dialect.recordedAs,
    presetId: read.presetId,
    files: read.files,
    requirements: chatRequirements(dialect, read),
    affinity: new Affinity(new CachedPrompt(read), {
      workspaceId: origin.caller.workspace.id,
      named: namedSession(origin),
    }),
    adapt: (route) => adapt(call, route),
    routeFor: (route) => routeFor(route, call),
    assertServes: assertServesChat,
  };
  return call;
}

/** A request's body and its text. */
type AskingRequest = Pick<ClientRequest, "body" | "text">;

/**
 * The requirements of a chat-like request. Members that few requests need are computed on access.
 */
class ChatRequirements implements RequestRequirements {
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly thinks: boolean | undefined;
  readonly thoughtTokens: number | undefined;
  readonly thoughtBudget: number | undefined;
  readonly neededOutputTokens: number | undefined;
  readonly wishedOutputTokens: number | undefined;
  readonly choices: number;
  readonly wishedParameters: readonly string[];
  readonly needsTools: boolean;
  readonly searches: boolean;
  heldTokens = 0;
  private readonly reader: RequirementReader;
  readonly extrasAt?: (route: UpstreamRoute) => SentExtras | undefined;

  constructor(
    { requirements: reader, id }: Pick<ClientDialect, "requirements" | "id">,
    private readonly request: AskingRequest,
  ) {
    const { body } = request;
    this.reader = reader;
    // Read at once, since the body of a stream is released before the stream is charged.
    const extras = askedExtras(body);
    if (extras !== undefined) this.extrasAt = extrasReader(extras, id);
    this.searches = extras?.tools.some(({ name }) => name === searchTool) === true;
    this.stream = body["stream"] === true;
    this.maxOutputTokens = reader.outputCap(body);
    this.thinks = reader.thinks(body);
    this.thoughtTokens = reader.thoughtTokens(body, this.thinks);
    this.thoughtBudget = reader.thoughtBudget(body, this.thoughtTokens);
    const isNeeded = reader.capChoosesRoutes === true;
    this.neededOutputTokens = isNeeded ? this.maxOutputTokens : undefined;
    this.wishedOutputTokens = isNeeded ? undefined : this.maxOutputTokens;
    this.choices = reader.choices(body);
    this.wishedParameters = wishesOf(reader, body);
    this.needsTools = reader.needsTools(body);
  }

  parameters(): string[] {
    return parametersOf(this.reader, this.request.body);
  }

  mayUse(part: UsagePart): boolean {
    return mayUsePart(this.request, part);
  }

  needs(): RequestNeeds {
    return needsOf(this.request.body, this.reader);
  }

  estimateInputTokens(): number {
    return this.heldTokens + estimateInputTokens(this.request.text, this.request.body);
  }
}

/** Returns a function that tells which extras a route is sent. */
const extrasReader =
  (extras: AskedExtras, client: DialectId) =>
  (route: UpstreamRoute): SentExtras | undefined => {
    const { simulated, local, deviations } = route.provider;
    if (simulated === true || local === true) return undefined;
    const { price, upstreamModel } = route;
    const upstream = chatDialectOf(route);
    const searchesBesideFunctions =
      upstreamDialects[upstream].searchesBesideFunctions?.(upstreamModel, deviations) !== false;
    return sentExtras(extras, { client, upstream, deviations, price, searchesBesideFunctions });
  };

/** Returns what a chat-like request asks for. */
export const chatRequirements = (
  dialect: Pick<ClientDialect, "requirements" | "id">,
  request: AskingRequest,
): RequestRequirements => new ChatRequirements(dialect, request);

/** Throws where the model does not serve chat, since chat-like routes serve chat models alone. */
export function assertServesChat({ id, surface }: CatalogModel): void {
  if (surface === "chat") return;
  const message = `The model ${id} does not chat; it serves ${surface}. Call that endpoint, or another model.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}
